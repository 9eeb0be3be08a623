"""The parts of an op's plan, whatever kind of plan it is: its operands, its results, and the steps that bring them.

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
from dataclasses import replace

from shardpass.planning.price.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    OperandPlan,
    OpPlan,
    Reshard,
    ResultPlan,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)

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
    """Return the steps that bring the operands of ``plan``, in order."""
    if isinstance(plan, LeftOutPlan):
        return plan.steps
    if isinstance(plan, ControlFlowPlan) and plan.before:
        first = [step for hoisted in plan.before for step in hoisted.steps]
        return (*first, *[step for operand in plan.operands for step in operand.steps])
    return tuple([step for operand in operands_of(plan) for step in operand.steps])


def steps_of(plan: OpPlan) -> Iterator[Step]:
    """Yield the steps that bring the operands of ``plan``, then the reshards of its results."""
    yield from operand_steps(plan)
    for result in results_of(plan):
        if result is not None and result.reshard is not None:
            yield result.reshard


def operand_copies(plan: OpPlan) -> tuple[Copy, ...]:
    """Return the copies that the op itself reads, once its operands are brought."""
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
