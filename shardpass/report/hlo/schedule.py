"""The tasks of an HLO program: its ops by data dependence, or in the compiler's order.

XLA:TPU and XLA:GPU start collectives early and await them late, and the order of their ops is the order in which a
device runs them: such a program is timed in this order. XLA:CPU overlaps nothing; of its program ops start as early as
their data let them, as a compiler for an accelerator would arrange.

Work is that of ``hlo.work``: of ops that run by themselves. A computation that an op calls is inside of its task, a
loop's body as often as it runs; of a conditional all branches run, one after the other, as ``hlo.work`` counts them.

Cost: O(ops).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from shardpass.cost.in_order import Step, in_order
from shardpass.cost.schedule import COMPUTE, LINK, Task, alone, beside, links
from shardpass.diagnostics import Place
from shardpass.hlo.asynchronous import CPU, GPU, blocks, dones
from shardpass.hlo.read import HloOp, HloProgram
from shardpass.hlo.trip_counts import trip_count
from shardpass.report.rows import Row
from shardpass.report.schedule import Mark, Schedule, made_of, schedule_of

T = TypeVar("T", Task, Step)
_RUNS = frozenset({"call", "while", "conditional", "async-start"})


@dataclass(frozen=True, slots=True)
class OwnWork:
    """Modelled seconds of one run of an op, the number of runs, and the line."""

    seconds: float
    times: int
    place: Place


def schedule_hlo(
    program: HloProgram,
    rows: Sequence[Row],
    owners: Sequence[HloOp],
    work: Mapping[int, OwnWork],
    backend: str = CPU,
) -> Schedule:
    """Schedule ``program``. ``owners``: the op of each row; ``work``: by the ``id`` of an op."""
    if backend == CPU:
        return schedule_of(_Tasks(program, rows, owners, work).of(program.entry), rows)
    made = _Steps(program, rows, owners, work)
    made.backend = backend
    steps = made.of(program.entry)
    slots, _ = in_order(steps)
    return made_of(slots, [step.task for step in steps], rows, f"XLA:{backend.upper()}")


def _collective(every: Sequence[Row], numbers: tuple[int, ...], needs: tuple[int, ...] = ()) -> Task:
    """Return the task for one run of a collective. ``numbers``: the numbers of the collective's rows, one for each call
    site.
    """
    rows = [every[number] for number in numbers]
    runs = sum(row.times for row in rows if row.counted and not row.joined)
    first = rows[0]
    mark = Mark(first.kind, first.place, numbers)
    return Task(mark, sum(row.seconds for row in rows) / max(1, runs), links(first.axes), needs)


class _Computations(ABC, Generic[T]):
    """Convert each computation of a program once. ``numbers``: the rows of an op, by the op's ``id``."""

    def __init__(
        self, program: HloProgram, rows: Sequence[Row], owners: Sequence[HloOp], work: Mapping[int, OwnWork]
    ) -> None:
        self.program, self.rows, self.work = program, rows, work
        self.numbers: dict[int, list[int]] = {}
        for number, op in enumerate(owners):
            self.numbers.setdefault(id(op), []).append(number)
        self._known: dict[str, tuple[T, ...]] = {}
        self._open: set[str] = set()  # computations around this one: a call back to these is passed over

    def of(self, name: str) -> tuple[T, ...]:
        """Return the tasks of a computation."""
        if name not in self._known and name not in self._open and name in self.program.computations:
            self._open.add(name)
            self._known[name] = tuple(self._made(name))
            self._open.discard(name)
        return self._known.get(name, ())

    @abstractmethod
    def _made(self, name: str) -> Iterator[T]: ...

    def _own(self, op: HloOp) -> Task:
        """Return the task of the work of ``op`` itself."""
        known = self.work.get(id(op))
        return Task(Mark(op.name)) if known is None else Task(Mark(op.name, known.place), known.seconds, (COMPUTE,))


