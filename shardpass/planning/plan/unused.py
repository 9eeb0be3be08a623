"""Remove unused steps, completions and whole ops from a plan.

A result that is wanted elsewhere under another sharding may be read from a nearer copy, or computed again, so that what
it was planned from is of no use. A dead op costs time; a dead collective costs messages, and XLA aborts on some (an
all_gather of several operands that no result depends on is given no manual sharding). All devices leave out the same
ones.

State: the copies that are used further on (``live``), walking each block backwards. What is returned is used; a step is
kept where its copy is, an op where one of its results' copies is, or where it has effects (``Op.pure``); steps that
were made for an op that goes stay where later ops use them. A loop is kept with all that it carries. O(steps).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import is_

from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.listed import (
    Operands,
    Results,
    operand_copies,
    operand_steps,
    operands_of,
    results_of,
    sources_of,
    with_parts,
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
    ResultPlan,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)


def without_unused(plan: ProgramPlan, folded: bool = False) -> ProgramPlan:
    """Return ``plan`` without what neither its results nor ops with effects depend on.

    ``folded``: whether the program is folded, where an op may come before the one whose result it uses.
    """
    live: set[Copy] = set()
    if folded:
        live = _Remembered()
        _block(plan.body, live)  # a first walk, which collects what is used
    return replace(plan, body=_block(plan.body, live))


class _Remembered(set[Copy]):
    """Copies of a folded program: one that is used anywhere counts as used everywhere."""

    def discard(self, element: object) -> None:
        """Keep ``element``, since another op may produce it, too."""

    def difference_update(self, *s: Iterable[object]) -> None:
        """Keep all elements."""


def _block(block: BlockPlan, live: set[Copy]) -> BlockPlan:
    """Return the used parts of ``block``, and add the copies that it uses from outside to ``live``."""
    returned = tuple([None if one is None else _operand(one, live) for one in reversed(block.returned)])[::-1]
    ops = [_op(plan, live) for plan in reversed(block.ops)]
    live.difference_update(Copy(value, sharding) for value, sharding in block.arguments)
    return BlockPlan(block.arguments, tuple(reversed(ops)), returned)


def _op(plan: OpPlan, live: set[Copy]) -> OpPlan:
    match plan:
        case LeftOutPlan():
            return replace(plan, steps=_steps(plan.steps, live))
        case ConstraintPlan():
            return replace(plan, operand=replace(plan.operand, steps=_steps(plan.operand.steps, live)))
        case UntouchedPlan():
            live.update(operand_copies(plan))
            return plan
        case ControlFlowPlan():
            return _control_flow(plan, live)
    before, made = operands_of(plan), results_of(plan)
    results = _results(made, live)
    if not any(results) and _may_go(plan):
        return _left_out(plan, live)
    operands = _operands(before, live, plan.local.ignored if isinstance(plan, SplitPlan) else frozenset())
    if operands is before and results is made:
        return plan
    return with_parts(plan, operands, results)


def _may_go(plan: SplitPlan | WholePlan | BorderPlan) -> bool:
    """Return whether an op may be left out once none of its planned results is used."""
    match plan:
        case SplitPlan():
            return plan.op.pure
        case WholePlan():  # of tuples and tokens, which its plan does not list, nobody knows who uses them
            return plan.op.pure and len(plan.results) == len(plan.op.results)
        case BorderPlan():
            return True


def _left_out(plan: OpPlan, live: set[Copy]) -> LeftOutPlan:
    """Return the plan of an op that is left out: only the steps whose copies later ops read stay."""
    return LeftOutPlan(plan.op, _steps(operand_steps(plan), live))


def _control_flow(plan: ControlFlowPlan, live: set[Copy]) -> OpPlan:
    made = [Copy(value, sharding) for value, sharding in zip(plan.op.results, plan.shardings, strict=True)]
    if plan.op.pure and live.isdisjoint(made):
        return _left_out(plan, live)
    results = tuple([one if copy in live else None for one, copy in zip(plan.results, made, strict=False)])
    live.difference_update(made)
    blocks = []
    for block in plan.blocks:
        inside: set[Copy] = live if isinstance(live, _Remembered) else set()
        blocks.append(_block(block, inside))
        live |= inside
    operands = _operands(plan.operands, live)
    before = tuple([one._replace(steps=_steps(one.steps, live)) for one in reversed(plan.before)])[::-1]
    return replace(plan, operands=operands, blocks=tuple(blocks), before=before, results=results)


def _results(results: Results, live: set[Copy]) -> Results:
    """Return the results, with None for unused ones and without unused reshards."""
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
    return results if all(map(is_, made, results)) else made


def _operands(operands: Operands, live: set[Copy], ignored: frozenset[int] = frozenset()) -> Operands:
    """Return the operands, and mark their copies used, except at the indices ``ignored``."""
    out = []
    for place in reversed(range(len(operands))):
        out.append(operands[place] if place in ignored else _operand(operands[place], live))
    made = tuple(reversed(out))
    return operands if all(map(is_, made, operands)) else made


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
        live.update(sources_of(step))
        kept.append(step)
    return tuple(reversed(kept))
