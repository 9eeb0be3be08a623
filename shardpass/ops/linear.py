"""The table of linear ops: summands of their operands give summands of the result, ``f(a + b) = f(a) + f(b)``.

An op is linear in some operands *together*: a concatenate of partial sums is a partial sum, and beside a partial sum a
whole array is a summand once it is zero everywhere but on one device. The other operands are needed whole.

Importing, planning and the pass ``combine`` read one table. Each adds what it knows of element types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Linear:
    """The linearity of an op.

    Attributes:
        places: the operands in which the op is linear together; None: all.
        moves: it moves elements, or leaves some out, and computes none.
        planned: the planner may keep its operands partial sums. It does not where a summand may become infinite, nor of
            parts of complex numbers.
    """

    places: tuple[int, ...] | None = None
    moves: bool = False
    planned: bool = True

    def of(self, operands: int) -> tuple[int, ...]:
        """Return the indices of the operands in which an op with ``operands`` operands is linear together."""
        return tuple(range(operands)) if self.places is None else self.places


LINEAR: Mapping[str, Linear] = {
    "stablehlo.add": Linear(),
    "stablehlo.broadcast_in_dim": Linear(),
    "stablehlo.complex": Linear(planned=False),
    "stablehlo.concatenate": Linear(),
    "stablehlo.convert": Linear(),
    "stablehlo.divide": Linear((0,), planned=False),
    "stablehlo.dynamic_slice": Linear((0,)),
    "stablehlo.dynamic_update_slice": Linear((0, 1)),
    "stablehlo.gather": Linear((0,), planned=False),
    "stablehlo.imag": Linear(planned=False),
    "stablehlo.negate": Linear(),
    "stablehlo.pad": Linear(),
    "stablehlo.real": Linear(planned=False),
    "stablehlo.reshape": Linear(moves=True),
    "stablehlo.reverse": Linear(moves=True),
    "stablehlo.select": Linear((1, 2)),
    "stablehlo.slice": Linear(moves=True),
    "stablehlo.subtract": Linear(),
    "stablehlo.transpose": Linear(moves=True),
}
MOVES = frozenset(name for name, row in LINEAR.items() if row.moves)
ADDING_REDUCE = Linear((0, 1))  # of a reduce that adds up, in its operand and its initial value
ADDING_SCATTER = Linear((0, 2), planned=False)  # of a scatter that adds, in its operand and its updates
