"""List the contents of a plan: the parts of each op, and its collectives with their numbers of runs.

The collectives of a plan, in program order, with the number of times that each runs.

A reshard lists the steps of its redistribution plan; an op the collectives of its ``LocalPlan`` and the completions of
its results. What stands in a loop runs as often as the loop does: trips multiply from the outside in. Of a branch every
region is listed, as any may run.

The parts of an op's plan, whatever kind of plan it is: its operands, its results, and the steps that bring them.

| plan | operands | results | steps beside theirs |
|---|---|---|---|
| SplitPlan, WholePlan | each | each | |
| ConstraintPlan | the one; the op itself takes nothing | | |
| BorderPlan | the tile that passes, if there is one | the one | |
| ControlFlowPlan | each; its blocks are plans of their own | | those that are done before a loop for ops inside |
| UntouchedPlan | none; it takes the tile that enters | | |
| LeftOutPlan | none | | those that serve later ops |

Who adds a kind of plan adds a row, and a case to each function here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardpass.by_device import Receivers
from shardpass.cost.groups import seconds
from shardpass.cost.machine import Machine
from shardpass.ops.model import LocalPlan
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.price.prices import stack_manual_axes
from shardpass.planning.price.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    MatmulLoop,
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
from shardpass.program.program import Op
from shardpass.redistribute import Plan, plan_redistribution
from shardpass.redistribute.program.steps import Step as RedistributionStep
from shardpass.redistribute.program.steps import StepKind
from shardpass.sharding import Sharding

Operands = tuple[OperandPlan, ...]
Results = tuple[ResultPlan | None, ...]


def operands_of(plan: OpPlan) -> Operands:
    """Return the plans of the operands of ``plan``, in order."""
    match plan:
        case SplitPlan() | ControlFlowPlan():
            return plan.operands
        case WholePlan():
            return tuple([operand for _, operand in plan.operands])
        case ConstraintPlan():
            return (plan.operand,)
        case BorderPlan():
            return () if plan.operand is None else (plan.operand,)
        case UntouchedPlan() | LeftOutPlan():
            return ()


def results_of(plan: OpPlan) -> Results:
    """Return the plans of the results of ``plan``, None for each unused result."""
    match plan:
        case SplitPlan() | WholePlan() | ControlFlowPlan():
            return plan.results
        case BorderPlan():
            return (plan.result,)
        case ConstraintPlan() | UntouchedPlan() | LeftOutPlan():
            return ()


def operand_steps(plan: OpPlan) -> tuple[Step, ...]:
    """Return the steps that reshard the operands of ``plan``, in order."""
    if isinstance(plan, LeftOutPlan):
        return plan.steps
    if isinstance(plan, ControlFlowPlan) and plan.before:
        first = [step for hoisted in plan.before for step in hoisted.steps]
        return (*first, *[step for operand in plan.operands for step in operand.steps])
    return tuple([step for operand in operands_of(plan) for step in operand.steps])


def steps_of(plan: OpPlan) -> Iterator[Step]:
    """Yield the steps that reshard the operands of ``plan``, then the reshards of its results."""
    yield from operand_steps(plan)
    for result in results_of(plan):
        if result is not None and result.reshard is not None:
            yield result.reshard


def operand_copies(plan: OpPlan) -> tuple[Copy, ...]:
    """Return the copies that the op itself reads, after its operands are resharded."""
    match plan:
        case ConstraintPlan():  # its result is the operand's array
            return ()
        case UntouchedPlan():
            return () if plan.entering is None else (plan.entering,)
        case _:
            return tuple([operand.copy for operand in operands_of(plan)])


def sources_of(step: Step) -> tuple[Copy, ...]:
    """Return the copies that ``step`` reads."""
    return (step.source,) if isinstance(step, Reshard) else step.operands


def blocks_of(block: BlockPlan) -> Iterator[BlockPlan]:
    """Yield ``block`` and the blocks inside of it, outer ones first."""
    yield block
    for plan in block.ops:
        if isinstance(plan, ControlFlowPlan):
            for inner in plan.blocks:
                yield from blocks_of(inner)


def with_parts(plan: OpPlan, operands: Operands, results: Results) -> OpPlan:
    """Return ``plan`` with other ``operands`` and ``results``, as many of each as before."""
    match plan:
        case SplitPlan():
            return replace(plan, operands=operands, results=results)
        case WholePlan():
            values = [value for value, _ in plan.operands]
            return replace(plan, operands=tuple(zip(values, operands, strict=True)), results=results)
        case ConstraintPlan():
            (operand,) = operands
            return replace(plan, operand=operand)
        case BorderPlan():
            (result,) = results
            assert result is not None
            return replace(plan, operand=operands[0] if operands else None, result=result)
        case ControlFlowPlan():
            return replace(plan, operands=operands, results=results)
        case UntouchedPlan() | LeftOutPlan():
            return plan


class Times(NamedTuple):
    """How often an op runs. A loop with an unknown trip count counts once, and ``known`` is False."""

    number: int
    known: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """One collective of a program. ``bytes``: the bytes that one device receives from others in one execution.

    ``receivers``: the devices that receive; None for every device. ``reshard`` and ``step``: the redistribution that
    the collective is a step of, and the step of its plan. ``over``: for all other collectives, the sub-axes of ``mesh``
    along which its groups lie.
    """

    op: Op | None  # None: for what main returns
    kind: str
    axes: str
    bytes: int
    times: int
    times_known: bool
    cause: str
    reshard: Reshard | None = None
    step: RedistributionStep | None = None
    first: bool = True  # of the steps of one redistribution
    last: bool = True
    loop: MatmulLoop | None = None  # of which it is one permute
    receivers: Receivers = None
    mesh: PrimeMesh | None = None
    over: Axes = ()

    def seconds(self, machine: Machine) -> float:
        """Return the seconds that the collective takes once on ``machine``.

        For a permute of a collective matmul, returns its share of what the loop takes beyond its products.
        """
        if self.loop is not None:
            pair = self.loop.pair
            return self.loop.price(machine).beside / ((pair.count - 1) * len(pair.parts))
        assert self.mesh is not None
        return seconds(machine, self.kind, self.bytes, self.groups, self.mesh.borders)

    @property
    def groups(self) -> NDArray[np.int64]:
        """The ids of the devices of each group, a row for each."""
        assert self.mesh is not None
        return self.mesh.groups(self.over) if self.step is None else self.step.groups


def listed(body: BlockPlan, machine: Machine) -> Iterator[Sent]:
    """Yield every collective of ``body`` and of the blocks inside. ``machine``: for which redistributions are
    planned.
    """
    yield from _block(body, machine, Times(1, True), None)


def _block(block: BlockPlan, machine: Machine, times: Times, holder: Op | None) -> Iterator[Sent]:
    for plan in block.ops:
        yield from _op(plan, machine, times)
    for operand in block.returned:
        if operand is not None:
            yield from _steps(operand.steps, holder, machine, times)


def _op(plan: OpPlan, machine: Machine, times: Times) -> Iterator[Sent]:
    op = plan.op
    yield from _steps(operand_steps(plan), op, machine, times)
    if isinstance(plan, SplitPlan):
        yield from sent_by_op(plan.local, op, times)
    elif isinstance(plan, ControlFlowPlan):
        inside = Times(times.number * (1 if op.trips is None else op.trips), times.known and op.trips is not None)
        for block in plan.blocks:
            yield from _block(block, machine, inside if op.is_loop else times, op)
    yield from sent_by_results(results_of(plan), op, machine, times)


def _steps(steps: tuple[Step, ...], op: Op | None, machine: Machine, times: Times) -> Iterator[Sent]:
    for step in steps:
        if isinstance(step, Recompute):
            yield from sent_by_op(step.local, step.op, times)
        else:
            yield from sent_by_reshard(step, op, machine, times)


def sent_by_op(local: LocalPlan, op: Op, times: Times) -> Iterator[Sent]:
    mesh = local.split.mesh
    for one in local.collectives:
        receivers = None if one.positions is None else _at(mesh, one.axes, one.positions)
        sent = Sent(op, one.kind, mesh.names(one.axes), one.bytes, times.number, times.known, one.cause)
        yield replace(sent, receivers=receivers, mesh=mesh, over=one.axes)


def _at(mesh: PrimeMesh, axes: Axes, positions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ids of the devices at ``positions`` along ``axes``."""
    return tuple(mesh.groups(axes)[:, list(positions)].ravel().tolist())


