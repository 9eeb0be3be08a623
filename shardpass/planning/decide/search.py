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

Complexity: one fold, one propagation, the tables (O(ops x ways x splits of a value)), toulbar2 on them, and at most
ten plans of the whole program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from shardpass.cost.machine import IDEAL, Machine
from shardpass.cost.material import MATERIAL
from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.planning.decide.bound import ALIKE, MANY, SAME, Bound
from shardpass.planning.decide.solver import Solution, Solver
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.choose import Decided, decided_on
from shardpass.planning.options.counts import Counts
from shardpass.planning.options.partial import over, split_of
from shardpass.planning.options.slack import Slack
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.costly import every_op
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
from shardpass.planning.price.fold import Folded, fold, unfold
from shardpass.planning.price.steps import SplitPlan
from shardpass.planning.solve.network import Table
from shardpass.planning.solve.result import Result
from shardpass.planning.solve.solve import Budget
from shardpass.program.program import Program
from shardpass.program.shardings import Factors, Shardings
from shardpass.propagation.engine import describe
from shardpass.propagation.implied import fix_implied
from shardpass.propagation.program import Propagated
from shardpass.sharding import Sharding

SPLICED = "slices that are joined again become one op after the decision"  # of which tables do not know
TRADED = "a cheaper plan receives or stores more than its saving may cost, or does not fit"
HIDDEN = "more of what the plan sends runs beside work"
WEIGHTS = ((1.0, 0.25), (0.25, 0.5))  # of work, and of what can be hidden, in further solutions of the tables
BOUNDS = ((0.0, 0.0), (0.1, 1.0))  # weights that serve a bound: of exposed communication, and of all
WEIGHED = Budget(backtracks=3)  # of each of these
ROUNDS = 1 << 21  # entries of tables in all rounds of each
WHOLE = 1 << 24  # entries of the tables of a program in which equal layers are decided one by one, for its bound
FASTER = 1e-2  # of a makespan, for a higher sum
BUSY = 0.8  # of a makespan: where more of it is communication, all of that serves the bound
NEAR = 1e-2  # of a makespan above its bound: a better plan is not sought, but with effort 2
TRIES = 1 << 14  # ops in all plans of single changes
TINY, FEW_TRIES = 32, 1 << 10  # ops of a program, and in all of its plans of single changes with effort 1
LIGHTER = 4  # plans between a plan that stores much and propagation alone
HIDEABLE = 0.03  # of a makespan: where less of it can be hidden, the sum decides
ROUNDING = 1e-9  # of a makespan
ENOUGH = 1e-6  # of a price: a smaller gain is rounding, and the annotated sharding is kept


@dataclass(frozen=True)
class SearchChange:
    """One step of the search: a message that describes it, and the seconds of the plan before and after."""

    message: str
    before: float
    after: float


