"""The cheapest shardings that are found for a program: greedy propagation, and then changes as long as they pay.

Problem: propagation decides op by op, in the order in which shardings arrive, and cannot undo. With weights and batch
split over one axis (FSDP), a weight's split contraction looks free while the batch has not arrived, and its axis is
gone when it does: every layer then sums activations, where gathering the weight would cost a tenth. Which dimensions
belong together is known (TOAST, Alabed et al. 2025, searches over these too), and a plan knows what either costs.

State: points, each the splits of all values of the folded program (``fold``: repeated layers are one) with the price of
its plan (``cost``).

1. Start: propagation as the user said it; with ``effort`` 2 another, in which right operands of products (weights, as
   ``x @ w`` is written) take part after all others have come to rest.
2. A low sum of local terms over all assignments (``solve``), of programs whose values are decided at once with
   ``effort`` 1: a descent begins at its assignment too, where that is cheaper than the start. Where the sum is the
   least one, and a point costs as much, nothing is left to gain and the search ends. A point below it shows that the
   sum is no bound here (a plan takes copies at hand, or computes values again), and the search goes on. What gains
   less than its additional collectives would cost at a higher latency is left.
3. Descent: from the ops that receive most, moves are tried (``moves``): a factor takes an axis wherever that reaches,
   or loses it. A move is estimated from the ops around what it changes (``estimate``); the best ones of an op are
   planned, and the first whose plan is cheaper becomes the next point. It ends when no move of any op pays, or when the
   budget of moves is spent.
4. All values at once again, from the cheapest point so far, and a descent from there. Of large programs with
   ``effort`` 2 alone, as it would take longer than all the rest.
5. Detours, of small programs or with ``effort`` 2: a step that does not pay, and a descent from there.
6. The cheapest point gives all values of the program their shardings. Where it gains little, the plans of the whole
   program decide, so that a folded program's small errors never make anything dearer.

Invariants: what the user fixed is the same in all points; what the outside sees is split evenly; no randomness and no
clock, so that equal programs get equal shardings.

Example, FSDP on d=8: ``x @ w`` with rows of x and rows of w over d. Propagation splits the contraction and sums
activations. The dearest op is the dot_general; of its moves "rows of x over d" reaches all activations, and is cheaper.

Complexity: one fold and one propagation; each move O(values that it reaches + ops around them); each point one plan of
the folded program. None grows with the number of equal layers but the fold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.choose import Decided, decided_on
from shardpass.planning.clock import clock_of
from shardpass.planning.cost import costs, price
from shardpass.planning.estimate import Estimate
from shardpass.planning.fold import Folded, fold
from shardpass.planning.moves import FAR, NEAR, Move, Moves, Reach, sub_axes, whole_axes
from shardpass.planning.planner import plan_program
from shardpass.planning.space import Space, space_of
from shardpass.planning.tables import Solution, Solver
from shardpass.planning.weights import right_operands_late
from shardpass.program.program import Program
from shardpass.program.shardings import Shardings
from shardpass.propagation.engine import describe
from shardpass.propagation.program import Propagated
from shardpass.propagation.settled import settle

TRIES = {1: 400, 2: 6000}  # moves that a search may try, by effort
SMALL = 64  # ops of a folded program that is searched closely with effort 1 too, as that takes no time
VERY_SMALL = 16  # ops of a folded program of which moves that stay at their op are tried with effort 1 too
TINY = 8  # ops of a folded program for which reshards are planned before all values are decided at once
PLANNED = 1100  # such reshards, with effort 1
MEDIUM = 256  # ops of a folded program whose values are decided at once with effort 1
DEAR = 1e-3  # with effort 1 moves start at ops that have this part of the price
ROUNDS = 3  # solutions of all values at once, each from the end of the one before
DETOURS = {1: 4, 2: 40}  # moves that do not pay by themselves, after which others are looked for, by effort
NEAR_LEAST = 2e-4  # a point that costs this part more than the least sum of local terms ends a search with effort 1
DEAREST = 4  # ops from which detours start with effort 1
SURE = 0.02  # a gain of this part of the price needs no plan of the whole program to be believed
LEAST_OF_ALL = 1e-9  # of a latency: with effort 2 every gain counts
SLOWER = clock_of(
    replace(IDEAL, name="slower", links=tuple([replace(one, latency=4 * one.latency) for one in IDEAL.links]))
)


@dataclass(frozen=True)
class Point:
    """Splits of all values of the engine, what each op costs under them, and the price in seconds."""

    splits: tuple[DimAxes, ...]
    costs: Mapping[int, float]
    price: float


@dataclass(frozen=True)
class Settled:
    """A move that was taken: what it did, for people, and the price before and after, in seconds."""

    told: str
    op: int | None
    before: float
    after: float


@dataclass(frozen=True)
class Decision:
    """What was decided. ``found``: the propagation that it starts from, with its trace.

    ``settled``: the moves that were taken, in order; ``tried``: how many were looked at; ``searched``: the folded
    program that was searched. ``parts``: of an op of ``found`` that is a part of one of the program, that op's number.
    ``decided``: what plans have decided on the way, for those that follow.
    """

    shardings: Shardings
    found: Propagated
    settled: tuple[Settled, ...] = ()
    tried: int = 0
    searched: Propagated | None = None
    parts: Mapping[int, int] = field(default_factory=dict)
    decided: Decided | None = None

    @property
    def space(self) -> Space | None:
        """What there was to decide, repeated layers counted once; None where nothing was searched."""
        return None if self.searched is None else space_of(self.searched.engine)


def decide(
    program: Program,
    barriers: Mapping[int, str],
    effort: int,
    machine: Machine = IDEAL,
    *,
    settle_results: bool = False,
) -> Decision:
    """The shardings of all values of ``program``.

    ``barriers``: of constraints (by op) the direction in which shardings pass. ``effort``: 0 propagates and does no
    more; 1 searches; 2 searches from several starts, over parts of axes too, and longer. ``machine``: on which the
    program will run. ``settle_results``: those that follow from what the user fixed stay as they are propagated
    (``propagation.settled``).
    """
    if effort < 1:
        found = Propagated(program, barriers)
        return Decision(found.shardings, found)
    search = Search(program, barriers, effort, machine)
    if settle_results:
        search.settle_results()
    search.run()
    chosen = search.unfolded() if search.settled else None
    if chosen is None:
        taken = None
    else:
        found, parts = search.found, search.folded.parts
        taken = Decision(chosen, found, tuple(search.settled), search.tried, found, parts, search.decided)
    if taken is not None and search.best.price < search.first.price * (1 - SURE):
        return taken
    found = Propagated(program, barriers)
    if taken is not None:
        both = found.shardings, taken.shardings
        before, after = (price(plan_program(program, one, search.decided)) for one in both)
        if after <= before - search.least:
            return taken
    return Decision(found.shardings, found, (), search.tried, search.found, decided=search.decided)


def _spliced(program: Program) -> frozenset[int]:
    """Concatenates of slices, and the slices: partitioning makes one op of them, which costs far less than they do.

    No move starts at them, as it would flee a price that is never paid.
    """
    cut = {value: op.number for op in program.body.every_op() if op.name == "stablehlo.slice" for value in op.results}
    found: set[int] = set()
    for op in program.body.every_op():
        if op.name == "stablehlo.concatenate" and not cut.keys().isdisjoint(op.operands):
            found.add(op.number)
            found.update(cut[value] for value in op.operands if value in cut)
    return frozenset(found)


class Search:
    """One search; ``run`` it, then ask for ``unfolded``."""

    def __init__(
        self,
        program: Program,
        barriers: Mapping[int, str],
        effort: int,
        machine: Machine,
        folded: Folded | None = None,
        decided: Decided | None = None,
    ) -> None:
        self.program = program
        self.clock = clock_of(machine)
        self.effort = effort
        self.folded: Folded = folded or fold(program, barriers)
        self.found = Propagated(self.folded.program, barriers)
        self.engine = self.found.engine
        self.decided = decided or decided_on(program.mesh, machine)
        self.estimate = Estimate(self.folded, self.decided)
        self.moves = Moves(self.engine, (whole_axes if effort < 2 else sub_axes)(program.mesh))
        self.values = {engine: value for value, engine in self.found.index.items()}
        self.spliced = _spliced(self.folded.program)
        self.tried = 0
        self._points: dict[tuple[DimAxes, ...], Point] = {}
        self.budget = TRIES[min(effort, max(TRIES))]
        self.detours = DETOURS[min(effort, max(DETOURS))]
        self.close = effort > 1 or self.folded.program.count <= SMALL
        self.near = effort > 1 or self.folded.program.count <= VERY_SMALL
        self.settled: list[Settled] = []
        self.results: tuple[int, ...] = ()  # of main, and what is shown: values of the engine that are settled
        self.first = self.best = self._point()
        # a gain below one collective's latency changes nothing that a user would notice
        self.least = self.clock.latency * (1 if effort < 2 else LEAST_OF_ALL)
        self.least_sum: float | None = None  # of the local terms; a point that costs as much ends the search
        self.solver: Solver | None = None  # its tables are those of any point
        self._solutions: dict[tuple[DimAxes, ...], Solution] = {}
        self._latencies: dict[tuple[DimAxes, ...], float] = {}
        self._looked: dict[tuple[tuple[DimAxes, ...], tuple[Reach, ...]], tuple[Move, Point] | None] = {}  # by _better

    def settle_results(self) -> None:
        """Fixes main's results that follow from what the user fixed, and tiles that are shown, before ``run``."""
        shown = tuple(dict.fromkeys(self._shown()))
        for value in shown:
            self.engine.fix(value)
        results = settle(self.engine, [result for result in self.found.results if result is not None])
        self.results = (*shown, *results)

    def _shown(self) -> Iterator[int]:
        """The values of the engine whose tiles an op shows to the user, and that are not fixed."""
        for op in self.program.body.every_op():
            if op.model is not None and op.model.shows_tiles:
                for value in op.operands:
                    index = self.found.index.get(self.folded.of[value])
                    if index is not None and not self.engine.values[index].fixed:
                        yield index

    def run(self) -> None:
        """Descends from the start, and from others where ``effort`` asks for them; ``best`` is the cheapest point."""
        if all(value.fixed and not value.open_dims for value in self.engine.values):
            return  # the user said all
        solved = self.effort == 1 and self._solvable and not self.spliced
        if solved:
            self.least_sum = self._solved(self.first).result.price
        if self._is_least(self.best):
            return
        if solved:
            self._from_solution()
        if not self._is_least(self.best) or self._latency(self.best) > self._latency(self.first):
            settled, best = self._descend(self.first, self.near)
            if not self._pays(self.best, best):
                self.settled, self.best = settled, best
        if self.effort > 1:
            self._from_weights_last()
        if self._solvable and not self._is_least(self.best):
            self._at_once()
        if self.close and not self._is_least(self.best) and self._sends():
            while self.tried < self.budget and self._detour():
                pass

    def _solved(self, point: Point) -> Solution:
        """The assignment with a low sum of local terms that is found from ``point``."""
        found = self._solutions.get(point.splits)
        if found is None:
            self.engine.restore(point.splits)
            solver = self.solver or self._new_solver()
            found = self._solutions[point.splits] = solver.solve()
            self.solver = solver if solver.from_anywhere else None
        return found

    def _to_solution(self, point: Point) -> tuple[Settled, Point] | None:
        """The point at which all values are as ``_solved`` has them; None where that is ``point`` itself."""
        splits = self._solved(point).splits
        if not splits:
            return None
        self.engine.restore(point.splits)
        self.engine.assign(splits, settle=False)
        there = self._point()
        return Settled(f"{len(splits)} values at once", None, point.price, there.price), there

    def _from_solution(self) -> None:
        """Descends from the solution of the start, where that is cheaper.

        Among equals the start is better: what the user said leads to plans that hold less.
        """
        step = self._to_solution(self.first)
        if step is not None and step[1].price <= self.first.price - self.least:
            then, self.best = self._descend(step[1], self.near)
            self.settled = [step[0], *then]

    def _is_least(self, point: Point) -> bool:
        """Whether all that a search could still gain is not worth looking for.

        A price below the least sum shows that the plan knows better than the sum of local terms, which says nothing.
        """
        return self.least_sum is not None and abs(point.price - self.least_sum) <= NEAR_LEAST * self.least_sum

    def _sends(self) -> bool:
        """Whether anything is sent at the best point: a program that sends nothing has no detour to gain by."""
        self.engine.restore(self.best.splits)
        plan = plan_program(self.folded.program, self.found.present(), self.decided, folded=self.folded.repeats)
        return bool(plan.collectives)

    @property
    def _solvable(self) -> bool:
        """Whether deciding all values at once takes about as long as the descent, or is asked for."""
        return self.effort > 1 or self.folded.program.count <= MEDIUM

    def _from_weights_last(self) -> None:
        """The other start; its end becomes the best point where it is cheaper."""
        late = right_operands_late(self.folded.program)
        if late is None:
            return
        splits = list(Propagated(late, self.found.barriers).engine.snapshot())
        for result in self.results:
            splits[result] = self.first.splits[result]
        self.engine.restore(tuple(splits))
        start = self._point()
        told = Settled("right operands of products take part last", None, self.first.price, start.price)
        then, best = self._descend(start, self.near)
        if best.price <= self.best.price - self.least:
            self.best, self.settled = best, [told, *then]

    def _new_solver(self) -> Solver:
        axes = whole_axes(self.folded.program.mesh)
        tiny = self.folded.program.count <= TINY
        prices = self.decided.prices if tiny or self.effort > 1 else None
        return Solver(self.found, self.estimate, axes, prices, math.inf if self.effort > 1 else PLANNED)

    def _at_once(self) -> None:
        """All values at once (``solve``), and a descent from there, as long as that leads to a cheaper point."""
        begun: set[tuple[DimAxes, ...]] = set()
        for _ in range(ROUNDS):
            before = self.best
            step = self._to_solution(before)
            if step is None or step[1].splits in begun:
                return
            begun.add(step[1].splits)
            then, best = self._descend(step[1], self.near)
            if best.price > before.price - self.least or not self._pays(best, before):
                return
            self.best, self.settled = best, [*self.settled, step[0], *then]

    def _pays(self, point: Point, plain: Point) -> bool:
        """Whether ``point`` is cheaper than ``plain``, and would be with longer latencies too.

        The latency of a collective is low on purpose on the machine "ideal". A solution may take
        many more collectives than the plan that the user's shardings lead to, for little.
        """
        if point.price >= plain.price:
            return False
        return self._latency(point) - self._latency(plain) < plain.price - point.price

    def _latency(self, point: Point) -> float:
        """By how much the plan of ``point`` is dearer where collectives take longer to begin."""
        if self.clock.machine is not IDEAL:
            return 0.0
        found = self._latencies.get(point.splits)
        if found is None:
            self.engine.restore(point.splits)
            plan = plan_program(self.folded.program, self.found.present(), self.decided, folded=self.folded.repeats)
            longer = costs(plan, SLOWER, self.folded)
            found = self._latencies[point.splits] = sum(longer.values()) - point.price
        return found

    def _detour(self) -> bool:
        """Goes a step that does not pay, and descends from there; whether that led to a cheaper point."""
        base = self.best
        self._rebase(base)
        dear = self._dear(base)[: len(self.values) if self.effort > 1 else DEAREST]
        options = [option for op in dear for option in self._options(op, (*FAR, *NEAR))]
        for _, _, move in sorted(options, key=lambda option: option[:2])[: self.detours]:
            self.engine.restore(base.splits)
            self.engine.assign(move.splits, settle=move.settles)
            over = self._point()
            then, point = self._descend(over, self.near)
            if point.price <= base.price - self.least:
                self.settled += [self._taken(move, base, over), *then]
                self.best = point
                return True
        return False

    def unfolded(self) -> Shardings:
        """The shardings of the whole program at the best point."""
        self.engine.restore(self.best.splits)
        refused = self.engine.refusals()
        found = replace(
            self.found.table(),
            conflicts={
                op: describe(conflict, self.engine.mesh)
                for conflict in refused
                if (op := self.engine.steps[conflict.step].op) is not None
            },
        )
        return self.folded.unfolded(found)

    # ---------------------------------------------------------------- the descent

    def _descend(self, point: Point, close: bool) -> tuple[list[Settled], Point]:
        settled = []
        while self.tried < self.budget and not self._is_least(point):
            found = self._better(point, FAR) or (self._better(point, NEAR) if close else None)
            if found is None:
                break
            move, better = found
            settled.append(self._taken(move, point, better))
            point = better
        return settled, point

    def _better(self, base: Point, reaches: tuple[Reach, ...]) -> tuple[Move, Point] | None:
        """A move that makes the plan cheaper, and where it leads. Descents meet, so it is kept for each point."""
        key = (base.splits, reaches)
        if key not in self._looked:
            found = self._look(base, reaches)
            if found is None and self.tried >= self.budget:
                return None
            self._looked[key] = found
        return self._looked[key]

    def _look(self, base: Point, reaches: Sequence[Reach]) -> tuple[Move, Point] | None:
        self._rebase(base)
        for op in self._dear(base):
            if self.tried >= self.budget:
                break
            for estimate, _, move in sorted(
                self._options(op, reaches, self.estimate.price), key=lambda option: option[:2]
            ):
                if estimate > self.estimate.price - self.least:
                    break
                self.engine.assign(move.splits, settle=move.settles)
                point = self._point()
                self.engine.take_back()
                if self._is_cheaper(point, base):
                    return move, point
        return None

    def _is_cheaper(self, point: Point, base: Point) -> bool:
        """Whether a move to ``point`` pays. Never where the prices are equal: such moves would lead around for ever."""
        return point.price < base.price and point.price <= base.price - self.least

    def _rebase(self, base: Point) -> None:
        self.engine.restore(base.splits)
        table = self.found.present()
        self.estimate.rebase(table.of, table.results)
        self.moves.begin()

    def _dear(self, base: Point) -> list[int]:
        """The ops that cost most, first."""
        least = 0.0 if self.close else DEAR * base.price
        dear = [number for number, price in base.costs.items() if price > least and number not in self.spliced]
        return sorted(dear, key=lambda number: -base.costs[number])

    def _options(self, op: int, reaches: Sequence[Reach], limit: float = math.inf) -> list[tuple[float, int, Move]]:
        """The new moves of an op: (estimated price, exact up to ``limit``; place; move)."""
        options: list[tuple[float, int, Move]] = []
        for move in self.moves.of_op(op, reaches):
            options.append((self._estimated(move, limit), len(options), move))
        return options

    def _taken(self, move: Move, before: Point, after: Point) -> Settled:
        op = self.engine.steps[move.step].op
        op = None if op is None else self.folded.parts.get(op, op)
        return Settled(move.told(self.engine), op, before.price, after.price)

    def _estimated(self, move: Move, limit: float) -> float:
        """The price after ``move``, or one above ``limit``; the engine stays where it is."""
        self.tried += 1
        self.engine.assign(move.splits, settle=move.settles)
        changed = self.engine.changed()
        fresh = {self.values[index]: self.found.sharding(index) for index in changed if index in self.values}
        results = self.found.result_shardings() if len(fresh) < len(changed) else self.estimate.results
        price = self.estimate.change(fresh, results, limit)
        self.engine.take_back()
        return price

    def _point(self) -> Point:
        """The engine's present splits, planned."""
        splits = self.engine.snapshot()
        point = self._points.get(splits)
        if point is None:
            plan = plan_program(self.folded.program, self.found.present(), self.decided, folded=self.folded.repeats)
            found = costs(plan, self.clock, self.folded)
            point = self._points[splits] = Point(splits, found, sum(found.values()))
        return point
