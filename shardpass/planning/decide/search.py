"""The decision: shardings of all values and ways of all ops of a program, solved at once, with a bound.

Problem: propagation decides op by op, in the order in which shardings arrive, and cannot undo. With weights and batch
split over one axis (FSDP), a weight's split contraction looks free while the batch has not arrived, and its axis is
gone when it does: every layer then sums activations, where gathering the weight would cost a tenth.

1. Propagation of the annotations (effort 0). It is always a candidate, and fills in what the tables leave out.
2. Tables of the folded program (``fold``: repeated layers are one, with their true counts), made by ``tables`` and
   solved by ``solve``: the assignment with the least sum, and a bound that no assignment of these tables falls below.
   Where the tables leave something out, the ways that the planner chooses from the values around each op, which knows
   of copies that are at hand, are another candidate.
3. Slices that are joined again become one op after the decision (``spliced``): what they read and make stays as it was
   propagated, as the tables would avoid a price that nobody pays.
4. The plans of the whole program decide between propagation and the best candidates, by one clock, ``makespan``: a
   step takes as long as its schedule. No effort gives a slower plan than a lower one. ``trade`` limits what a faster
   plan may receive and store.
5. Where communication of that plan is exposed and work is left to hide it, the tables are solved again, with seconds
   that can be hidden (``slack``) counted in part: a gather of a weight waits for nothing, an exchange of activations
   holds up the next layer, and the sum does not see it. Such a plan is chosen if it is faster by ``FASTER``.
6. Where the fastest plan stores too much, plans between it and propagation alone are sought (``_Best.lighten``).
7. With effort 2 a small program's plan is then changed value by value (``Search.neighbors``), as long as that pays: the
   rules of ``trade`` and copies that ops share are not in the tables. With effort 1, only where a cheaper plan was
   refused and there are few changes.
8. With ``settle_results``, open results of main keep the shardings that propagation gives them, as JAX's do, unless
   another sharding receives less and saves ``MATERIAL``.

Invariants: what the user fixed is the same in all candidates; no randomness and no clock, so that equal programs get
equal shardings. Budgets count entries of tables, backtracks and plans.

Example, FSDP on d=8: ``x @ w`` with rows of x and rows of w over d. Propagation splits the contraction and sums
activations. In the tables the way "rows" takes w gathered, which is cheaper; docs/planning.md has the figures.

Complexity: that of ``candidates``, and at most ten plans of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from shardpass.cost.machine import IDEAL, Machine
from shardpass.cost.material import MATERIAL
from shardpass.planning.decide.bound import Bound, bound_of
from shardpass.planning.decide.candidates import ENOUGH, Point, Search
from shardpass.planning.options.choose import Decided
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_decided
from shardpass.planning.plan.trade import (
    ALONE,
    LEAST_SUM,
    Trade,
    heaviest,
    is_heavy,
    is_small,
    refused,
    saves_when_joined,
    spends_memory,
)
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings
from shardpass.propagation.program import Propagated

TRADED = "a cheaper plan receives or stores more than its saving may cost, or does not fit"
HIDDEN = "more of what the plan sends runs beside work"
WEIGHTS = ((1.0, 0.25), (0.25, 0.5))  # of work, and of what can be hidden, in further solutions of the tables
FASTER = 1e-2  # of a makespan, for a higher sum
NEAR = 1e-2  # of a makespan above its bound: a better plan is not sought, but with effort 2
TRIES = 1 << 14  # ops in all plans of single changes
TINY, FEW_TRIES = 32, 1 << 10  # ops of a program, and in all of its plans of single changes with effort 1
LIGHTER = 4  # plans between a plan that stores much and propagation alone
HIDEABLE = 0.03  # of a makespan: where less of it can be hidden, the sum decides
ROUNDING = 1e-9  # of a makespan


@dataclass(frozen=True)
class SearchChange:
    """One step of the search: a message that describes it, and the seconds of the plan before and after."""

    message: str
    before: float
    after: float


@dataclass(frozen=True)
class Decision:
    """The shardings of all values, and how they were decided.

    ``propagated``: the propagation that the search starts from, with its trace. ``changes``: the steps of the search,
    in order. ``tried``: how many plans of the whole program were compared. ``searched``: the folded program that was
    decided.
    ``parts``: of an op of ``propagated`` that is a part of one of the program, that op's number. ``decided``: what
    plans have decided on the way, for those that follow. ``find_bound``: finds ``bound``. ``memory``: the limit of
    bytes for which cheaper shardings were left, None where there are none. ``plan``: of the program under
    ``shardings``.
    """

    shardings: Shardings
    propagated: Propagated
    changes: tuple[SearchChange, ...] = ()
    tried: int = 0
    searched: Propagated | None = None
    parts: Mapping[int, int] = field(default_factory=dict)
    decided: Decided | None = None
    find_bound: Callable[[], Bound] | None = field(default=None, repr=False)
    memory: int | None = None
    plan: ProgramPlan | None = field(default=None, repr=False)
    plans: tuple[ProgramPlan, ProgramPlan] | None = None

    @cached_property
    def bound(self) -> Bound | None:
        """How near the decision is to the best of its tables; None where nothing was solved. Solves them again."""
        return None if self.find_bound is None else self.find_bound()

    @cached_property
    def trade(self) -> Trade | None:
        """What the decision receives and holds beyond propagation alone, or beyond the plan of the least sum where that
        is another, for the time it saves; None if nothing.
        """
        if self.plans is None:
            return None
        plain, plan = self.plans
        return Trade.between(plain, plan, LEAST_SUM if price(plain) < price(plan) * (1 - ENOUGH) else ALONE)


def decide(
    program: Program,
    barriers: Mapping[int, str],
    effort: int,
    machine: Machine = IDEAL,
    *,
    settle_results: bool = False,
) -> Decision:
    """Return shardings of all values of ``program``.

    ``barriers``: for each constraint (by op number) the direction in which shardings may pass it. ``effort``: 0
    propagates only; 1 solves; 2 goes on where the best plan is near its bound, and changes the plans of small programs
    value by value. ``machine``: on which the program will run.
    ``settle_results``: results of main that follow from annotations stay as propagated (``propagation.implied``).
    """
    propagated = Propagated(program, barriers)
    if effort < 1:
        return Decision(propagated.shardings, propagated)
    search = Search(program, barriers, machine)
    if settle_results:
        search.settle_results()
    search.run()
    best = _Best(program, propagated, search)
    for point in search.candidates:
        if point.splits != search.first.splits or search.cheaper_than(best.plain):
            best.consider(point)
    if machine.in_flight:
        for beside_whole in (True, False):
            if (waiting := search.with_sums_that_wait(best.plain, best.plan, beside_whole)) is not None:
                best.consider(waiting)
        for weights in WEIGHTS:
            near = 0.0 if effort > 1 else NEAR
            if best.plan.makespan * (1 - near) <= search.least() or _hideable(best.plan) < HIDEABLE:
                break
            if (weighed := search.weighed(best.plan, *weights)) is not None:
                best.consider(weighed, weighed=True)
    best.lighten()
    if effort > 1:
        best.improve(TRIES)
    elif best.why == TRADED and program.count <= TINY and search.changes * program.count <= FEW_TRIES:
        best.improve(FEW_TRIES)
    return best.decision


class _Best:
    """The best plan considered so far. The first is the plan of propagation."""

    def __init__(self, program: Program, propagated: Propagated, search: Search) -> None:
        self.program, self.search, self.results = program, search, propagated.shardings.results
        self.plain, shardings = plan_decided(program, propagated.shardings, search.decided)
        self.plan = self.least = self.plain
        self.point, self.why, self.tried = search.first, "", 1
        self.heavy: ProgramPlan | None = None  # the fastest that stores much
        self.best = Decision(shardings, propagated, searched=search.propagated, decided=search.decided)
        self.first = self.plan, self.point, self.best

    def consider(self, point: Point, weighed: bool = False) -> bool:
        """Plan the program at ``point``, and keep the plan where it pays; return whether it does. ``weighed``: its
        tables were.
        """
        search, before = self.search, self.plan
        plan, shardings = plan_decided(self.program, search.unfolded(point), search.decided)
        self.tried, self.last = self.tried + 1, plan
        if is_heavy(self.plain, plan) and (self.heavy is None or plan.makespan < self.heavy.makespan):
            self.heavy = plan
        moved = bool(search.settles) and shardings.results != self.results
        if not (moved or weighed or price(plan) >= price(self.least) or refused(self.plain, plan)):
            self.least = plan
        if not _pays(before, plan, moved, FASTER if weighed else ENOUGH):
            return False
        if refused(self.plain, plan) or (weighed and refused(before, plan)):
            self.why = self.why or TRADED
            return bool(shardings.copies) and self.consider(replace(point, copies={}), weighed)
        self.point, self.plan, self.why = point, plan, HIDDEN if weighed else self.why
        count = sum(one != other for one, other in zip(point.splits, search.first.splits, strict=True))
        change = SearchChange(f"{count} values at once", price(self.plain), price(plan))
        self.best = replace(
            self.best,
            shardings=shardings,
            propagated=search.propagated,
            changes=(change,),
            parts=search.folded.parts,
        )
        return True

    def lighten(self) -> None:
        """Seek plans between propagation alone and the fastest plan that stores much more, and compare them."""
        if self.heavy is None or not is_small(self.heavy):
            return
        best, heavy, kept = (self.plan, self.point, self.best), self.heavy, set[int]()
        for _ in range(LIGHTER):
            more = heaviest(self.plain, heavy) - kept
            kept |= more
            point = self.search.as_propagated(self.plain, kept) if more else None
            if point is None:
                break
            self.plan, self.point, self.best = self.first
            least = self.least
            if self.consider(point):
                if saves_when_joined(self.plain, self.plan):
                    best = _lighter(best, (self.plan, self.point, self.best))
                else:
                    self.least = least
            heavy = self.last
        self.plan, self.point, self.best = best

    def improve(self, tries: int) -> None:
        """Change single values of a small program as long as its plan gets faster. ``tries``: ops in all plans."""
        left = tries // max(1, self.program.count)
        again = True
        while again:
            again = False
            for splits in self.search.neighbors(self.point.splits):
                if not left:
                    return
                left -= 1
                if self.consider(Point(splits)):
                    again = True
                    break

    @property
    def decision(self) -> Decision:
        """The decision, with its bound and its additional costs."""
        plan, plain, why = self.plan, self.plain, self.why
        other = self.least if price(self.least) < price(plan) * (1 - ENOUGH) else self.plain
        if spends_memory(plain, plan):
            other = plain
        plans = None if other is plan else (other, plan)
        return replace(
            self.best, tried=self.tried, find_bound=lambda: bound_of(self.search, plan, why), plan=plan, plans=plans
        )


def _pays(before: ProgramPlan, plan: ProgramPlan, moved: bool, enough: float) -> bool:
    """Return whether ``plan`` is faster, or as fast with a lower sum; with ``moved`` open results, whether less
    communication pays for that. ``enough``: of a makespan, for which the sum may be higher.
    """
    if moved:
        sends_less = plan.bytes_received < before.bytes_received or len(plan.collectives) < len(before.collectives)
        return sends_less and plan.makespan < before.makespan * (1 - MATERIAL)
    cheaper = price(plan) < price(before) * (1 - ENOUGH)
    return plan.makespan < before.makespan * (1 - (0 if cheaper else enough)) or (
        cheaper and plan.makespan <= before.makespan * (1 + ROUNDING)
    )


def _lighter(*two: tuple[ProgramPlan, Point, Decision]) -> tuple[ProgramPlan, Point, Decision]:
    """Return the faster of two, unless it is refused beside the one that stores less."""
    light, heavy = sorted(two, key=lambda one: one[0].alive.temporaries)
    return heavy if heavy[0].makespan < light[0].makespan and not refused(light[0], heavy[0]) else light


def _hideable(plan: ProgramPlan) -> float:
    """Return the part of the makespan of ``plan`` that is communication for which work is left that could hide it."""
    work = plan.compute_seconds()
    left = work - max(0.0, price(plan) - plan.makespan)
    return min(plan.makespan - work, left) / plan.makespan if plan.makespan else 0.0
