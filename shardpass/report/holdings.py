"""Account for the memory of a device in reports: the bytes of the built module, with names and lines of the live
values.

Bytes come from ``ir.memory``, names from the plan: each op of a watched pipeline is marked with the number of the
program's op for which it was built (``watch``). For a module that was already partitioned, only lines are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jaxlib.mlir import ir

from shardpass.cost.blocks import END, client_of
from shardpass.diagnostics import NOWHERE, Place
from shardpass.ir.frames import user_place
from shardpass.ir.memory import ModuleMemory, memory_of
from shardpass.program.program import Op, Program
from shardpass.report.naming import Names
from shardpass.report.rows import Holding, MemoryFacts, folded_name
from shardpass.report.watch import Origin, Watched

MOST_HELD = 12  # values at the peak that are listed

ValueOf = Callable[[Origin], int | None]


def type_text(shape: Any, element: str) -> str:
    """Format an array's type: ``f32[64,128]``."""
    return f"{element}[{','.join(map(str, shape))}]"


def memory_facts(module: Any, machine: str, built_ops: BuiltOps | None = None) -> MemoryFacts:
    """Count the memory of a built ``module`` as compiled by XLA's client for ``machine``."""
    memory = memory_of(module, client_of(machine))
    built_ops = BuiltOps(Watched()) if built_ops is None else built_ops
    account = memory.account
    peak = memory.ops[account.peak_op] if account.peak_op is not None and account.peak_op != END else None
    return MemoryFacts(
        account.arguments,
        account.results,
        account.temporaries,
        tuple(_at(memory, built_ops)),
        None if peak is None else built_ops.number(peak),
        NOWHERE if peak is None else built_ops.place(peak),
        _holdings(memory, built_ops),
        account.donated,
    )


def _at(memory: ModuleMemory, built_ops: BuiltOps) -> list[tuple[int, int]]:
    """Return bytes by the op numbers of the program; an op without a number counts for the op before it."""
    out, number = [], END
    for place, size in memory.account.at:
        known = None if place == END else built_ops.number(memory.ops[place])
        number = END if place == END else number if known is None else known
        out.append((number, size))
    return out


def _holdings(memory: ModuleMemory, built_ops: BuiltOps) -> tuple[Holding, ...]:
    """Return the values alive at the peak, most bytes first; equal values of one line are merged."""
    rows: dict[tuple[str, str, Place], list[int]] = {}
    for buffer, size in memory.account.alive:
        rows.setdefault(built_ops.about(memory.values[buffer]), []).append(size)
    holdings = [Holding(name, kind, sum(sizes), place, len(sizes)) for (name, kind, place), sizes in rows.items()]
    return tuple(sorted(holdings, key=lambda one: -one.bytes)[:MOST_HELD])


class BuiltOps:
    """Map ops of a built module to ops and values of the program, if the pipeline was watched."""

    def __init__(
        self,
        seen: Watched,
        names: Names | None = None,
        ops: Mapping[int, Op] | None = None,
        value_of: ValueOf | None = None,
    ) -> None:
        """Read the marks of the watched pipeline. ``ops``: the program's ops by number. ``value_of``: returns an
        origin's value.
        """
        self.seen, self.names, self.ops, self.value_of = seen, names, ops or {}, value_of
        self.program: Program | None = None if seen.plan is None else seen.plan.program

    def number(self, op: Any) -> int | None:
        """Return the number of the program's op that ``op`` was built for; ``END`` if it was built for a result."""
        origin = self._origin(op)
        if origin is None or self.program is None:
            return None
        return origin.op if origin.op < self.program.count else END

    def place(self, op: Any) -> Place:
        """Return the user's line that ``op`` comes from."""
        number = self.number(op)
        if number is None or number == END or self.names is None:
            return user_place(op.location)
        return self.names.frame(self.ops[number]).place

    def about(self, value: Any) -> tuple[str, str, Place]:
        """Return the name of a value, the type of the whole array, and the line that computes the value."""
        if not isinstance(value, ir.OpResult):
            return "", "" if value is None else _type(value), NOWHERE
        op = value.owner
        number = self._value(op, value.result_number)
        if number is None or self.names is None or self.program is None or self.program.arrays[number] is None:
            return "", _type(value), self.place(op)
        array = self.program.array(number)
        return folded_name(self.names.of(number)), type_text(array.shape, array.element.mlir), self.place(op)

    def _origin(self, op: Any) -> Origin | None:
        return next(iter(self.seen.origins(op.location)), None)

    def _value(self, op: Any, result: int) -> int | None:
        """Return the program's value whose elements include a result of ``op``."""
        origin = self._origin(op)
        if origin is None or self.value_of is None:
            return None
        made = self.ops[origin.op].results if origin.op in self.ops and not origin.side else ()
        return made[result] if len(made) == len(op.results) else self.value_of(origin)


def _type(value: Any) -> str:
    kind = value.type
    return type_text(kind.shape, str(kind.element_type)) if isinstance(kind, ir.RankedTensorType) else ""
