"""Find the redistributions and repeated work in a plan that other shardings would avoid.

Everything is read off the plan, so it is what partitioning will build. O(parts of the plan); what constraints cost, one
plan more for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.listed import blocks_of, operand_steps, results_of
from shardpass.planning.price.steps import BlockPlan, ControlFlowPlan, OpPlan, Reshard, SplitPlan, Step, WholePlan
from shardpass.program.program import Op, constraints_of
from shardpass.program.shardings import Shardings
from shardpass.sharding import Sharding

HEAVY = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})  # ops whose work outweighs their bytes


@dataclass(frozen=True, slots=True)
class Redistribution:
    """A reshard of the plan. ``op``: the op that needs it, None for a result of main.

    ``times``: how often it runs; None in a loop whose number of trips is unknown.
    """

    op: Op | None
    reshard: Reshard
    times: int | None

    @property
    def gathers_all(self) -> bool:
        """Whether it makes a split array whole on every device."""
        return self.reshard.target.is_replicated and not self.reshard.source.sharding.is_replicated


@dataclass(frozen=True, slots=True)
class RepeatedWork:
    """An op of ``work`` innermost steps that is cut into ``parts`` only: ``devices // parts`` devices repeat
    each part.
    """

    op: Op
    work: int
    parts: int
    devices: int


@dataclass(frozen=True, slots=True)
class ComputedWhole:
    """An op that shardpass cannot split; a device receives ``bytes`` to have its operands whole."""

    op: Op
    bytes: int


def redistributions(plan: ProgramPlan) -> Iterator[Redistribution]:
    """Yield every redistribution of the plan, in program order."""
    yield from _block(plan.body, None, 1)


def repeated_work(plan: ProgramPlan) -> Iterator[RepeatedWork]:
    """Yield the heavy ops, outside of manual regions, that are cut into fewer parts than there are devices."""
    for one in every_op(plan.body):
        if isinstance(one, SplitPlan) and one.op.name in HEAVY and not one.op.mesh.manual:
            parts, devices = one.local.split.count, one.op.mesh.num_devices
            if parts < devices and one.op.model is not None:
                yield RepeatedWork(one.op, prod(f.size for f in one.op.model.rule.factors), parts, devices)


def computed_whole(plan: ProgramPlan) -> Iterator[ComputedWhole]:
    """Yield the ops without a rule whose operands must be gathered."""
    for one in every_op(plan.body):
        if isinstance(one, WholePlan):
            yield from (ComputedWhole(one.op, remark.bytes) for remark in one.remarks)


@dataclass(frozen=True, slots=True)
class CostlyConstraint:
    """A constraint that costs ``bytes``, received to reshard the array to the constraint and from there to its
    users.

    ``saved``: by how many bytes less the program would receive without the constraint.
    """

    op: Op
    sharding: Sharding
    bytes: int
    saved: int


def costly_constraints(plan: ProgramPlan, shardings: Shardings, most: int | None = None) -> Iterator[CostlyConstraint]:
    """Yield the constraints without which a plan under the same ``shardings`` would receive less, in program order.

    One plan is built for each constraint, if freeing all of them saves anything. ``most`` limits that to the
    constraints around which most bytes move.
    """
    program, total = plan.program, plan.bytes_received
    binding = constraints_of(program) - program.wishes
    freed = replace(program, wishes=binding | program.wishes)
    if not binding or plan_program(freed, shardings, machine=plan.machine).bytes_received >= total:
        return
    around: Counter[int] = Counter()  # bytes by the array that moves
    for one in redistributions(plan):
        around[one.reshard.made.array] += one.reshard.bytes * (one.times or 1)
        if one.op is not None and one.op.number in binding:
            around[one.op.results[0]] += one.reshard.bytes * (one.times or 1)
    tried = [op for op in program.body.every_op() if op.number in binding]
    heaviest = {op.number for op in sorted(tried, key=lambda op: -around[op.results[0]])[:most]}
    for op in tried:
        if op.number in heaviest:
            free = plan_program(replace(program, wishes=program.wishes | {op.number}), shardings, machine=plan.machine)
            if free.bytes_received < total:
                result = op.results[0]
                yield CostlyConstraint(op, shardings.of[result], around[result], total - free.bytes_received)


def every_op(body: BlockPlan) -> Iterator[OpPlan]:
    """Yield the plans of the ops of a block and of the blocks inside."""
    for block in blocks_of(body):
        yield from block.ops


def _block(block: BlockPlan, holder: Op | None, times: int | None) -> Iterator[Redistribution]:
    for plan in block.ops:
        yield from _op(plan, times)
    for operand in block.returned:
        if operand is not None:
            yield from _steps(operand.steps, holder, times)


def _op(plan: OpPlan, times: int | None) -> Iterator[Redistribution]:
    op = plan.op
    yield from _steps(operand_steps(plan), op, times)
    if isinstance(plan, ControlFlowPlan):
        inside = times if not op.is_loop else None if times is None or op.trips is None else times * op.trips
        for block in plan.blocks:
            yield from _block(block, op, inside)
    for result in results_of(plan):
        if result is not None and result.reshard is not None:
            yield Redistribution(op, result.reshard, times)


def _steps(steps: Sequence[Step], op: Op | None, times: int | None) -> Iterator[Redistribution]:
    for step in steps:
        if isinstance(step, Reshard):
            yield Redistribution(op, step, times)
