"""Estimate the time of a plan: the seconds of each op by itself, and of a schedule in which ops overlap.

**The sum** (``op_prices``) is the measure by which plans of one program are compared. The price of an op is the sum of
its reshards, its own collectives, the completions of its partial results and its work on one device, each priced by a
``Clock``. Per-device code is priced by its work alone. The prices of ops in a loop are multiplied by its trip count. In
a folded program (``fold``), the price of an op is multiplied by the number of ops that it represents. A copy that one
op left is reused by another op only for the values that both read; the missing values are resharded again.

Complexity: O(steps of the plan).

**The schedule** (``cost.schedule``) overlaps collectives with work. Each reshard, completion and collective of an op is
a task on the links of its axes. The op itself is a compute task, whose seconds are those of ``op_prices`` without
collectives. A task depends on the tasks that make the copies that it reads. A loop or branch is a task that contains
its blocks, and depends on what these read from outside.

Example, ``y = (x @ u) @ v`` with both weights split over d and gathered: the gather of v reads an argument and depends
on no task, so it overlaps with the first product. If activations are exchanged instead, each exchange depends on the
product before it.

Complexity: O(steps) tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from shardpass.cost.machine import Machine
from shardpass.cost.schedule import COMPUTE, Slot, Task, ahead, beside, branches, links, schedule
from shardpass.ops.model import LocalPlan
from shardpass.planning.price.borders import Borders, borders
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.fold import Folded
from shardpass.planning.price.listed import (
    Sent,
    Times,
    operand_copies,
    operand_steps,
    results_of,
    sent_by_op,
    sent_by_reshard,
    sent_by_results,
)
from shardpass.planning.price.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    OperandPlan,
    OpPlan,
    Recompute,
    Reshard,
    ResultPlan,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)
from shardpass.program.program import Op, Program

RETURNED = -1  # the "op" of what main returns


def op_prices(program: Program, body: BlockPlan, clock: Clock, folded: Folded | None = None) -> dict[int, float]:
    """Return the seconds of each op by number, and of what main returns under ``RETURNED``.

    ``body``: the plan of ``program``. ``folded``: given if ``program`` is a folded program.
    """
    walk = _Walk(program, clock, folded.times if folded else {}, folded.operand_values if folded else {})
    walk.block(body, 1)
    counts = folded.result_times if folded else (1,) * len(body.returned)
    for operand, count in zip(body.returned, counts, strict=True):
        if operand is not None:
            walk.steps(operand.steps, RETURNED, count)
    return walk.prices


@dataclass
class _Walk:
    program: Program
    clock: Clock
    times: Mapping[int, int]
    operand_values: Mapping[tuple[int, int], frozenset[int]]
    prices: dict[int, float] = field(default_factory=dict)
    brought: dict[Copy, tuple[Reshard, set[int]]] = field(default_factory=dict)  # of which values there is this copy
    # of work: equal layers share their local plans, which the plan of the program keeps
    worked: dict[tuple[int, Borders], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.borders = borders(self.program)

    def block(self, block: BlockPlan, runs: int) -> None:
        for plan in block.ops:
            self.op(plan, runs * self.times.get(plan.op.number, 1))

    def op(self, plan: OpPlan, runs: int) -> None:
        number = plan.op.number
        match plan:
            case SplitPlan():
                self.operands(plan.operands, number, runs)
                self.local(plan.local, number, runs)
                self.results(plan.results, plan.op, runs)
                if plan.op.model is not None:
                    self.work(plan.op, plan.local, number, runs)
            case WholePlan():
                self.operands([operand for _, operand in plan.operands], number, runs)
                self.results(plan.results, plan.op, runs)
            case ConstraintPlan():
                self.operands((plan.operand,), number, runs)
            case BorderPlan():
                if plan.operand is not None:
                    self.operands((plan.operand,), number, runs)
                self.results((plan.result,), plan.op, runs)
            case ControlFlowPlan():
                for hoisted in plan.before:
                    self.steps(hoisted.steps, number, runs)
                self.operands(plan.operands, number, runs)
                inside = runs * (plan.op.trips or 1) if plan.op.is_loop else runs
                for block in plan.blocks:
                    self.block(block, inside)
                    self.operands([one for one in block.returned if one is not None], number, inside)
                self.results(plan.results, plan.op, runs)
            case UntouchedPlan():
                self.untouched(plan.op, number, runs)
            case LeftOutPlan():
                self.steps(plan.steps, number, runs)

    def add(self, number: int, price: float) -> None:
        self.prices[number] = self.prices.get(number, 0.0) + price

    def operands(self, operands: Iterable[OperandPlan], number: int, runs: int) -> None:
        for operand in operands:
            if operand.steps:
                self.steps(operand.steps, number, runs)
            if self.operand_values:
                self.copy(operand.copy, number, runs)

    def copy(self, copy: Copy, number: int, runs: int) -> None:
        """Add the reshard of a copy for those of the op's values for which no op before left the copy."""
        values, known = self.operand_values.get((number, copy.array)), self.brought.get(copy)
        if values is None or known is None:
            return
        reshard, there = known
        missing = values - there
        if missing and there:
            self.reshard(reshard, number, runs * len(missing) / len(values))
        there.update(values)

    def results(self, results: Iterable[ResultPlan | None], op: Op, runs: int) -> None:
        for result in results:
            if result is None:
                continue
            for step in result.completions:
                self.add(op.number, runs * self.clock.collective(step.kind, step.bytes, step.axes, op.mesh))
            if result.reshard is not None:
                self.reshard(result.reshard, op.number, runs)

    def steps(self, steps: Iterable[Step], number: int, runs: int) -> None:
        for step in steps:
            if isinstance(step, Reshard):
                self.reshard(step, number, runs)
                if (number, step.made.array) in self.operand_values:
                    self.brought[step.made] = step, set()
                continue
            self.local(step.local, number, runs)
            if step.op.model is not None:
                self.work(step.op, step.local, number, runs)

    def local(self, local: LocalPlan, number: int, runs: int) -> None:
        for one in local.collectives:
            self.add(number, runs * self.clock.collective(one.kind, one.bytes, one.axes, local.split.mesh))

    def work(self, op: Op, local: LocalPlan, number: int, runs: float) -> None:
        assert op.model is not None
        at = self.borders[op.number]
        seconds = self.worked.get((id(local), at))
        if seconds is None:
            seconds = self.clock.work(op.model.rule, local.split, self.program.elements(op), at)
            self.worked[id(local), at] = seconds
        self.add(number, runs * seconds)

    def untouched(self, op: Op, number: int, runs: float) -> None:
        """Add the work of per-device code on the tiles that it is given."""
        if op.alone is not None:
            operands, results = ([self.program.array(value) for value in side] for side in (op.operands, op.results))
            at = self.borders[op.number]
            self.add(number, runs * self.clock.least_work(op.alone.rule, operands, results, 1, at))
        for block in op.inside:
            for inner in block.ops:
                self.untouched(inner, number, runs * (op.trips or 1))

    def reshard(self, reshard: Reshard, number: int, runs: float) -> None:
        if reshard.bytes:
            moved = self.clock.move(reshard.type, reshard.source.sharding, reshard.target, reshard.mesh)
            self.add(number, runs * moved)


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
    """The tasks of a block so far. ``made``: the task that makes each copy. ``read``: copies from outside the block."""

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
            blocks = self.machine.blocks(one.kind, one.bytes)
            task = Task("sent", one.seconds(self.machine), links(one.axes.split(",")), bytes=one.bytes, blocks=blocks)
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
