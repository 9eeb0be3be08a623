"""The tasks of a built module: its ops by their data, collectives over the links of their axes, work as planned.

Seconds of work are the plan's, by op of the program that was partitioned. The ops that were built for it say its number
(``watch``): its work is that of those with its own name, or of all, in equal parts. What is left, of ops of which
nothing was built, runs by itself at the end.

Cost: one walk over the module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardpass.cost.machine import Machine
from shardpass.cost.schedule import COMPUTE, Task, beside, branches, links
from shardpass.ir.annotations import main_of
from shardpass.ir.collectives import OPS
from shardpass.ir.order import bytes_of
from shardpass.ir.trip_counts import trip_count
from shardpass.ir.walk import CONTROL_FLOW, inputs_of, operation
from shardpass.report.rows import Row, WorkFact
from shardpass.report.schedule import Mark, Schedule, schedule_of

_LOOP = "stablehlo.while"
_NO_WORK = frozenset({"stablehlo.return", "func.return"})

NumberOf = Callable[[Any], int | None]


def schedule_module(
    module: Any,
    ops: Sequence[Any],
    rows: Sequence[Row],
    compute: Sequence[WorkFact],
    number_of: NumberOf,
    names: Mapping[int, str],
    machine: Machine,
) -> Schedule:
    """Schedule the ops of a built ``module``, with the collectives beside work that ``machine`` allows.

    ``ops``: those of ``rows``; ``number_of``: an op's number in the program; ``names``: its ops' names by number.
    """
    tasks = _Tasks(ops, rows, {one.op: one for one in compute}, number_of, names, machine)
    body = main_of(module).regions[0].blocks[0]
    tasks.share(body)
    return schedule_of(tasks.of_main(body), rows, machine.in_flight)


class _Tasks:
    """Make tasks of blocks, from the seconds of one run of each part of an op's work."""

    def __init__(
        self,
        ops: Sequence[Any],
        rows: Sequence[Row],
        work: Mapping[int, WorkFact],
        number_of: NumberOf,
        names: Mapping[int, str],
        machine: Machine,
    ) -> None:
        self.machine = machine
        self.rows, self.work, self.number_of, self.names = rows, work, number_of, names
        self.row_of = {op: number for number, op in enumerate(ops)}
        self.numbers: dict[Any, int] = {}
        self.count = Counter[int]()  # of ops among which a number's work is shared
        self.own: set[Any] = set()  # ops with the name of the program's op

    def share(self, body: Any) -> None:
        """Count the ops that were built for each op of the program."""
        built: dict[int, list[Any]] = {}
        sent: dict[int, list[Any]] = {}
        for op in _every(body):
            if op.name in _NO_WORK or op.name in CONTROL_FLOW:
                continue
            number = self.number_of(op)
            if number is not None and number in self.work:
                (sent if op.name in OPS else built).setdefault(number, []).append(op)
        for number, some in {**sent, **built}.items():
            own = [op for op in some if op.name == self.names.get(number)] or some
            self.count[number] = len(own)
            self.numbers.update((op, number) for op in own)

    def of_main(self, body: Any) -> tuple[Task, ...]:
        tasks = list(self._block(body, 1, {}))
        left = sum(one.seconds for number, one in self.work.items() if not self.count[number])
        if left:
            tasks.append(Task(Mark("other work"), left, (COMPUTE,), tuple(range(len(tasks)))))
        return tuple(tasks)

    def _block(self, block: Any, runs: int, made: dict[Any, int]) -> Iterator[Task]:
        """Yield the tasks of a block. ``runs``: how often a step runs the block. ``made``: the task that makes each
        value.
        """
        place = 0
        for op in map(operation, block.operations):
            needs = tuple(dict.fromkeys(made[value] for value in inputs_of(op) if value in made))
            for follows, task in enumerate(self._tasks(op, runs, needs)):
                yield replace(task, needs=(place - 1,)) if follows else task
                place += 1
            made.update((result, place - 1) for result in op.results)

    def _tasks(self, op: Any, runs: int, needs: tuple[int, ...]) -> Iterator[Task]:
        """Yield the tasks of one op in sequence: a collective, and the copies for the collective."""
        name, row, number = op.name, self.row_of.get(op), self.numbers.get(op)
        if name in CONTROL_FLOW:
            yield self._control_flow(op, runs, needs)
            return
        if row is not None:
            known = self.rows[row]
            mark = Mark(known.kind, known.place, (row,), known.op)
            made = sum(bytes_of(result.type) for result in op.results)
            blocks = self.machine.blocks(known.kind, known.bytes_each)
            yield Task(mark, known.seconds / max(1, runs), links(known.axes), needs, bytes=made, blocks=blocks)
        if number is not None:
            work = self.work[number]
            mark = Mark("copy" if row is not None else name.removeprefix("stablehlo."), work.place, op=number)
            yield Task(mark, work.seconds / self.count[number] / max(1, runs), (COMPUTE,), needs)
        elif row is None:
            yield Task(Mark(name), 0.0, (), needs)

    def _control_flow(self, op: Any, runs: int, needs: tuple[int, ...]) -> Task:
        """Return the condition and body of a loop; for a conditional, all branches in sequence, as in the count of
        work.
        """
        trips = (trip_count(op) or 1) if op.name == _LOOP else 1
        regions = [tuple(self._block(region.blocks[0], runs * trips, {})) for region in op.regions]
        mark = Mark(op.name.removeprefix("stablehlo."))
        inside = beside(regions) if op.name == _LOOP else branches(regions, Mark("branch"))
        return Task(mark, needs=needs, inside=inside, trips=trips)


def _every(block: Any) -> Iterator[Any]:
    """Yield the ops of a block, including ops inside control flow."""
    todo = [block]
    while todo:
        for op in map(operation, todo.pop().operations):
            yield op
            if op.name in CONTROL_FLOW:
                todo += [inner for region in op.regions for inner in region.blocks]
