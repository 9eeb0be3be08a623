"""What nothing uses is taken out of a plan: steps, completions, and whole ops.

A result that is wanted elsewhere under another sharding may be read from a nearer copy, or computed again, so that what
it was planned from is of no use. A dead op costs time; a dead collective costs messages, and XLA aborts on some (an
all_gather of several operands that no result depends on is given no manual sharding). All devices leave out the same
ones.

State: the copies that are used further on (``live``), walking each block backwards. What is returned is used; a step is
kept where its copy is, an op where one of its results' copies is, or where it has effects (``Op.pure``); steps that
were taken for an op that goes stay where later ops use them. A loop is kept with all that it carries. O(steps).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shardpass.planning.plan import ProgramPlan
from shardpass.planning.steps import (
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
from shardpass.program.program import Op


def without_unused(plan: ProgramPlan, folded: bool = False) -> ProgramPlan:
    """``plan`` without what none of its results, and no op with effects, depends on.

    ``folded``: the plan is of a folded program (``fold``), where ops before one that makes a value may use it.
    """
    live: set[Copy] = set()
    if folded:
        live = _Remembered()
        _block(plan.body, live)  # a first walk, which collects what is used
    return replace(plan, body=_block(plan.body, live))


class _Remembered(set[Copy]):
    """Copies of a folded program: one that is used anywhere counts as used everywhere."""

    def discard(self, element: object) -> None:
        """Keeps ``element``: another op may make it too."""

    def difference_update(self, *s: Iterable[object]) -> None:
        """Keeps all."""


def _block(block: BlockPlan, live: set[Copy]) -> BlockPlan:
    """``block`` with what is used of it; ``live`` gets what it uses from outside."""
    returned = tuple([None if one is None else _operand(one, live) for one in reversed(block.returned)])[::-1]
    ops = [_op(plan, live) for plan in reversed(block.ops)]
    live.difference_update(Copy(value, sharding) for value, sharding in block.arguments)
    return BlockPlan(block.arguments, tuple(reversed(ops)), returned)


def _op(plan: OpPlan, live: set[Copy]) -> OpPlan:
    match plan:
        case SplitPlan():
            results = _results(plan.results, live)
            if plan.op.pure and not any(results):
                return _left_out(plan.op, plan.operands, live)
            operands = _operands(plan.operands, live, plan.local.ignored)
            if operands is plan.operands and results is plan.results:
                return plan
            return replace(plan, operands=operands, results=results)
        case WholePlan():
            results = _results(plan.results, live)
            arrays_alone = len(plan.results) == len(plan.op.results)  # of tuples and tokens nobody knows who uses them
            if plan.op.pure and arrays_alone and not any(results):
                return _left_out(plan.op, tuple([operand for _, operand in plan.operands]), live)
            values = [value for value, _ in plan.operands]
            brought = _operands(tuple([operand for _, operand in plan.operands]), live)
            return replace(plan, operands=tuple(zip(values, brought, strict=True)), results=results)
        case ConstraintPlan():
            return replace(plan, operand=replace(plan.operand, steps=_steps(plan.operand.steps, live)))
        case BorderPlan():
            result = _results((plan.result,), live)[0]
            if result is None:
                return _left_out(plan.op, () if plan.operand is None else (plan.operand,), live)
            operand = None if plan.operand is None else _operand(plan.operand, live)
            return replace(plan, operand=operand, result=result)
        case UntouchedPlan():
            if plan.entering is not None:
                live.add(plan.entering)
            return plan
        case ControlFlowPlan():
            return _control_flow(plan, live)
        case LeftOutPlan():
            return replace(plan, steps=_steps(plan.steps, live))


def _left_out(op: Op, operands: tuple[OperandPlan, ...], live: set[Copy]) -> LeftOutPlan:
    """``op`` goes; steps that were taken for its operands stay where later ops use their copies."""
    return LeftOutPlan(op, _steps(tuple(step for operand in operands for step in operand.steps), live))


def _control_flow(plan: ControlFlowPlan, live: set[Copy]) -> OpPlan:
    made = [Copy(value, sharding) for value, sharding in zip(plan.op.results, plan.shardings, strict=True)]
    if plan.op.pure and live.isdisjoint(made):
        return _left_out(plan.op, plan.operands, live)
    live.difference_update(made)
    blocks = []
    for block in plan.blocks:
        inside: set[Copy] = live if isinstance(live, _Remembered) else set()
        blocks.append(_block(block, inside))
        live |= inside
    operands = _operands(plan.operands, live)
    return replace(plan, operands=operands, blocks=tuple(blocks))


def _results(results: tuple[ResultPlan | None, ...], live: set[Copy]) -> tuple[ResultPlan | None, ...]:
    """None for each result that is not used; the others without a reshard that is not."""
    out: list[ResultPlan | None] = []
    for result in results:
        if result is None:
            out.append(None)
            continue
        computed, wanted = Copy(result.value, result.computed), Copy(result.value, result.wanted)
        if result.reshard is not None and wanted not in live:
            result = replace(result, reshard=None) if computed in live else None
        elif result.reshard is None and computed not in live:
            result = None
        live.discard(computed)
        live.discard(wanted)
        out.append(result)
    made = tuple(out)
    return results if made == results else made


def _operands(
    operands: tuple[OperandPlan, ...], live: set[Copy], ignored: frozenset[int] = frozenset()
) -> tuple[OperandPlan, ...]:
    """The operands, their copies used but for those at the places ``ignored``."""
    out = []
    for place in reversed(range(len(operands))):
        out.append(operands[place] if place in ignored else _operand(operands[place], live))
    made = tuple(reversed(out))
    return operands if all(a is b for a, b in zip(made, operands, strict=True)) else made


def _operand(operand: OperandPlan, live: set[Copy]) -> OperandPlan:
    live.add(operand.copy)
    if not operand.steps:
        return operand
    kept = _steps(operand.steps, live)
    return operand if len(kept) == len(operand.steps) else replace(operand, steps=kept)


def _steps(steps: tuple[Step, ...], live: set[Copy]) -> tuple[Step, ...]:
    kept: list[Step] = []
    for step in reversed(steps):
        if step.made not in live:
            continue
        live.discard(step.made)
        live.update([step.source] if isinstance(step, Reshard) else step.operands)
        kept.append(step)
    return tuple(reversed(kept))
