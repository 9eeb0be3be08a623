"""What a plan costs: the one figure by which plans of one program are compared, and its parts by op (``op_prices``)."""

from __future__ import annotations

from shardpass.planning.clock import Clock, clock_of
from shardpass.planning.fold import Folded
from shardpass.planning.op_prices import op_prices
from shardpass.planning.plan import ProgramPlan


def price(plan: ProgramPlan, clock: Clock | None = None) -> float:
    """Seconds of one run, on the machine for which it is planned where ``clock`` names no other."""
    return sum(costs(plan, clock or clock_of(plan.machine)).values())


def costs(plan: ProgramPlan, clock: Clock, folded: Folded | None = None) -> dict[int, float]:
    """The price of each op by number; what main returns is ``RETURNED``. ``folded``: of its program is the plan."""
    return op_prices(plan.program, plan.body, clock, folded)
