"""Plans of one program under thousands of assignments, and their prices.

``price_of`` is what is optimised: the search's own price of a plan, and the work of what the plan computes again.

The planner begins each plan with empty tables: of prices of redistributions, and of the splits that ops choose. Both
are functions of their keys, so ``Plans`` has the planner use one table of each for all plans of a program, which makes
a plan three times as fast. A test holds these plans to those of ``plan_program`` as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from shardpass.planning import planner
from shardpass.planning.choose import Choices
from shardpass.planning.copies import Copies
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.planner import plan_program
from shardpass.planning.prices import Prices
from shardpass.planning.search import price
from shardpass.planning.steps import BlockPlan, ConstraintPlan, LeftOutPlan, Recompute, SplitPlan, Step, WholePlan
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings
from tools.prove.cheapest.options import work


def price_of(plan: ProgramPlan) -> float:
    """The search's price, and the work of what is computed again, which that price does not count.

    Without it a plan could have the work of any cheap op for nothing: by holding its result under a sharding that
    nobody takes, so that every user computes it again and the op itself is left out.
    """
    again: float = sum(work(step.op.model.rule, step.local.split.count) for step in _again(plan.body) if step.op.model)
    return price(plan) + again


def _again(block: BlockPlan) -> Iterator[Recompute]:
    steps: list[Step] = []
    for plan in block.ops:
        if isinstance(plan, SplitPlan):
            steps += [step for operand in plan.operands for step in operand.steps]
        elif isinstance(plan, WholePlan):
            steps += [step for _, operand in plan.operands for step in operand.steps]
        elif isinstance(plan, ConstraintPlan):
            steps += plan.operand.steps
        elif isinstance(plan, LeftOutPlan):
            steps += plan.steps
    steps += [step for operand in block.returned if operand is not None for step in operand.steps]
    yield from (step for step in steps if isinstance(step, Recompute))


class Plans:
    """Plans of one program; see the module's text."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._prices = Prices(program.mesh.num_devices)
        self._choices: dict[Any, Any] = {}

    def price(self, shardings: Shardings) -> float:
        with patch.object(planner, "Prices", lambda _: self._prices), patch.object(planner, "Choices", self._kept):
            return price_of(plan_program(self.program, shardings))

    def _kept(self, prices: Prices, copies: Copies) -> Choices:
        made = Choices(prices, copies)
        made._known = self._choices
        return made