def sent_by_results(results: Results, op: Op, machine: Machine, times: Times) -> Iterator[Sent]:
    for result in results:
        if result is None:
            continue
        cause = f"partial results of {op.name}"
        for step in result.completions:
            names, mesh = op.mesh.names(step.axes), op.mesh
            yield Sent(op, step.kind, names, step.bytes, times.number, times.known, cause, mesh=mesh, over=step.axes)
        if result.reshard is not None:
            yield from sent_by_reshard(result.reshard, op, machine, times)


def redistribution(reshard: Reshard, machine: Machine) -> Plan:
    """Return the redistribution plan of a reshard, from the default planner on ``machine``."""
    shape, mesh = reshard.type.shape, reshard.mesh
    source, target = reshard.source.sharding, reshard.target
    if mesh.manual:
        shape, source, target = stack_manual_axes(shape, source, target, mesh)
    element = reshard.type.element.mlir
    ends = _on(source, mesh), _on(target, mesh)
    return plan_redistribution(shape, element, *ends, num_devices=mesh.num_devices, machine=machine)


def _on(sharding: Sharding, mesh: PrimeMesh) -> Sharding:
    """Return ``sharding`` over the axes of the mesh if it can be written so; steps of its plan then name these
    axes.
    """
    return sharding.on(mesh.mesh) or sharding


def sent_by_reshard(reshard: Reshard, op: Op | None, machine: Machine, times: Times) -> Iterator[Sent]:
    plan = redistribution(reshard, machine)
    sent = [step for step in plan.steps if step.kind != "dynamic_slice"]
    for k, step in enumerate(sent):
        axes, ends = ",".join(step.axes), (k == 0, k == len(sent) - 1)
        permuted = step.kind == StepKind.COLLECTIVE_PERMUTE
        receivers = tuple(step.groups[:, 1].tolist()) if permuted else None
        known = times.number, times.known, reshard.cause, reshard
        yield Sent(op, step.kind, axes, step.bytes, *known, step, *ends, receivers=receivers, mesh=reshard.mesh)