class _Tasks(_Computations[Task]):
    """The tasks of a program by their data."""

    def _made(self, name: str) -> Iterator[Task]:
        places: dict[str, int] = {}
        for place, op in enumerate(self.program.computations[name].ops.values()):
            needs = tuple(dict.fromkeys(places[operand] for operand in op.operands if operand in places))
            places[op.name] = place
            yield self._task(name, op, needs)

    def _task(self, computation: str, op: HloOp, needs: tuple[int, ...]) -> Task:
        numbers = tuple(self.numbers.get(id(op), ()))
        if numbers:
            return _collective(self.rows, numbers, needs)
        lists = [tasks for name in self._called(op) if (tasks := self.of(name))]
        own = self._own(op)
        if own.seconds:
            if not lists:
                return replace(own, needs=needs)
            lists.insert(0, (own,))
        if op.opcode == "while":
            trips = trip_count(self.program, computation, op) or 1
            return Task(Mark(op.name), needs=needs, inside=beside(lists), trips=trips)
        if len(lists) == 1:
            single = alone(lists[0])  # of an asynchronous collective, which does not keep others from running
            return Task(Mark(op.name), needs=needs, inside=lists[0]) if single is None else replace(single, needs=needs)
        parts = (
            Task(Mark("part"), needs=tuple(range(place)), inside=tuple(tasks)) for place, tasks in enumerate(lists)
        )
        return Task(Mark(op.name), needs=needs, inside=tuple(parts))

    def _called(self, op: HloOp) -> list[str]:
        """Return the computations inside the task of ``op``; for a fusion, those with collectives."""
        if op.opcode == "fusion":
            return [name for _, name in op.called if self._sends(name)]
        return [name for _, name in op.called] if op.opcode in _RUNS else []

    def _sends(self, name: str) -> bool:
        """Return whether a fused computation has collectives."""
        computation = self.program.computations.get(name)
        return computation is not None and any(id(op) in self.numbers for op in computation.ops.values())


class _Steps(_Computations[Step]):
    """The steps of a program in the order of the compiler ``backend``."""

    backend = GPU

    def _made(self, name: str) -> Iterator[Step]:
        computation = self.program.computations[name]
        ended_by = dones(self.program, computation)
        started: dict[str, list[int]] = {}  # by the op that ends it
        count = 0
        for op in computation.ops.values():
            awaits = tuple(started.get(op.name, ()))
            if numbers := self._sent_by(op):
                task = _collective(self.rows, numbers)
                if self.backend == GPU:  # one stream has all collectives
                    task = replace(task, resources=(LINK,))
                done = "" if blocks(op) else ended_by.get(op.name, "")
                if done:
                    started.setdefault(done, []).append(count)
                yield Step(task, awaits, blocks=not done)
            elif awaits or self._takes_time(op):
                yield self._step(name, op, awaits)
            else:
                continue
            count += 1

    def _takes_time(self, op: HloOp) -> bool:
        return op.opcode in _RUNS or id(op) in self.work

    def _step(self, computation: str, op: HloOp, awaits: tuple[int, ...]) -> Step:
        own = self._own(op)
        inside = tuple(step for _, called in op.called for step in self.of(called)) if op.opcode in _RUNS else ()
        if not inside:
            return Step(own, awaits)
        trips = trip_count(self.program, computation, op) or 1 if op.opcode == "while" else 1
        own = Task(Mark(op.name), trips=trips, inside=tuple(step.task for step in inside))
        return Step(own, awaits, inside=inside)

    def _sent_by(self, op: HloOp) -> tuple[int, ...]:
        """Return the rows of the collectives that run as ``op``: the op is a collective, or contains some."""
        sent = list(self.numbers.get(id(op), ()))
        if not sent and op.opcode in ("fusion", "async-start"):
            for _, name in op.called:
                inner = self.program.computations.get(name)
                sent += [n for one in inner.ops.values() for n in self.numbers.get(id(one), ())] if inner else []
        return tuple(sent)
