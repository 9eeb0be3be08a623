"""What a plan takes, op by op: the measure by which plans of one program are compared.

Of each op: reshards, the op's own collectives, completions, and its work on one device, each priced by a ``Clock``. Of
per-device code, its work.
Loops multiply by their trips; of a folded program (``fold``), each op by the number of ops that it stands for. There a
copy that one op left is at hand for another as far as both take the same values of the program: what is missing is
brought again.

Complexity: O(steps of the plan).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shardpass.ops.model import LocalPlan
from shardpass.planning.price.borders import borders
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.fold import Folded
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
        at = borders(self.program)[op.number]
        self.add(number, runs * self.clock.work(op.model.rule, local.split, self.program.elements(op), at))

    def untouched(self, op: Op, number: int, runs: float) -> None:
        """Add the work of per-device code on the tiles that it is given."""
        if op.alone is not None:
            operands, results = ([self.program.array(value) for value in side] for side in (op.operands, op.results))
            at = borders(self.program)[op.number]
            self.add(number, runs * self.clock.least_work(op.alone.rule, operands, results, 1, at))
        for block in op.inside:
            for inner in block.ops:
                self.untouched(inner, number, runs * (op.trips or 1))

    def reshard(self, reshard: Reshard, number: int, runs: float) -> None:
        if reshard.bytes:
            moved = self.clock.move(reshard.type, reshard.source.sharding, reshard.target, reshard.mesh)
            self.add(number, runs * moved)