@dataclass(frozen=True)
class Point:
    """The splits of all values of the folded program, and the ways of its ops (by number) that are decided too.

    ``partial``: the axes over which values wait as partial sums. ``copies``: of values that the user fixed, those that
    users share.
    """

    splits: tuple[DimAxes, ...]
    ways: Mapping[int, Factors] = field(default_factory=dict)
    partial: Mapping[int, Axes] = field(default_factory=dict)
    copies: Mapping[int, Sharding] = field(default_factory=dict)


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
    """The best plan of those considered so far, propagation's first."""

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
        """The decision, with its bound and what it spends."""
        plan, plain, why = self.plan, self.plain, self.why
        other = self.least if price(self.least) < price(plan) * (1 - ENOUGH) else self.plain
        if spends_memory(plain, plan):
            other = plain
        plans = None if other is plan else (other, plan)
        return replace(
            self.best, tried=self.tried, find_bound=lambda: self.search.bound(plan, why), plan=plan, plans=plans
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


class Search:
    """One decision about a folded program; call ``run``, then plan ``candidates``.

    ``first``: as propagated. ``candidates``: all points that the tables solved.
    """

    solver: Solver | None = None
    solved: Result | None = None
    settles = False
    open_results: tuple[int, ...] = ()  # values of the engine that follow from no annotation
    bounds: tuple[tuple[float, float, float], ...] = ()  # (compute, hideable, least) of each solution of the tables

    def __init__(
        self,
        program: Program,
        barriers: Mapping[int, str],
        machine: Machine,
        folded: Folded | None = None,
        decided: Decided | None = None,
        joined: bool = False,
    ) -> None:
        self.program, self.barriers, self.machine, self.joined = program, barriers, machine, joined
        self.folded: Folded = folded or fold(program, barriers)
        self.propagated = Propagated(self.folded.program, barriers)
        self.engine = self.propagated.engine
        self.decided = decided or decided_on(program.mesh, machine)
        self.counts = Counts(self.folded, self.decided.clock)
        self.first = Point(self.engine.snapshot())
        self.candidates: list[Point] = []
        self.why = ""  # there is no bound

    def unfolded(self, point: Point) -> Shardings:
        """Return the shardings of the whole program at ``point``."""
        self.engine.restore(point.splits)
        refused = self.engine.refusals()
        shardings = replace(
            self.propagated.table(),
            conflicts={
                op: describe(conflict, self.engine.mesh)
                for conflict in refused
                if (op := self.engine.steps[conflict.step].op) is not None
            },
            ways=point.ways,
            partial=point.partial,
            copies=point.copies,
        )
        return self.folded.unfolded(shardings)

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
        """Solve the tables."""
        self.solver = solver = Solver(self.propagated, self.counts, whole_axes(self.folded.program.mesh), self.joined)
        spliced = self._spliced()
        self.why = SPLICED if spliced else solver.left_out
        self.kept = self._present(spliced)
        solution = solver.solve(fixed=self.kept)
        if not solution.result.values:
            self.why = "no assignment of the tables keeps all that is fixed"
            return
        self._solved(solution)
        if not solution.splits.keys().isdisjoint(self.open_results):
            kept = solver.solve(fixed=self.kept | self._present(self.open_results), start=solution.result.values)
            if kept.result.values:
                self._add(kept)
                if solution.result.price > kept.result.price * (1 - MATERIAL):
                    self._solved(kept)
                    return
        self._add(solution)

    def _solved(self, solution: Solution) -> None:
        self.solved = solution.result
        self.bounds = ((1.0, 1.0, solution.result.bound),)

    def _spliced(self) -> list[int]:
        """Return the values of the engine that ops read or make which become one op later."""
        numbers, index = spliced(self.folded.program), self.propagated.index
        ops = [op for op in self.folded.program.body.every_op() if op.number in numbers]
        return [index[value] for op in ops for value in (*op.operands, *op.results) if value in index]

    def bound(self, plan: ProgramPlan, why: str) -> Bound:
        """Return how near the decision ``plan`` is to the best sharding in the tables. ``why`` there is no closer
        bound, where the tables do not say.
        """
        if self.why or self.solved is None:
            return Bound(price(plan), why=self.why or why)
        assert self.solver is not None
        entries = math.fsum([table.costs.size for table in self.solver.network.tables])
        if self.folded.folds and entries * self.program.count > WHOLE * self.folded.program.count:
            return Bound(price(plan), why=MANY)
        whole = self._whole()
        if not why and self.folded.folds and whole.solved and whole.solved.price < self.solved.price * (1 - SAME):
            why = ALIKE
        return whole._bound(plan, why, [weights[:2] for weights in self.bounds[1:]])

    def _whole(self) -> Search:
        """Return the solved search for a bound: equal layers need not be alike in it, and an op that takes one array
        several times brings it once, as plans do.
        """
        ops = self.program.body.every_op()
        if not self.folded.folds and all(len({*op.operands}) == len(op.operands) for op in ops):
            return self
        whole = Search(self.program, self.barriers, self.machine, unfold(self.program), self.decided, joined=True)
        if self.settles:
            whole.settle_results()
        whole.run()
        return whole

    def _bound(self, plan: ProgramPlan, why: str, weights: Iterable[tuple[float, float]]) -> Bound:
        """Return the bound that these tables give. ``weights``: of further solutions that serve it."""
        if self.why or self.solved is None:
            return Bound(price(plan), why=self.why or why)
        bound = Bound.of(price(plan), self.solved.price, self.solved.bound, self.solved.why)
        bound = replace(bound, why=bound.why or why)
        if plan.machine.in_flight != 1:
            return bound
        assert self.solver is not None
        works = {number: work for number, (work, _) in self.solver.network.least.items()}
        slack = Slack(self.program, self.folded, plan.compute_by_op(), works)
        busy = plan.price - plan.compute_seconds() > BUSY * plan.makespan
        for each in (*weights, BOUNDS[busy]):
            if self.least() < plan.makespan * (1 - SAME) and each not in [one[:2] for one in self.bounds]:
                self._weighed(slack, *each, entries=0)
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
        if self.solver is None or self.why or self.machine.in_flight != 1:
            return 0.0
        work = math.fsum([least * often for least, often in self.solver.network.least.values()])
        return max([work, *[(least + (1 - hide) * work) / (1 + compute) for compute, hide, least in self.bounds]])

    def _present(self, indices: Iterable[int]) -> dict[int, int]:
        """Return the choice of each value of the engine that leaves it as it was propagated, by variable."""
        assert self.solver is not None
        dims_of = self.first.splits
        places = [(self.solver.place(index), dims_of[index]) for index in indices]
        return {place.variable: place.domain.index(dims) for place, dims in places if dims in place.domain}

    def cheaper_than(self, plan: ProgramPlan) -> bool:
        """Return whether the solution of the tables costs less than ``plan``."""
        return self.solved is not None and self.solved.price < price(plan) * (1 - ENOUGH)

    def with_sums_that_wait(self, plain: ProgramPlan, best: ProgramPlan, beside_whole: bool) -> Point | None:
        """Return the propagated shardings with sums that wait, ``beside_whole`` summands too or, as later passes join
        them (``passes.combine``), beside others alone; None where such a plan cannot be faster than ``best``.
        """
        solver = self.solver
        if solver is None or self.solved is None or not solver.network.may_wait:
            return None
        mixed = () if beside_whole else solver.network.waiting.beside_whole(self.folded.program)
        if not (mixed or beside_whole):
            return None
        self.engine.restore(self.first.splits)
        complete = {self.propagated.index[value] for value in mixed}
        fixed, more = {}, []
        for variable, domain in solver.network.domains.items():
            dims = self.engine.values[variable].dims
            same = [split_of(layout) == dims and not (over(layout) and variable in complete) for layout in domain]
            if sum(same) == 1:
                fixed[variable] = same.index(True)
            elif any(same):
                more.append(Table((variable,), np.where(same, 0.0, np.inf)))
        solution = solver.solve(more, fixed, budget=WEIGHED, entries=ROUNDS)
        saved = price(plain) - solution.result.price
        if not solution.partial or plain.makespan - saved >= best.makespan:
            return None
        return self._add(solution)

    def weighed(self, plan: ProgramPlan, compute: float, hideable: float) -> Point | None:
        """Return the solution of the tables in which what can be hidden counts in part; None if it is known.

        ``plan``: the best so far, for which the slacks are.
        """
        if self.solved is None or self.solver is None:
            return None
        slack = self.solver.network.slack or Slack(self.program, self.folded, plan.compute_by_op())
        solution = self._weighed(slack, compute, hideable)
        return self._add(solution) if solution.result.values else None

    def as_propagated(self, plain: ProgramPlan, numbers: Collection[int]) -> Point | None:
        """Return the solution of the tables in which the ops ``numbers`` run as in ``plain``, the plan of propagation
        alone, on what they read and make there; None if it is known.
        """
        if self.solved is None or self.solver is None:
            return None
        self.engine.restore(self.first.splits)
        fixed, values = self.kept | self._present(self.open_results), set[int]()
        for one in every_op(plain.body):
            if one.op.number in numbers:
                values |= {self.folded.of[value] for value in (*one.op.operands, *one.op.results)}
                variable, ways = self.solver.network.ways.get(self.folded.ops.get(one.op.number, -1), (-1, ()))
                split = one.local.split if isinstance(one, SplitPlan) else None
                same = [
                    way for way in ways if split and way.operands == split.operands and way.results == split.results
                ]
                if same:
                    fixed[variable] = ways.index(same[0])
        index = self.propagated.index
        solution = self.solver.solve(
            fixed=fixed | self._present([index[value] for value in values if value in index]), start=self.solved.values
        )
        return self._add(solution) if solution.result.values else None

    def _weighed(self, slack: Slack, compute: float, hideable: float, entries: int = ROUNDS) -> Solution:
        """Solve the tables with weights, from their solution, and add the bound; once without ``entries``."""
        assert self.solver is not None
        assert self.solved is not None
        solver = self.solver
        self.engine.restore(self.first.splits)
        solver.network.weigh(slack, compute, hideable)
        fixed = self.kept | self._present(self.open_results)
        solution = solver.solve(fixed=fixed, start=self.solved.values, budget=WEIGHED, entries=entries)
        if solution.result.values:
            self.bounds += ((compute, hideable, solution.result.bound),)
        return solution

    def _add(self, solution: Solution) -> Point | None:
        """Add the point of a solution of the tables to the candidates; return None if it is known.

        Where the tables leave something out, the ways that the planner chooses are a candidate, too.
        """
        self.engine.restore(self.first.splits)
        self.engine.assign(solution.splits)
        values = {index: value for value, index in self.propagated.index.items()}
        partial = {values[index]: axes for index, axes in solution.partial.items()}
        copies = {value: self.counts.meshes[value].sharding(split) for value, split in solution.copies.items()}
        point = Point(self.engine.snapshot(), solution.ways, partial, copies)
        self.engine.restore(self.first.splits)
        if point in (self.first, *self.candidates):
            return None
        self.candidates.append(point)
        if self.why:
            self.candidates.append(Point(point.splits))
        return point

    @property
    def changes(self) -> int:
        """The number of ``neighbors`` of any splits, at most."""
        if self.solver is None or self.solved is None:
            return 0
        domains = self.solver.network.domains
        return sum(len(domain) - 1 for variable, domain in domains.items() if variable not in self.kept)

    def neighbors(self, splits: tuple[DimAxes, ...]) -> Iterator[tuple[DimAxes, ...]]:
        """Yield ``splits`` with one open value, and those that are tied to it, split otherwise."""
        assert self.solver is not None
        network = self.solver.network
        groups = {index: members for members in self.propagated.groups.values() for index in members}
        for variable, domain in network.domains.items():
            members = groups.get(variable) or network.members.get(variable) or [variable]
            for layout in domain if variable not in self.kept else ():
                if not over(layout) and layout != splits[variable]:
                    yield tuple([layout if index in members else dims for index, dims in enumerate(splits)])


def spliced(program: Program) -> frozenset[int]:
    """Return the numbers of concatenates of slices, and of these slices, which partitioning joins into one op."""
    cut = {value: op.number for op in program.body.every_op() if op.name == "stablehlo.slice" for value in op.results}
    numbers: set[int] = set()
    for op in program.body.every_op():
        if op.name == "stablehlo.concatenate" and not cut.keys().isdisjoint(op.operands):
            numbers.add(op.number)
            numbers.update(cut[value] for value in op.operands if value in cut)
    return frozenset(numbers)
