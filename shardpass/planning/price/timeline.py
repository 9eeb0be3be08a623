"""When the steps of a plan run: its collectives by the copies that they read, beside its work (``cost.schedule``).

Each reshard, completion and own collective of an op is a task on the links of its axes, and the op one that computes:
its seconds are those of ``op_prices`` without collectives. A task needs what makes the copies that it reads. A loop
or branch is a task with its blocks inside, and needs what these read from outside.

Example, ``y = (x @ u) @ v`` with both weights split over d and gathered: the gather of v reads an argument and needs
nothing, so it runs beside the first product. Where activations are exchanged for it, each waits for the product before.

Complexity: O(steps) tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from shardpass.cost.machine import Machine
from shardpass.cost.schedule import COMPUTE, Slot, Task, ahead, beside, branches, links, schedule
from shardpass.planning.price.listed import Sent, Times, sent_by_op, sent_by_reshard, sent_by_results
from shardpass.planning.price.op_parts import operand_copies, operand_steps, results_of
from shardpass.planning.price.op_prices import RETURNED
from shardpass.planning.price.steps import (
    BlockPlan,
    BorderPlan,
    ControlFlowPlan,
    Copy,
    OpPlan,
    Recompute,
    ResultPlan,
    SplitPlan,
    Step,
    UntouchedPlan,
)
from shardpass.program.program import Op

Made = Copy | int  # a copy of an array; a value of a region that is manual over all axes
_ONCE = Times(1, True)
_MANUAL = (UntouchedPlan, BorderPlan)


@dataclass(frozen=True)
class Timeline:
    """When ``body`` runs on ``machine``; ``work``: the seconds of each op, without collectives.

    ``seconds``: of one run, overlapped as the machine does. ``ahead``: bytes that come ahead of their use.
    """

    body: BlockPlan
    machine: Machine
    work: Mapping[int, float]

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        return schedule(tuple(_Blocks(self.machine, self.work).main(self.body)), self.machine.in_flight)

    @property
    def seconds(self) -> float:
        return max((slot.end for slot in self.slots), default=0.0)

    @cached_property
    def ahead(self) -> int:
        return ahead(self.slots)


@dataclass
class _Block:
    """The tasks of a block so far. ``made``: the task that makes each copy; ``read``: copies from outside of it."""

    tasks: list[Task] = field(default_factory=list)
    made: dict[Made, int] = field(default_factory=dict)
    read: dict[Made, None] = field(default_factory=dict)

    def needs(self, copies: Iterable[Made]) -> list[int]:
        places = []
        for copy in copies:
            if (place := self.made.get(copy)) is None:
                self.read[copy] = None
            else:
                places.append(place)
        return places

    def add(self, task: Task, needs: Iterable[int]) -> int:
        self.tasks.append(replace(task, needs=tuple(dict.fromkeys(needs))))
        return len(self.tasks) - 1


@dataclass(frozen=True)
class _Blocks:
    machine: Machine
    work: Mapping[int, float]

    def main(self, body: BlockPlan) -> Iterator[Task]:
        block = self.block(body, 1)
        yield from block.tasks
        if left := self.work.get(RETURNED):
            yield Task("returned", left, (COMPUTE,), tuple(range(len(block.tasks))))

    def block(self, plan: BlockPlan, runs: int) -> _Block:
        """Return the tasks of a block. ``runs``: how often a run of the program runs it."""
        out = _Block()
        for each in plan.ops:
            self.op(each, out, runs)
        for operand in plan.returned:
            if operand is not None:
                self.steps(operand.steps, None, out)
                out.needs([operand.copy])
        return out

    def op(self, plan: OpPlan, out: _Block, runs: int) -> None:
        op = plan.op
        self.steps(operand_steps(plan), op, out)
        needs = out.needs([*operand_copies(plan), *(op.operands if isinstance(plan, _MANUAL) else ())])
        seconds = self.work.get(op.number, 0.0) / runs
        place = out.add(Task(op.number, seconds, (COMPUTE,) if seconds else ()), needs)
        if isinstance(plan, ControlFlowPlan):
            place = self.control_flow(plan, out, place, runs)
        elif isinstance(plan, _MANUAL):
            out.made.update(dict.fromkeys(op.results, place))
        if isinstance(plan, SplitPlan):
            place = self.sent(sent_by_op(plan.local, op, _ONCE), [place], out)
        for result in results_of(plan):
            if result is not None:
                self.result(result, op, place, out)

    def steps(self, steps: Iterable[Step], op: Op | None, out: _Block) -> None:
        for step in steps:
            if isinstance(step, Recompute):
                sent = sent_by_op(step.local, step.op, _ONCE)
                needs = out.needs(step.operands)
            else:
                sent = sent_by_reshard(step, op, self.machine, _ONCE) if step.bytes else iter(())
                needs = out.needs([step.source])
            out.made[step.made] = self.sent(sent, needs, out)

    def sent(self, sent: Iterable[Sent], needs: Sequence[int], out: _Block) -> int:
        """Add collectives, one after the other; return the place of the last task."""
        place = -1
        for one in sent:
            task = Task("sent", one.seconds(self.machine), links(one.axes.split(",")), bytes=one.bytes)
            place = out.add(task, needs if place < 0 else (place,))
        return place if place >= 0 else needs[0] if len(needs) == 1 else out.add(Task("brought"), needs)

    def result(self, result: ResultPlan, op: Op, place: int, out: _Block) -> None:
        completed = self.sent(sent_by_results((replace(result, reshard=None),), op, self.machine, _ONCE), [place], out)
        out.made[Copy(result.value, result.computed)] = completed
        wanted = completed
        if result.reshard is not None:
            wanted = self.sent(sent_by_reshard(result.reshard, op, self.machine, _ONCE), [completed], out)
            out.made[result.reshard.made] = wanted
        out.made[Copy(result.value, result.wanted)] = wanted

    def control_flow(self, plan: ControlFlowPlan, out: _Block, before: int, runs: int) -> int:
        """Add a loop as its condition and body; of a conditional all branches, one after the other."""
        op = plan.op
        trips = (op.trips or 1) if op.is_loop else 1
        blocks = [self.block(block, runs * trips) for block in plan.blocks]
        read = out.needs(copy for block in blocks for copy in block.read)
        lists = [block.tasks for block in blocks]
        timed = any(task.seconds or task.inside for tasks in lists for task in tasks)
        inside = beside(lists) if op.is_loop else branches(lists, "branch")
        place = out.add(Task(op.number, inside=inside if timed else (), trips=trips), [before, *read])
        out.made.update(
            (Copy(value, sharding), place) for value, sharding in zip(op.results, plan.shardings, strict=False)
        )
        return place
