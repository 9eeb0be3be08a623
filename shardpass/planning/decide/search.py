"""The decision: shardings of all values and ways of all ops of a program, solved at once, with a bound.

Problem: propagation decides op by op, in the order in which shardings arrive, and cannot undo. With weights and batch
split over one axis (FSDP), a weight's split contraction looks free while the batch has not arrived, and its axis is
gone when it does: every layer then sums activations, where gathering the weight would cost a tenth.

1. Propagation of the annotations (effort 0). It is always a candidate, and fills in what the tables leave out.
2. Tables of the folded program (``fold``: repeated layers are one, with their true counts), made by ``tables`` and
   solved by ``solve``: the assignment with the least sum, and a bound that no assignment of these tables falls below.
   Where the tables leave something out, the ways that the planner chooses from the values around each op, which knows
   of copies that are at hand, are another candidate.
3. A descent (``descent``) from the best of these, where the tables leave something out: with effort 2, as they know
   whole axes alone; and where some values or ops have too many splits to be listed, or ops are joined after the
   decision.
4. The plans of the whole program decide between propagation and the best candidates, by one clock, ``makespan``: a
   step takes as long as its schedule. No effort gives a slower plan than a lower one. ``trade`` limits what a faster
   plan may receive and store.
5. Where communication of that plan is exposed and work is left to hide it, the tables are solved again, with seconds
   that can be hidden (``slack``) counted in part: a gather of a weight waits for nothing, an exchange of activations
   holds up the next layer, and the sum does not see it. Such a plan is chosen if it is faster by ``FASTER``.
6. With ``settle_results``, open results of main keep the shardings that propagation gives them, as JAX's do, unless
   another sharding receives less and saves ``MATERIAL``.

Invariants: what the user fixed is the same in all candidates; no randomness and no clock, so that equal programs get
equal shardings. Budgets count entries of tables, backtracks and moves.

Example, FSDP on d=8: ``x @ w`` with rows of x and rows of w over d. Propagation splits the contraction and sums
activations. In the tables the way "rows" takes w gathered, which is cheaper; docs/planning.md has the figures.

Complexity: one fold, one propagation, the tables (O(ops x ways x splits of a value)), toulbar2 on them, and at most
five plans of the folded program and four of the whole one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np

from shardpass.cost.machine import IDEAL, Machine
from shardpass.cost.material import MATERIAL
from shardpass.planning.decide.descent import Descent, Point, SearchChange
from shardpass.planning.decide.solver import Solution, Solver
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.choose import Decided
from shardpass.planning.options.partial import over, split_of
from shardpass.planning.options.slack import Slack
from shardpass.planning.options.space import Space, space_of
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_decided
from shardpass.planning.plan.trade import ALONE, LEAST_SUM, Trade, refused, spends_memory
from shardpass.planning.solve.network import Table
from shardpass.planning.solve.result import Result
from shardpass.planning.solve.solve import Budget
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings
from shardpass.propagation.implied import fix_implied
from shardpass.propagation.program import Propagated

SAME = 1e-4  # a gap below it is no news to a user: ties and rounding
LEAST = "the least sum of communication and work (whole axes, no shared copies)"  # the model of the tables
SHARED = (
    "ops share a copy of an array, or parts of axes split one, and the plan costs less than the least of the tables"
)
PLANNED = "the plan brings arrays otherwise than the tables do"
SPLICED = "slices that are joined again become one op after the decision"  # of which tables do not know
TRADED = "a cheaper plan receives or stores more than its saving may cost, or does not fit"
HIDDEN = "more of what the plan sends runs beside work"
WEIGHTS = ((1.0, 0.25), (0.25, 0.5))  # of work, and of what can be hidden, in further solutions of the tables
BOUNDS = ((0.0, 0.0), (0.1, 1.0))  # weights that serve a bound: of exposed communication, and of all
WEIGHED = Budget(backtracks=3)  # of each of these
ROUNDS = 1 << 21  # entries of tables in all rounds of each
FASTER = 1e-2  # of a makespan, for a higher sum
BUSY = 0.8  # of a makespan: where more of it is communication, all of that serves the bound
NEAR = 1e-2  # of a makespan above its bound: a better plan is not sought, but with effort 2
HIDEABLE = 0.03  # of a makespan: where less of it can be hidden, the sum decides
ROUNDING = 1e-9  # of a makespan
ENOUGH = 1e-6  # of a price: a smaller gain is rounding, and the annotated sharding is kept


@dataclass(frozen=True)
class Bound:
    """How near a decision is to the least sum of seconds in the model of its tables.

    The tables have splits over whole axes, and each op makes its own copy of an open array. A plan outside of this
    model may cost less: over a part of an axis, or with a copy that several ops use.

    ``price``: what the decision costs in the tables, in seconds; ``least``: a lower bound for all shardings in them.
    Both are None if there is no bound. ``plan``: the seconds of the plan, in which ops share copies: if it is below the
    least of the tables, that is no bound. ``why``: the reason for which there is no bound, or no closer one.
    ``makespan``: of the plan, ``least_makespan``: a lower bound for all shardings in the tables; None without one, or
    where nothing overlaps, and the makespan is the sum.
    """

    plan: float
    price: float | None = None
    least: float | None = None
    why: str = ""
    makespan: float | None = None
    least_makespan: float | None = None

    @classmethod
    def of(cls, plan: float, price: float, least: float, why: str) -> Bound:
        """Return the bound of a solution of the tables; empty if ``plan`` is below ``least``."""
        if plan < least * (1 - SAME):
            return cls(plan, why=SHARED)
        return cls(plan, price, min(least, plan), why)

    @property
    def gap(self) -> float | None:
        """The fraction that a better sharding may save at most of the price, or of the plan where that costs more; None
        without a bound.
        """
        if self.price is None or self.least is None:
            return None
        most = max(self.price, self.plan)
        return max(0.0, most - self.least) / most if most > 0 else 0.0

    @property
    def makespan_gap(self) -> float | None:
        """The fraction of the makespan that a better sharding may save at most; None without a bound."""
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
        if self.gap < SAME:
            return f"at {LEAST}"
        above = PLANNED if self.price is not None and self.plan > self.price * (1 + SAME) else ""
        why = f", as {self.why or above}" if self.why or above else ""
        return f"within {max(self.gap, 1e-3):.1%} of {LEAST}{why}"


@dataclass(frozen=True)
class Decision:
    """The shardings of all values, and how they were decided.

    ``propagated``: the propagation that the search starts from, with its trace. ``changes``: the steps of the search,
    in order. ``tried``: how many moves a descent looked at. ``searched``: the folded program that was decided.
    ``parts``: of an op of ``propagated`` that is a part of one of the program, that op's number. ``decided``: what
    plans have decided on the way, for those that follow. ``find_bound``: finds ``bound``. ``memory``: the limit of
    bytes for which cheaper shardings were left, None where there are none.
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

    @property
    def space(self) -> Space | None:
        """The classes of dimensions and their conflicts, repeated layers counted once; None if nothing was searched."""
        return None if self.searched is None else space_of(self.searched.engine)


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
    propagates only; 1 solves; 2 then descends, over parts of axes too. ``machine``: on which the program will run.
    ``settle_results``: results of main that follow from annotations stay as propagated (``propagation.implied``).
    """
    propagated = Propagated(program, barriers)
    if effort < 1:
        return Decision(propagated.shardings, propagated)
    search = Search(program, barriers, effort, machine)
    if settle_results:
        search.settle_results()
    search.run()
    best = _Best(program, propagated, search)
    for candidate in search.candidates:
        best.consider(*candidate)
    if machine.in_flight:
        if (waiting := search.with_sums_that_wait(best.plain, best.plan)) is not None:
            best.consider(*waiting)
        for weights in WEIGHTS:
            near = 0.0 if effort > 1 else NEAR
            if best.plan.makespan * (1 - near) <= search.least() or _hideable(best.plan) < HIDEABLE:
                break
            if (weighed := search.weighed(best.plan, *weights)) is not None:
                best.consider(*weighed, weighed=True)
    return best.decision


class _Best:
    """The best plan of those considered so far, propagation's first."""

    def __init__(self, program: Program, propagated: Propagated, search: Search) -> None:
        self.program, self.search, self.results = program, search, propagated.shardings.results
        self.plain, shardings = plan_decided(program, propagated.shardings, search.decided)
        self.plan = self.least = self.plain
        self.best = Decision(shardings, propagated, (), search.tried, search.propagated, decided=search.decided)
        self.why = ""

    def consider(self, point: Point, changes: tuple[SearchChange, ...], weighed: bool = False) -> None:
        """Plan the program at ``point``, and keep the plan where it pays. ``weighed``: its tables were."""
        search, before = self.search, self.plan
        plan, shardings = plan_decided(self.program, search.unfolded(point), search.decided)
        moved = bool(search.settles) and shardings.results != self.results
        if not (moved or weighed or price(plan) >= price(self.least) or refused(self.plain, plan)):
            self.least = plan
        if not _pays(before, plan, moved, FASTER if weighed else ENOUGH):
            return
        if refused(self.plain, plan) or (weighed and refused(before, plan)):
            self.why = self.why or TRADED
            return
        self.plan, self.why = plan, HIDDEN if weighed else self.why
        parts = search.folded.parts
        self.best = Decision(
            shardings, search.propagated, changes, search.tried, search.propagated, parts, search.decided
        )  # fmt: skip

    @property
    def decision(self) -> Decision:
        """The decision, with its bound and what it spends."""
        plan, plain, why = self.plan, self.plain, self.why
        other = self.least if price(self.least) < price(plan) * (1 - ENOUGH) else self.plain
        if spends_memory(plain, plan):
            other = plain
        plans = None if other is plan else (other, plan)
        return replace(self.best, find_bound=lambda: self.search.bound(plan, why), plans=plans)


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


