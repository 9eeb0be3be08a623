"""Several propagations of one program, priced as plans; the cheapest is taken.

Propagation decides greedily, so the order in which shardings take part decides much. With weights and batch split over
one axis and nothing said of activations (FSDP), a weight's split contraction looks free while the batch has not
arrived, and its axis is gone when it does: every layer then sums activations over devices, where gathering the weight
would be cheaper. A plan knows what either costs.

Starts, each a propagation of its own:

1. as the user said it;
2. right operands late: the shardings of arguments that are right operands of a dot_general or a convolution (the
   weights, as ``x @ w`` is written) take part after all others have come to rest, as if the user had given them
   priority 1.

What the user fixed is the same in all of them. The price is that of ``splits.assign``, summed over the program with
loops multiplied: bytes that a device receives, a latency for each collective, and its work. Among equals the earliest
is taken.

Example, FSDP on d=8: ``x @ w`` with rows of x and rows of w over d. Start 1 splits the contraction over d and sums
activations; start 2 has rows of x arrive first, and gathers w.

Complexity: one propagation and one plan for each start, of which equal layers cost little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from shardpass.ops.splits.assign import LATENCY_BYTES, WORK_PER_BYTE
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.planner import plan_program
from shardpass.planning.steps import BlockPlan, ControlFlowPlan, SplitPlan
from shardpass.program.program import NOTHING_SAID, Op, Program, Said
from shardpass.propagation.program import Propagated

TAKES_WEIGHTS = ("stablehlo.dot_general", "stablehlo.convolution")
HANDS_ON = frozenset(f"stablehlo.{name}" for name in ("convert", "transpose", "reshape", "custom_call"))


@dataclass(frozen=True)
class Start:
    """One propagation and the price of its plan, in bytes."""

    name: str
    found: Propagated
    price: float


def starts(program: Program, barriers: dict[int, str], effort: int) -> list[Start]:
    """The propagations that ``effort`` asks for, the cheapest first.

    ``effort`` 0: one, as the user's shardings give it, unpriced; 1: those of the module's text.
    """
    first = Propagated(program, barriers)
    if effort < 1:
        return [Start("as said", first, 0.0)]
    tried = [Start("as said", first, price(plan_program(program, first.shardings)))]
    late = right_operands_late(program)
    if late is not None:
        found = Propagated(late, barriers)
        tried.append(Start("right operands late", found, price(plan_program(program, found.shardings))))
    return sorted(tried, key=lambda start: start.price)  # stable


def price(plan: ProgramPlan) -> float:
    """Bytes received, latencies and work of one device in one run, in bytes."""
    collectives = sum(sent.times for sent in plan.collectives)
    work = sum(_work(plan.body, 1))
    return plan.bytes_received + LATENCY_BYTES * collectives + work / WORK_PER_BYTE


def _work(block: BlockPlan, times: int) -> Iterator[float]:
    """For each op the points of its loop nest on one device, as often as it runs."""
    for plan in block.ops:
        if isinstance(plan, SplitPlan) and plan.op.model is not None:
            nest = prod(max(1, factor.size) for factor in plan.op.model.rule.factors)
            yield times * nest / plan.local.split.count
        elif isinstance(plan, ControlFlowPlan):
            inside = times * (plan.op.trips or 1) if plan.op.is_loop else times
            for inner in plan.blocks:
                yield from _work(inner, inside)


def right_operands_late(program: Program) -> Program | None:
    """``program`` with its weights, and its results, taking part late; None where that changes nothing."""
    weights = _weights(program)
    said = dict(program.said)
    arguments = [value for value in program.body.arguments if value in weights]
    late = [value for value in arguments if _may_wait(said.get(value, NOTHING_SAID))]
    if not late:
        return None
    for value in late:
        said[value] = _waiting(said[value], program, value)
    results = tuple(
        _waiting(one, program, value) if _may_wait(one) and program.arrays[value] is not None else one
        for one, value in zip(program.results_said, program.body.returned, strict=True)
    )
    return replace(program, said=said, results_said=results)


def _may_wait(said: Said) -> bool:
    """Whether a sharding splits anything and the user gave it no turn of its own."""
    sharding = said.sharding
    return sharding is not None and sharding.is_tiled and not said.priorities


def _waiting(said: Said, program: Program, value: int) -> Said:
    return replace(said, priorities=(1,) * program.array(value).rank)


def _weights(program: Program) -> set[int]:
    """Values that are right operands of products, or that only conversions and moves lie between."""
    source: dict[int, int] = {}
    found: set[int] = set()

    def origin(value: int) -> int:
        return source.get(value, value)

    def look(op: Op) -> None:
        if op.name in HANDS_ON and op.operands:
            source.update((result, origin(op.operands[0])) for result in op.results)
        elif op.name in TAKES_WEIGHTS:
            found.add(origin(op.operands[1]))

    for op in program.body.every_op():
        look(op)
    return found
