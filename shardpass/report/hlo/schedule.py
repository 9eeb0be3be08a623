"""The tasks of a program of HLO: its ops by their data, asynchronous collectives from start to done.

Work is that of ``hlo.work``: of ops that run by themselves. A computation that an op calls is inside of its task, a
loop's body as often as it runs; of a conditional all branches run, one after the other, as ``hlo.work`` counts them.

Cost: O(ops).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shardpass.cost.schedule import COMPUTE, Task
from shardpass.diagnostics import Place
from shardpass.hlo.read import HloOp, HloProgram
from shardpass.hlo.trip_counts import trip_count
from shardpass.report.rows import Row
from shardpass.report.schedule import Mark, Schedule, alone, beside, links, schedule_of

_RUNS = frozenset({"call", "while", "conditional", "async-start"})


@dataclass(frozen=True, slots=True)
class OwnWork:
    """Modelled seconds of one run of an op, how often it runs, and its line."""

    seconds: float
    times: int
    place: Place


def schedule_hlo(
    program: HloProgram,
    rows: Sequence[Row],
    owners: Sequence[HloOp],
    work: Mapping[int, OwnWork],
) -> Schedule:
    """Schedules ``program``. ``owners``: the op of each row; ``work``: by the ``id`` of an op."""
    return schedule_of(_Tasks(program, rows, owners, work).of(program.entry), rows)


class _Tasks:
    def __init__(
        self,
        program: HloProgram,
        rows: Sequence[Row],
        owners: Sequence[HloOp],
        work: Mapping[int, OwnWork],
    ) -> None:
        self.program, self.rows, self.work = program, rows, work
        self.numbers: dict[int, list[int]] = {}
        for number, op in enumerate(owners):
            self.numbers.setdefault(id(op), []).append(number)
        self.made: dict[str, tuple[Task, ...]] = {}
        self.open: set[str] = set()  # computations around this one: a call back to these is passed over

    def of(self, name: str) -> tuple[Task, ...]:
        """Returns the tasks of a computation."""
        if name not in self.made and name not in self.open and name in self.program.computations:
            self.open.add(name)
            self.made[name] = tuple(self._tasks(name))
            self.open.discard(name)
        return self.made.get(name, ())

    def _tasks(self, name: str) -> Iterator[Task]:
        places: dict[str, int] = {}
        for place, op in enumerate(self.program.computations[name].ops.values()):
            needs = tuple(dict.fromkeys(places[operand] for operand in op.operands if operand in places))
            places[op.name] = place
            yield self._task(name, op, needs)

    def _task(self, computation: str, op: HloOp, needs: tuple[int, ...]) -> Task:
        numbers = tuple(self.numbers.get(id(op), ()))
        if numbers:
            return self._collective(numbers, needs)
        lists = [tasks for name in self._called(op) if (tasks := self.of(name))]
        if (known := self.work.get(id(op))) is not None and known.seconds:
            own = Task(Mark(op.name, known.place), known.seconds, (COMPUTE,))
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
        """Returns the computations inside of the task of ``op``; of a fusion those with collectives."""
        if op.opcode == "fusion":
            return [name for _, name in op.called if self._sends(name)]
        return [name for _, name in op.called] if op.opcode in _RUNS else []

    def _collective(self, numbers: tuple[int, ...], needs: tuple[int, ...]) -> Task:
        """Returns the task of one run of a collective; ``numbers``: of its rows, one for each place where it runs."""
        rows = [self.rows[number] for number in numbers]
        runs = sum(row.times for row in rows if row.counted and not row.joined)
        first = rows[0]
        mark = Mark(first.kind, first.place, numbers)
        return Task(mark, sum(row.seconds for row in rows) / max(1, runs), links(first.axes), needs)

    def _sends(self, name: str) -> bool:
        """Whether a fused computation has collectives."""
        computation = self.program.computations.get(name)
        return computation is not None and any(id(op) in self.numbers for op in computation.ops.values())