def _hideable(plan: ProgramPlan) -> float:
    """Return the part of the makespan of ``plan`` that is communication for which work is left that could hide it."""
    work = plan.compute_seconds()
    left = work - max(0.0, price(plan) - plan.makespan)
    return min(plan.makespan - work, left) / plan.makespan if plan.makespan else 0.0


Candidate = tuple[Point, tuple[SearchChange, ...]]


class Search(Descent):
    """One decision about a folded program; call ``run``, then ``unfolded``.

    ``best`` is the point with the cheapest folded plan; ``candidates`` are all points cheaper than the best before
    them, and all that the tables solved, with the steps that led to them.
    """

    candidates: list[Candidate]
    solver: Solver | None = None
    solved: Result | None = None
    why: str = ""  # there is no bound
    settles = False
    open_results: tuple[int, ...] = ()  # values of the engine that follow from no annotation
    bounds: tuple[tuple[float, float, float], ...] = ()  # (compute, hideable, least) of each solution of the tables

    def settle_results(self) -> None:
        """Fix the results of main that follow from annotations, and tiles that ops show to the user. Precedes
        ``run``.
        """
        self.settles = True
        for value in tuple(dict.fromkeys(self._shown())):
            self.engine.fix(value)
        results = [result for result in self.propagated.results if result is not None]
        fix_implied(self.engine, results)
        self.open_results = tuple(result for result in results if not self.engine.values[result].fixed)

    def _shown(self) -> Iterator[int]:
        """Yield the values of the engine whose tiles an op shows to the user, and that are not fixed."""
        for op in self.program.body.every_op():
            if op.model is not None and op.model.shows_tiles:
                for value in op.operands:
                    index = self.propagated.index.get(self.folded.of[value])
                    if index is not None and not self.engine.values[index].fixed:
                        yield index

    def run(self) -> None:
        """Solve the tables, and descends from the best point if they leave something out."""
        self.candidates = []
        solver = self._solver()
        if solver is not None:
            self._solve(solver)
        if self.effort > 1 or solver is None or not solver.complete:
            changes, point = self._descend(replace(self.best, ways={}, partial={}), self.close)
            if changes:
                before = tuple(self.changes) if self.best is not self.first else ()
                self._consider(point, (*before, *changes))

    def bound(self, plan: ProgramPlan, why: str) -> Bound:
        """Return how near the decision ``plan`` is to the best sharding in the tables. ``why`` there is no closer
        bound, where the tables do not say.
        """
        if self.why or self.solved is None:
            return Bound(price(plan), why=self.why or why)
        bound = Bound.of(price(plan), self.solved.price, self.solved.bound, self.solved.why)
        bound = replace(bound, why=bound.why or why)
        if plan.machine.in_flight != 1:
            return bound
        assert self.solver is not None
        works = {number: work for number, (work, _) in self.solver.network.least.items()}
        slack = Slack(self.program, self.folded, plan.compute_by_op(), works)
        if self.least() < plan.makespan * (1 - SAME):
            busy = plan.price - plan.compute_seconds() > BUSY * plan.makespan
            self._solved(slack, *BOUNDS[busy], entries=0)
        least = self.least()
        if least > plan.makespan * (1 + SAME):
            return bound
        return replace(bound, makespan=plan.makespan, least_makespan=min(least, plan.makespan))

    def least(self) -> float:
        """Return a lower bound of the makespans of all shardings in the tables, 0 where there is none.

        Of a plan with the work W, the communication C, and C beyond the slacks of its edges E, one collective at a
        time: its makespan is at least W, at least C, and at least E and the least work of each op, L. So for weights
        k of work and h of what fits into slacks, the tables at least b: makespan >= (b + (1 - h) L) / (1 + k). Slacks
        of more work than the least are greater, and their bound is one.
        """
        if self.solver is None or self.why or self.clock.machine.in_flight != 1:
            return 0.0
        work = math.fsum([least * often for least, often in self.solver.network.least.values()])
        return max([work, *[(least + (1 - hide) * work) / (1 + compute) for compute, hide, least in self.bounds]])

    def _solver(self) -> Solver | None:
        """Build the tables; return None and set ``why`` if they would not describe the program."""
        if self.spliced:
            self.why = SPLICED
        else:
            solver = Solver(self.propagated, self.estimate, whole_axes(self.folded.program.mesh))
            if not solver.complete:
                self.why = solver.left_out
            return solver
        return None

    def _solve(self, solver: Solver) -> None:
        self.engine.restore(self.first.splits)
        self.solver, solution = solver, solver.solve()
        if not solution.result.values:
            self.why = "no assignment of the tables keeps all that is fixed"
            return
        self.solved = solution.result
        self.bounds = ((1.0, 1.0, solution.result.bound),)
        if not solution.splits.keys().isdisjoint(self.open_results):
            kept = solver.solve(fixed=self._present_results(solver), start=solution.result.values)
            if kept.result.values:
                self._propose(kept, solver.complete)
                if solution.result.price > kept.result.price * (1 - MATERIAL):
                    self.solved = kept.result
                    self.bounds = ((1.0, 1.0, kept.result.bound),)
                    return
        self._propose(solution, solver.complete)

    def _present_results(self, solver: Solver) -> dict[int, int]:
        """Return the choice of each open result that leaves it as it was propagated, by variable."""
        places = [(solver.place(index), self.engine.values[index].dims) for index in self.open_results]
        return {place.variable: place.domain.index(dims) for place, dims in places if dims in place.domain}

    def _propose(self, solution: Solution, complete: bool) -> None:
        """Propose a solution of the tables, with folded plans where a descent may follow or only ways of ops differ."""
        points = [self._solution(solution)]
        if self.effort > 1 or not complete or points[0].splits == self.first.splits:
            self.engine.assign(solution.splits, settle=False)
            points = [self._planned(points[0].ways, points[0].partial)]
            if not complete:
                points.append(self._point())
            self.engine.restore(self.first.splits)
        for point in points:
            self._consider(point, self._change_to(solution, point), solved=True)

    def _solution(self, solution: Solution) -> Point:
        """Return the point of a solution of the tables, at their price and without a plan."""
        self.engine.restore(self.first.splits)
        self.engine.assign(solution.splits, settle=False)
        partial = {self.values[index]: axes for index, axes in solution.partial.items()}
        point = Point(self.engine.snapshot(), {}, solution.result.price, solution.ways, partial)
        self.engine.restore(self.first.splits)
        return point

    def _change_to(self, solution: Solution, point: Point) -> tuple[SearchChange, ...]:
        return (SearchChange(f"{len(solution.splits)} values at once", None, self.first.price, point.price),)

    def _consider(self, point: Point, changes: tuple[SearchChange, ...], solved: bool = False) -> None:
        """Keep ``point`` as a candidate if its folded plan is cheaper than the best one.

        A point that the tables ``solved`` is a candidate at any folded price, unless it changes no sharding: the price
        of a fold may be too high, so the whole plan is compared.
        """
        cheaper = point.price < self.best.price * (1 - ENOUGH)
        if cheaper:
            self.best, self.changes = point, list(changes)
        if cheaper or (solved and point.splits != self.first.splits):
            self.candidates.append((point, changes))

    def with_sums_that_wait(self, plain: ProgramPlan, best: ProgramPlan) -> Candidate | None:
        """Return the propagated shardings with sums that wait, as later passes join them (``passes.combine``); None
        where such a plan cannot be faster than ``best``.
        """
        solver = self.solver
        if solver is None or self.solved is None or not solver.network.may_wait:
            return None
        self.engine.restore(self.first.splits)
        alone = {self.propagated.index[value] for value in solver.network.waiting.beside_whole(self.folded.program)}
        fixed, more = {}, []
        for variable, domain in solver.network.domains.items():
            dims = self.engine.values[variable].dims
            same = [split_of(layout) == dims and not (over(layout) and variable in alone) for layout in domain]
            if sum(same) == 1:
                fixed[variable] = same.index(True)
            elif any(same):
                more.append(Table((variable,), np.where(same, 0.0, np.inf)))
        solution = solver.solve(more, fixed, budget=WEIGHED, entries=ROUNDS)
        saved = price(plain) - solution.result.price
        if not solution.partial or plain.makespan - saved >= best.makespan:
            return None
        return self._candidate(solution)

    def weighed(self, plan: ProgramPlan, compute: float, hideable: float) -> Candidate | None:
        """Return the solution of the tables in which what can be hidden counts in part; None if it is known.

        ``plan``: the best so far, for which the slacks are.
        """
        if self.solved is None or self.solver is None:
            return None
        slack = self.solver.network.slack or Slack(self.program, self.folded, plan.compute_by_op())
        solution = self._solved(slack, compute, hideable)
        return self._candidate(solution) if solution.result.values else None

    def _solved(self, slack: Slack, compute: float, hideable: float, entries: int = ROUNDS) -> Solution:
        """Solve the tables with weights, from their solution, and add the bound; once without ``entries``."""
        assert self.solver is not None
        assert self.solved is not None
        solver = self.solver
        self.engine.restore(self.first.splits)
        solver.network.weigh(slack, compute, hideable)
        fixed = self._present_results(solver) if self.open_results else {}
        solution = solver.solve(fixed=fixed, start=self.solved.values, budget=WEIGHED, entries=entries)
        if solution.result.values:
            self.bounds += ((compute, hideable, solution.result.bound),)
        return solution

    def _candidate(self, solution: Solution) -> Candidate | None:
        """Return a solution of the tables, without a folded plan; None if it is known."""
        point = self._solution(solution)
        if any((point.splits, _key(point)) == (other.splits, _key(other)) for other, _ in self.candidates):
            return None
        self.candidates.append((point, self._change_to(solution, point)))
        return self.candidates[-1]


def _key(point: Point) -> frozenset[object]:
    """Return what a point decides beside the splits of values."""
    return frozenset([*point.ways.items(), *point.partial.items()])
