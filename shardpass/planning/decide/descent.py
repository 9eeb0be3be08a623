"""Cheaper shardings by single changes: a descent from a point, as plans price it.

Why this is there: the tables of one decision (``tables``) know whole axes alone, so effort 2 descends over parts of
axes too, from where the decision ended (tied vocabularies gain 3% by that); and they leave out values and ops that have
too many splits to be listed, as on four mesh axes. With effort 1, none of the 126 programs of
``tools.bench.underspecified`` is descended from.

State: points, each the splits of all values of the folded program (``fold``: repeated layers are one) with the price of
its plan (``cost``).

From the ops that cost most, moves are tried (``moves``): a factor takes an axis wherever that reaches, or loses it. A
move is estimated from the ops around what it changes (``estimate``); the best ones of an op are planned, and the first
whose plan is cheaper becomes the next point. A descent ends when no move of any op pays, or when the budget of moves is
spent.

Invariants: what the user fixed is the same in all points; no randomness and no clock, so that equal programs get equal
shardings.

Example, FSDP on d=8: ``x @ w`` with rows of x and rows of w over d. Propagation splits the contraction and sums
activations. The most expensive op is the dot_general; of its moves "rows of x over d" reaches all activations, and is
cheaper.

Complexity: each move O(values that it reaches + ops around them); each point one plan of the folded program. None grows
with the number of equal layers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardpass.cost.machine import Machine
from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.planning.options.axes import sub_axes, whole_axes
from shardpass.planning.options.choose import Decided, decided_on
from shardpass.planning.options.estimate import Estimate
from shardpass.planning.options.moves import FAR, NEAR, Move, Moves, Reach
from shardpass.planning.plan.cost import costs
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.fold import Folded, fold
from shardpass.program.program import Program
from shardpass.program.shardings import Factors, Shardings
from shardpass.propagation.engine import describe
from shardpass.propagation.program import Propagated

TRIES = {1: 400, 2: 6000}  # moves that a descent may try, by effort
SMALL = 64  # ops of a folded program of which moves that stay at their op are tried with effort 1 too
EXPENSIVE = 1e-3  # with effort 1 moves start at ops that have this part of the price
LEAST = 1e-5  # a gain of a smaller part of the price is none


@dataclass(frozen=True)
class Point:
    """The splits of all values of the engine, the cost of each op under them, and their sum, in seconds.

    ``ways``: the splits of the ops (by number, of the folded program) that are decided too. ``partial``: the axes over
    which values wait as partial sums.
    """

    splits: tuple[DimAxes, ...]
    costs: Mapping[int, float]
    price: float
    ways: Mapping[int, Factors] = field(default_factory=dict)
    partial: Mapping[int, Axes] = field(default_factory=dict)


@dataclass(frozen=True)
class SearchChange:
    """One step of the search: a message that describes it, and the price of the plan (s) before and after."""

    message: str
    op: int | None
    before: float
    after: float


class Descent:
    """Searches a program's shardings: remembers the planned points, and descends from one to cheaper ones."""

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
        self.propagated = Propagated(self.folded.program, barriers)
        self.engine = self.propagated.engine
        self.decided = decided or decided_on(program.mesh, machine)
        self.estimate = Estimate(self.folded, self.decided)
        self.moves = Moves(self.engine, (whole_axes if effort < 2 else sub_axes)(program.mesh))
        self.values = {engine: value for value, engine in self.propagated.index.items()}
        self.spliced = spliced(self.folded.program)
        self.tried = 0
        self.budget = TRIES[min(effort, max(TRIES))]
        self.close = effort > 1 or self.folded.program.count <= SMALL
        self.changes: list[SearchChange] = []
        self._points: dict[tuple[DimAxes, ...], Point] = {}
        self._looked: dict[tuple[tuple[DimAxes, ...], tuple[Reach, ...]], tuple[Move, Point] | None] = {}  # by _better
        self.first = self.best = self._point()

    def unfolded(self, point: Point | None = None) -> Shardings:
        """Return the shardings of the whole program at ``point``, by default at the best point."""
        point = point or self.best
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
        )
        return self.folded.unfolded(shardings)

    def _descend(self, point: Point, close: bool) -> tuple[list[SearchChange], Point]:
        changes = []
        while self.tried < self.budget:
            step = self._better(point, FAR) or (self._better(point, NEAR) if close else None)
            if step is None:
                break
            move, better = step
            changes.append(self._change(move, point, better))
            point = better
        return changes, point

    def _better(self, base: Point, reaches: tuple[Reach, ...]) -> tuple[Move, Point] | None:
        """Return a move that makes the plan cheaper, with the point it leads to, or None; remembered for each
        point.
        """
        key = (base.splits, reaches)
        if key not in self._looked:
            step = self._look(base, reaches)
            if step is None and self.tried >= self.budget:
                return None
            self._looked[key] = step
        return self._looked[key]

    def _look(self, base: Point, reaches: Sequence[Reach]) -> tuple[Move, Point] | None:
        self._rebase(base)
        for op in self._expensive(base):
            if self.tried >= self.budget:
                break
            for estimate, _, move in sorted(
                self._options(op, reaches, self.estimate.price), key=lambda option: option[:2]
            ):
                if estimate > self.estimate.price * (1 - LEAST):
                    break
                self.engine.assign(move.splits, settle=move.settles)
                point = self._point()
                self.engine.take_back()
                if self._is_cheaper(point, base):
                    return move, point
        return None

    def _is_cheaper(self, point: Point, base: Point) -> bool:
        """Return whether a move to ``point`` pays. Equal prices do not: such moves would go round in circles."""
        return point.price < base.price * (1 - LEAST)

    def _rebase(self, base: Point) -> None:
        self.engine.restore(base.splits)
        table = self.propagated.present()
        self.estimate.rebase(table.of, table.results)
        self.moves.begin()

    def _expensive(self, base: Point) -> list[int]:
        """Return the numbers of the most expensive ops, in descending order of cost."""
        least = 0.0 if self.close else EXPENSIVE * base.price
        numbers = [number for number, price in base.costs.items() if price > least and number not in self.spliced]
        return sorted(numbers, key=lambda number: -base.costs[number])

    def _options(self, op: int, reaches: Sequence[Reach], limit: float = math.inf) -> list[tuple[float, int, Move]]:
        """Return the moves of an op that were not tried yet: (estimated price, exact up to ``limit``; index; move)."""
        options: list[tuple[float, int, Move]] = []
        for move in self.moves.of_op(op, reaches):
            options.append((self._estimated(move, limit), len(options), move))
        return options

    def _change(self, move: Move, before: Point, after: Point) -> SearchChange:
        op = self.engine.steps[move.step].op
        op = None if op is None else self.folded.parts.get(op, op)
        return SearchChange(move.message(self.engine), op, before.price, after.price)

    def _estimated(self, move: Move, limit: float) -> float:
        """Estimate the price in seconds after ``move``; beyond ``limit`` any price above it. The engine keeps
        its splits.
        """
        self.tried += 1
        self.engine.assign(move.splits, settle=move.settles)
        changed = self.engine.changed()
        fresh = {self.values[index]: self.propagated.sharding(index) for index in changed if index in self.values}
        results = self.propagated.result_shardings() if len(fresh) < len(changed) else self.estimate.results
        price = self.estimate.change(fresh, results, limit)
        self.engine.take_back()
        return price

    def _point(self) -> Point:
        """Plan the engine's present splits, unless they are planned, and return their point."""
        splits = self.engine.snapshot()
        point = self._points.get(splits)
        if point is None:
            point = self._points[splits] = self._planned({})
        return point

    def _planned(self, ways: Mapping[int, Factors], partial: Mapping[int, Axes] | None = None) -> Point:
        """Plan the engine's present splits with the ops split as ``ways`` and the values that wait as
        ``partial`` sums.
        """
        shardings = replace(self.propagated.present(), ways=ways, partial=partial or {})
        plan = plan_program(self.folded.program, shardings, self.decided, folded=self.folded.repeats)
        prices = costs(plan, self.clock, self.folded)
        return Point(self.engine.snapshot(), prices, sum(prices.values()), ways, partial or {})


def spliced(program: Program) -> frozenset[int]:
    """Return the numbers of concatenates of slices, and of these slices.

    Partitioning joins them into one op that costs far less. No move starts at them, as it would avoid a price that is
    never paid.
    """
    cut = {value: op.number for op in program.body.every_op() if op.name == "stablehlo.slice" for value in op.results}
    numbers: set[int] = set()
    for op in program.body.every_op():
        if op.name == "stablehlo.concatenate" and not cut.keys().isdisjoint(op.operands):
            numbers.add(op.number)
            numbers.update(cut[value] for value in op.operands if value in cut)
    return frozenset(numbers)
