"""The cost of a plan: one figure by which plans of one program are compared, and its parts by op (``op_prices``)."""

from __future__ import annotations

from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.fold import Folded
from shardpass.planning.price.seconds import op_prices


def price(plan: ProgramPlan, clock: Clock | None = None) -> float:
    """Return the seconds of one run of ``plan``, on its own machine unless ``clock`` is given."""
    return plan.price if clock is None else sum(costs(plan, clock).values())


def costs(plan: ProgramPlan, clock: Clock, folded: Folded | None = None) -> dict[int, float]:
    """Return the seconds of each op by number, and of what main returns under ``RETURNED``.

    ``folded``: given if ``plan`` is the plan of a folded program.
    """
    return op_prices(plan.program, plan.body, clock, folded)
