"""Walk over a program whose values are arrays of scalar terms, [devices, dimensions of the tile]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ir.walk import operation
from shardpass.proving.relations.calls import waiting_in
from shardpass.proving.relations.evaluate import Loss, Unknown, type_of
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.scalars.table import MOST, TERM, ManyElements, Scalars, TooLarge


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """A tensor as scalar terms. ``ids``: the term of each element, [devices, *shape]; ``element``: MLIR's type name."""

    ids: Ints
    element: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.ids.shape[1:])

    @property
    def rank(self) -> int:
        return self.ids.ndim - 1


@dataclass(frozen=True, eq=False)
class ScalarSite:
    """An op with the elements of its operands."""

    op: Any
    operands: list[Value]
    walk: ScalarWalk

    @property
    def table(self) -> Scalars:
        return self.walk.table

    @property
    def devices(self) -> int:
        return self.walk.devices

    def shape(self, index: int = 0) -> tuple[int, ...]:
        return type_of(self.op.results[index])[0]

    def element(self, index: int = 0) -> str:
        return type_of(self.op.results[index])[1]

    def result(self, ids: Ints, index: int = 0) -> Value:
        return Value(ids.reshape(self.devices, *self.shape(index)), self.element(index))


def box(device: int, lo: Sequence[int] | Ints, sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return where a box of a device's tile is in the array of all devices."""
    return (device, *(slice(int(o), int(o) + n) for o, n in zip(lo, sizes, strict=True)))


def corner(device: int, sizes: Sequence[int]) -> tuple[Any, ...]:
    return (device, *(slice(0, n) for n in sizes))


TOO_LARGE = "the program has more elements than are worth a proof of each"
ScalarRule = Callable[[ScalarSite], list[Value]]


class ScalarWalk:
    """Evaluate one program on ``devices`` devices. A value without a rule is None, and so are values computed from
    it.
    """

    def __init__(self, table: Scalars, devices: int, functions: Mapping[str, Any], rules: Mapping[str, ScalarRule],
                 borders: int = 0) -> None:  # fmt: skip
        self.table, self.devices, self.functions, self.rules = table, devices, functions, rules
        self.whole_terms = borders  # terms below this number are of the whole program
        self.values: dict[Any, Value | None] = {}
        self.losses: list[Loss] = []
        self.stuck: list[Any] = []  # ops that may wait for other devices or run forever, for all that is known
        self.in_region = False  # of a ``sdy.manual_computation``
        self._names = self._draws = 0

    @property
    def is_whole(self) -> bool:
        """Whether the program is the whole one, which is walked first."""
        return not self.whole_terms

    def next_name(self) -> int:
        """Return a number that no other name of the walk has."""
        self._names += 1
        return self._names

    @property
    def draws(self) -> int:
        """The number of ops that have drawn random numbers."""
        return self._draws

    def next_draw(self) -> int:
        """Count the ops that drew random numbers before this op."""
        self._draws += 1
        return self._draws

    def block(self, block: Any, arguments: Sequence[Value | None]) -> list[Value | None]:
        for argument, value in zip(block.arguments, arguments, strict=True):
            self.values[argument] = value
        *body, end = [operation(op) for op in block.operations]
        for op in body:
            for result, value in zip(op.results, self.op(op), strict=True):
                self.values[result] = value
        return [self.values[value] for value in end.operands]

    def op(self, op: Any) -> Sequence[Value | None]:
        operands = [self.values[value] for value in op.operands]
        rule, self.table.at = self.rules.get(op.name), op
        try:
            if rule is None:
                raise Unknown("no rule knows this op")
            if any(self.devices * int(np.prod(type_of(r)[0], dtype=np.int64)) > MOST for r in op.results):
                raise ManyElements
            known = [value for value in operands if value is not None]
            if len(known) < len(operands):
                self.stuck += waiting_in(op, self.functions)
                return [None] * len(op.results)
            self.table.spend(TERM + self.devices + sum(v.ids.size for v in known) // 64)
            return rule(ScalarSite(op, known, self))
        except TooLarge:
            self.losses.append(Loss(op, TOO_LARGE))
            raise
        except ManyElements:
            self.losses.append(Loss(op, TOO_LARGE))
        except Unknown as error:
            self.losses.append(Loss(op, str(error)))
        except (IndexError, ValueError) as error:  # a form of the op that its rule does not know
            self.losses.append(Loss(op, f"its rule does not know this form of the op ({error})"))
        self.stuck += waiting_in(op, self.functions)
        return [None] * len(op.results)
