"""What a plan costs, op by op: the measure by which plans of one program are compared.

Of each op: reshards, the op's own collectives, completions, and its work on one device, each priced by a ``Machine``.
Loops multiply by their trips; of a folded program (``fold``), each op by the number of ops that it stands for.

Complexity: O(steps of the plan).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shardpass.ops.model import LocalPlan
from shardpass.planning.machine import DEFAULT, Machine
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    LeftOutPlan,
    OperandPlan,
    OpPlan,
    Reshard,
    ResultPlan,
    SplitPlan,
    Step,
    WholePlan,
)
from shardpass.program.program import Op

RETURNED = -1  # the "op" of what main returns


def price(plan: ProgramPlan, machine: Machine = DEFAULT) -> float:
    """What one device receives and computes in one run, in bytes."""
    return sum(costs(plan, machine).values())


def costs(
    plan: ProgramPlan, machine: Machine, times: Mapping[int, int] | None = None, result_times: Iterable[int] = ()
) -> dict[int, float]:
    """The price of each op by number; what main returns is ``RETURNED``.

    ``times``, ``result_times``: of a folded program, for how many ops and results each stands.
    """
    walk = _Walk(machine, times or {})
    walk.block(plan.body, 1)
    counts = tuple(result_times) or (1,) * len(plan.body.returned)
    for operand, count in zip(plan.body.returned, counts, strict=True):
        if operand is not None:
            walk.steps(operand.steps, RETURNED, count)
    return walk.found


@dataclass
class _Walk:
    machine: Machine
    times: Mapping[int, int]
    found: dict[int, float] = field(default_factory=dict)

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
                    self.add(number, runs * self.machine.work(plan.op.model.rule, plan.local.split))
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
                self.operands(plan.operands, number, runs)
                inside = runs * (plan.op.trips or 1) if plan.op.is_loop else runs
                for block in plan.blocks:
                    self.block(block, inside)
                    self.operands([one for one in block.returned if one is not None], number, inside)
            case LeftOutPlan():
                self.steps(plan.steps, number, runs)

    def add(self, number: int, price: float) -> None:
        self.found[number] = self.found.get(number, 0.0) + price

    def operands(self, operands: Iterable[OperandPlan], number: int, runs: int) -> None:
        for operand in operands:
            if operand.steps:
                self.steps(operand.steps, number, runs)

    def results(self, results: Iterable[ResultPlan | None], op: Op, runs: int) -> None:
        for result in results:
            if result is None:
                continue
            for step in result.completions:
                self.add(op.number, runs * self.machine.send(step.bytes, step.axes, op.mesh))
            if result.reshard is not None:
                self.reshard(result.reshard, op.number, runs)

    def steps(self, steps: Iterable[Step], number: int, runs: int) -> None:
        for step in steps:
            if isinstance(step, Reshard):
                self.reshard(step, number, runs)
                continue
            self.local(step.local, number, runs)
            if step.op.model is not None:
                self.add(number, runs * self.machine.work(step.op.model.rule, step.local.split))

    def local(self, local: LocalPlan, number: int, runs: int) -> None:
        for one in local.collectives:
            self.add(number, runs * self.machine.send(one.bytes, one.axes, local.split.mesh))

    def reshard(self, reshard: Reshard, number: int, runs: int) -> None:
        if reshard.bytes:
            moved = self.machine.move(reshard.type, reshard.source.sharding, reshard.target, reshard.mesh)
            self.add(number, runs * moved)
