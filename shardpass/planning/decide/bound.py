"""Compare a decision with a lower bound from its tables, in numbers and as a sentence.

Equal layers are decided alike, as the tables of the folded program have them once. A bound is of the tables of the
whole program: they are built and solved only where a report asks for it, and only up to ``WHOLE`` entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from shardpass.planning.decide.candidates import Search
from shardpass.planning.options.slack import Slack
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.fold import unfold

SAME = 1e-4  # a gap below it is no news to a user: ties and rounding
MODEL = "whole axes, at most one shared copy of each annotated array"  # of the tables
LEAST = f"the least sum of communication and work ({MODEL})"
LEAST_ALIKE = f"the least sum of communication and work ({MODEL}, equal layers and states alike)"
SHARED = "ops share a copy of an open array, or parts of axes split one, so the plan costs less than the tables allow"
ALIKE = "equal layers are decided alike"
MANY = "equal layers are decided alike, and are too many to bound what others would save"
WHOLE = 1 << 24  # entries of the tables of a program in which equal layers are decided one by one
BUSY = 0.8  # of a makespan: where more of it is communication, all of that serves the bound
WEIGHTS = ((0.0, 0.0), (0.1, 1.0))  # of solutions that serve a bound: of exposed communication, and of all
PLANNED = "the plan brings arrays otherwise than the tables do"


@dataclass(frozen=True)
class Bound:
    """The distance of a decision from a lower bound on the sum of seconds, in the model of its tables.

    The tables have splits over whole axes. Ops may share one copy of an array that the user annotated; of an open array
    each op makes its own. A plan outside of this ``MODEL`` may cost less.

    ``price``: what the decision costs in the tables, in seconds; ``least``: a lower bound for all shardings in them.
    Both are None if there is no bound. ``plan``: the seconds of the plan, in which ops share copies: if it is below the
    least of the tables, that is no bound. ``why``: the reason for which there is no bound, or no closer one.
    ``alike``: whether ``least`` bounds only shardings that are the same in equal layers, and of states before and after
    ``makespan``: of the plan, ``least_makespan``: a lower bound for all shardings in the tables; None without one, or
    where nothing overlaps, and the makespan is the sum.
    """

    plan: float
    price: float | None = None
    least: float | None = None
    why: str = ""
    makespan: float | None = None
    least_makespan: float | None = None
    alike: bool = False

    @classmethod
    def of(cls, plan: float, price: float, least: float, why: str, alike: bool = False) -> Bound:
        """Return the bound of a decision; all numbers are in seconds, as in the fields.

        If ``plan`` costs less than ``least``, the tables do not bound it: the result has no ``price`` or ``least``, and
        gives the reason ``SHARED``.
        """
        if plan < least * (1 - SAME):
            return cls(plan, why=SHARED)
        return cls(plan, price, min(least, plan), why, alike=alike)

    @property
    def gap(self) -> float | None:
        """The largest fraction of the cost that a better sharding could save; None without a bound.

        The cost is the larger of ``price`` and ``plan``.
        """
        if self.price is None or self.least is None:
            return None
        most = max(self.price, self.plan)
        return max(0.0, most - self.least) / most if most > 0 else 0.0

    @property
    def makespan_gap(self) -> float | None:
        """The largest fraction of the makespan that a better sharding could save; None without a bound."""
        if self.makespan is None or self.least_makespan is None:
            return None
        return max(0.0, 1 - self.least_makespan / self.makespan)

    def as_dict(self) -> dict[str, object]:
        """Return the fields for JSON; ``text`` is for readers."""
        return {"text": str(self), "gap": self.gap, **asdict(self), "makespan_gap": self.makespan_gap}

    def __str__(self) -> str:
        gap = self.makespan_gap
        if gap is None:
            return self._sum()
        return f"{'at' if gap < SAME else f'within {max(gap, 1e-3):.1%} of'} a bound of the makespan; {self._sum()}"

    def _sum(self) -> str:
        if self.gap is None:
            return f"not bounded, because {self.why}"
        least = LEAST_ALIKE if self.alike else LEAST
        if self.gap < SAME:
            return f"at {least}"
        above = PLANNED if self.price is not None and self.plan > self.price * (1 + SAME) else ""
        why = f", as {self.why or above}" if self.why or above else ""
        return f"within {max(self.gap, 1e-3):.1%} of {least}{why}"


def bound_of(search: Search, plan: ProgramPlan, why: str) -> Bound:
    """Return how near ``plan``, which ``search`` decided, is to the best sharding in the tables. ``why`` there is no
    closer bound, where the tables do not say.
    """
    folded = search.folded
    if search.why or search.solver is None or search.solved is None:
        return Bound(price(plan), why=search.why or why)
    if not folded.folds:
        return _bound(search, plan, why, ())
    entries = math.fsum([table.costs.size for table in search.solver.network.tables])
    if entries * search.program.count > WHOLE * folded.program.count:
        return Bound(price(plan), why=MANY)
    whole = Search(search.program, search.barriers, search.machine, unfold(search.program), search.decided)
    if search.settles:
        whole.settle_results()
    whole.run()
    if not why and whole.solved and whole.solved.price < search.solved.price * (1 - SAME):
        why = ALIKE
    return _bound(whole, plan, why, [weights[:2] for weights in search.bounds[1:]])


def _bound(search: Search, plan: ProgramPlan, why: str, weights: Iterable[tuple[float, float]]) -> Bound:
    """Return the bound that the tables of ``search`` give. ``weights``: of further solutions that serve it."""
    if search.why or search.solver is None or search.solved is None:
        return Bound(price(plan), why=search.why or why)
    bound = Bound.of(price(plan), search.solved.price, search.solved.bound, search.solved.why)
    bound = replace(bound, why=bound.why or why)
    if plan.machine.in_flight != 1:
        return bound
    works = {number: work for number, (work, _) in search.solver.network.least.items()}
    slack = Slack(search.program, search.folded, plan.compute_by_op(), works)
    busy = plan.price - plan.compute_seconds() > BUSY * plan.makespan
    for each in (*weights, WEIGHTS[busy]):
        if search.least() < plan.makespan * (1 - SAME) and each not in [one[:2] for one in search.bounds]:
            search.solve_weighed(slack, *each, entries=0)
    least = search.least()
    if least > plan.makespan * (1 + SAME):
        return bound
    return replace(bound, makespan=plan.makespan, least_makespan=min(least, plan.makespan))
