"""What a plan costs, op by op: the measure by which plans of one program are compared.

Of each op: the bytes that one device receives (reshards, the op's own collectives, completions), the number of
collectives, and the points of its loop nest on one device. Loops multiply by their trips; of a folded program
(``fold``), each op by the number of ops that it stands for.

The price in bytes is that of ``splits.assign``: bytes received, ``LATENCY_BYTES`` for each collective, and the work at
``WORK_PER_BYTE``. Complexity: O(steps of the plan).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from shardpass.ops.model import LocalPlan
from shardpass.ops.splits.assign import LATENCY_BYTES, WORK_PER_BYTE
from shardpass.ops.splits.factors import Rule, pair_rules
from shardpass.planning.listed import redistribution
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    LeftOutPlan,
    OperandPlan,
    OpPlan,
    Recompute,
    Reshard,
    ResultPlan,
    SplitPlan,
    Step,
    WholePlan,
)

RETURNED = -1  # the "op" of what main returns


@dataclass(slots=True)
class Cost:
    """Bytes that one device receives, collectives, and points of loop nests."""

    bytes: float = 0.0
    collectives: float = 0.0
    work: float = 0.0

    @property
    def price(self) -> float:
        """In bytes."""
        return self.bytes + LATENCY_BYTES * self.collectives + self.work / WORK_PER_BYTE

    @property
    def moved(self) -> float:
        """The part of the price that collectives have."""
        return self.bytes + LATENCY_BYTES * self.collectives


def price(plan: ProgramPlan) -> float:
    """Bytes received, latencies and work of one device in one run, in bytes."""
    return total(costs(plan))


def total(found: Mapping[int, Cost]) -> float:
    """The price of all of it, in bytes."""
    return sum(cost.price for cost in found.values())


def costs(
    plan: ProgramPlan, times: Mapping[int, int] | None = None, result_times: Iterable[int] = ()
) -> dict[int, Cost]:
    """The cost of each op by number; what main returns is ``RETURNED``.

    ``times``, ``result_times``: of a folded program, for how many ops and results each stands.
    """
    walk = _Walk(times or {})
    walk.block(plan.body, 1)
    counts = tuple(result_times) or (1,) * len(plan.body.returned)
    for operand, count in zip(plan.body.returned, counts, strict=True):
        if operand is not None:
            walk.steps(operand.steps, RETURNED, count)
    return walk.found


def work(rule: Rule, local: LocalPlan) -> float:
    """The points of an op's loop nest on one device; of operands that have nothing to do with one another, the sum."""
    split = local.split
    parts = [split.mesh.count(axes) for axes in split.factors]
    groups = [numbers for _, numbers in pair_rules(rule)] if rule.independent else [range(len(rule.factors))]
    return sum(prod(max(1, rule.factors[f].size) / parts[f] for f in group) for group in groups)


@dataclass
class _Walk:
    times: Mapping[int, int]
    found: dict[int, Cost] = field(default_factory=dict)

    def block(self, block: BlockPlan, runs: int) -> None:
        for plan in block.ops:
            self.op(plan, runs * self.times.get(plan.op.number, 1))

    def op(self, plan: OpPlan, runs: int) -> None:
        number = plan.op.number
        match plan:
            case SplitPlan():
                self.operands(plan.operands, number, runs)
                self.local(plan.local, number, runs)
                self.results(plan.results, number, runs)
                if plan.op.model is not None:
                    self.at(number).work += runs * work(plan.op.model.rule, plan.local)
            case WholePlan():
                self.operands([operand for _, operand in plan.operands], number, runs)
                self.results(plan.results, number, runs)
            case ConstraintPlan():
                self.operands((plan.operand,), number, runs)
            case BorderPlan():
                if plan.operand is not None:
                    self.operands((plan.operand,), number, runs)
                self.results((plan.result,), number, runs)
            case ControlFlowPlan():
                self.operands(plan.operands, number, runs)
                inside = runs * (plan.op.trips or 1) if plan.op.is_loop else runs
                for block in plan.blocks:
                    self.block(block, inside)
                    self.operands([one for one in block.returned if one is not None], number, inside)
            case LeftOutPlan():
                self.steps(plan.steps, number, runs)

    def at(self, number: int) -> Cost:
        cost = self.found.get(number)
        if cost is None:
            cost = self.found[number] = Cost()
        return cost

    def operands(self, operands: Iterable[OperandPlan], number: int, runs: int) -> None:
        for operand in operands:
            if operand.steps:
                self.steps(operand.steps, number, runs)

    def results(self, results: Iterable[ResultPlan | None], number: int, runs: int) -> None:
        for result in results:
            if result is None:
                continue
            for step in result.completions:
                self.send(number, step.bytes, runs)
            if result.reshard is not None:
                self.reshard(result.reshard, number, runs)

    def steps(self, steps: Iterable[Step], number: int, runs: int) -> None:
        for step in steps:
            if isinstance(step, Recompute):
                self.local(step.local, number, runs)
                sides = step.local.split.result_tiles
                self.at(number).work += runs * sum(prod(tile) for tile in sides)
            else:
                self.reshard(step, number, runs)

    def local(self, local: LocalPlan, number: int, runs: int) -> None:
        for one in local.collectives:
            self.send(number, one.bytes, runs)

    def reshard(self, reshard: Reshard, number: int, runs: int) -> None:
        if reshard.bytes:
            cost = self.at(number)
            cost.bytes += runs * reshard.bytes
            cost.collectives += runs * collectives_of(reshard)

    def send(self, number: int, count: int, runs: int) -> None:
        if count:
            cost = self.at(number)
            cost.bytes += runs * count
            cost.collectives += runs


def collectives_of(reshard: Reshard) -> int:
    """How many collectives a reshard takes."""
    return sum(step.kind != "dynamic_slice" for step in redistribution(reshard).steps)
