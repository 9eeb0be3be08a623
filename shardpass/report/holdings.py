"""The memory of a device for people: the account of the built module, with the lines and names of what it holds.

Bytes come from ``ir.memory``, names from the plan: ops of a watched pipeline say which op of the program they were
built for (``watch``). Of a module that was partitioned already, lines alone are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jaxlib.mlir import ir

from shardpass.cost.lifetimes import CPU, END, OTHERS
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
    """``f32[64,128]``."""
    return f"{element}[{','.join(map(str, shape))}]"


def memory_facts(module: Any, machine: str, told: Told | None = None) -> MemoryFacts:
    """The account of a built ``module`` as XLA's client for ``machine`` would compile it."""
    found = memory_of(module, CPU if machine == "cpu" else OTHERS)
    told = Told(Watched()) if told is None else told
    account = found.account
    peak = found.ops[account.peak_op] if account.peak_op is not None and account.peak_op != END else None
    return MemoryFacts(
        account.arguments,
        account.results,
        account.temporaries,
        tuple(_at(found, told)),
        None if peak is None else told.number(peak),
        NOWHERE if peak is None else told.place(peak),
        _holdings(found, told),
        account.donated,
    )


def _at(found: ModuleMemory, told: Told) -> list[tuple[int, int]]:
    """Bytes by the numbers of the program's ops; an op that tells none is the one's before it."""
    out, number = [], END
    for place, size in found.account.at:
        known = None if place == END else told.number(found.ops[place])
        number = END if place == END else number if known is None else known
        out.append((number, size))
    return out


def _holdings(found: ModuleMemory, told: Told) -> tuple[Holding, ...]:
    """What is alive at the peak, equal ones of one line together, most bytes first."""
    rows: dict[tuple[str, str, Place], list[int]] = {}
    for buffer, size in found.account.alive:
        rows.setdefault(told.about(found.values[buffer]), []).append(size)
    holdings = [Holding(name, kind, sum(sizes), place, len(sizes)) for (name, kind, place), sizes in rows.items()]
    return tuple(sorted(holdings, key=lambda one: -one.bytes)[:MOST_HELD])


class Told:
    """What the ops of a built module tell of the program that it was built from, if that was watched."""

    def __init__(
        self,
        seen: Watched,
        names: Names | None = None,
        ops: Mapping[int, Op] | None = None,
        value_of: ValueOf | None = None,
    ) -> None:
        """``ops``: those of the program by number; ``value_of``: the value that an origin is about."""
        self.seen, self.names, self.ops, self.value_of = seen, names, ops or {}, value_of
        self.program: Program | None = None if seen.plan is None else seen.plan.program

    def number(self, op: Any) -> int | None:
        """Of the program's op that ``op`` was built for; ``END`` of what was built for main's results."""
        origin = self._origin(op)
        if origin is None or self.program is None:
            return None
        return origin.op if origin.op < self.program.count else END

    def place(self, op: Any) -> Place:
        """The user's line."""
        number = self.number(op)
        if number is None or number == END or self.names is None:
            return user_place(op.location)
        return self.names.frame(self.ops[number]).place

    def about(self, value: Any) -> tuple[str, str, Place]:
        """The name of a value, the type of the whole array, and the line that makes it."""
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
        """The value of the program that a result of ``op`` is, or is a part of."""
        origin = self._origin(op)
        if origin is None or self.value_of is None:
            return None
        made = self.ops[origin.op].results if origin.op in self.ops and not origin.side else ()
        return made[result] if len(made) == len(op.results) else self.value_of(origin)


def _type(value: Any) -> str:
    kind = value.type
    return type_text(kind.shape, str(kind.element_type)) if isinstance(kind, ir.RankedTensorType) else ""
