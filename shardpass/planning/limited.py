"""The cheapest shardings whose arrays fit into the memory of a device.

Problem: as ``descent``, under a limit of bytes alive at once. Replication is cheap in bytes received and expensive in
memory, so a search by price alone may end at a plan that no device can hold.

State: a ``Descent`` whose points are priced by their excess over the limit first: a byte above it costs more than any
plan of the program takes on the machine (``LimitedSearch.most``). Each byte held costs as much as ``HELD`` bytes
received, so that memory decides between plans that are as cheap. Moves are estimated likewise (``footprint``). Starts:
what the user said, propagated; the end of a plain search that leaves arguments alone; and the recipes of ``starts``.
The best few are descended from.

Case, the limit is kept by values but not by the plan, whose reshards hold copies: the difference is taken off the limit
and the search goes on from where it was, at most ``ROUNDS`` times; the last time with no memory allowed at all, which
finds the least.

Example on d=8, a perceptron with Adam, weights of 8 MiB: replicated weights and moments take 24 MiB, batch over d costs
8 MiB of all-reduce. With a limit of 16 MiB that point has an excess of 8 MiB; from the start "batch and weights over d"
the search ends at 3 MiB of arguments, gathered weights and scattered gradients.

Complexity: that of ``search`` for each start that is descended from; one plan of the whole program a round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shardpass.cost.collective import ALL_GATHER
from shardpass.cost.machine import IDEAL, Machine
from shardpass.diagnostics import report
from shardpass.diagnostics.table_suggest import DOES_NOT_FIT, LIMIT_TOO_LOW
from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.choose import Decided, decided_on
from shardpass.planning.clock import Clock
from shardpass.planning.cost import price
from shardpass.planning.descent import EXPENSIVE, Descent, Point, Settled
from shardpass.planning.estimate import Estimate
from shardpass.planning.fold import Folded, fold
from shardpass.planning.footprint import Footprint, NearPeak
from shardpass.planning.planner import plan_program
from shardpass.planning.search import Decision, Search, decide
from shardpass.planning.starts import Start, starts
from shardpass.program.program import Program, Said
from shardpass.program.shardings import Shardings
from shardpass.propagation.program import Propagated
from shardpass.redistribute.terms.limit import show_bytes
from shardpass.sharding import Sharding

ROUNDABOUT = 16  # plans take no longer than work not shared out, and each array gathered so often, where it is made
HELD = 1 / 256  # bytes received that a byte held is worth: of two plans as cheap, the one that holds less
DESCENTS = {1: 3, 2: 8}  # starts that are descended from, by effort
ROUNDS = 4  # times that the limit is tightened for copies that plans make


@dataclass(frozen=True)
class Limit:
    """A number of bytes alive at once, None for any number. ``above``: seconds that a byte above the number costs."""

    bytes: int | None
    above: float = 0.0

    def excess(self, peak: float, clock: Clock) -> float:
        """What a peak costs, in seconds: far more above the limit, and a little below it."""
        over = 0.0 if self.bytes is None else max(0.0, peak - self.bytes)
        return over * self.above + peak * HELD * clock.byte


NO_LIMIT = Limit(None)
NOT_YET = Limit(None)  # while a search is being made


@dataclass(frozen=True)
class Task:
    """A program, and what all searches of it share."""

    program: Program
    barriers: Mapping[int, str]
    effort: int
    machine: Machine
    folded: Folded
    footprint: Footprint
    decided: Decided

    @classmethod
    def of(cls, program: Program, barriers: Mapping[int, str], effort: int, machine: Machine) -> Task:
        folded = fold(program, barriers)
        decided = decided_on(program.mesh, machine)
        return cls(program, barriers, effort, machine, folded, Footprint(program, folded), decided)


class LimitedEstimate(Estimate):
    """Estimates with the excess of memory in them. ``price`` is that of the base with its excess.

    The two are apart until they are compared: a price in seconds would be lost in the rounding of a great excess.
    """

    def __init__(self, task: Task, limit: Limit) -> None:
        super().__init__(task.folded, task.decided)
        self.footprint, self.limit = task.footprint, limit
        self.near: NearPeak | None = None
        self.over = 0.0

    @property
    def price(self) -> float:
        return self.sum + self.over

    def rebase(self, shardings: Mapping[int, Sharding], results: tuple[Sharding | None, ...]) -> float:
        super().rebase(shardings, results)
        self.near = NearPeak(self.footprint, shardings)
        self.over = self.limit.excess(self.near.peak, self.clock)
        return self.price

    def change(
        self, fresh: Mapping[int, Sharding], results: tuple[Sharding | None, ...], limit: float = math.inf
    ) -> float:
        if self.near is None:
            return super().change(fresh, results, limit)
        over = self.limit.excess(self.near.change(fresh), self.clock)
        return super().change(fresh, results, limit - over) + over


class LimitedSearch(Descent):
    """``Descent`` within a limit, from several starts."""

    def __init__(self, task: Task, limit: Limit) -> None:
        self.limit = NOT_YET
        super().__init__(task.program, task.barriers, task.effort, task.machine, task.folded, task.decided)
        self.program = task.program
        self.footprint = task.footprint
        self.limit = limit = replace(limit, above=self.most())
        self.estimate = LimitedEstimate(task, limit)
        self.first = self.best = self._point()

    def most(self) -> float:
        """Seconds that no plan of the program takes: its work on one device, and each array brought to all devices."""
        mesh, arrays = self.program.mesh, self.folded.program.arrays
        everywhere = tuple(range(len(mesh.sizes)))
        moved = sum(
            often * self.clock.collective(ALL_GATHER, array.bytes, everywhere, mesh)
            for value, often in self.estimate.times.items()
            if (array := arrays[value]) is not None
        )
        return mesh.num_devices * self.first.price + ROUNDABOUT * moved + self.clock.byte

    def run(self) -> None:
        """Descends from what the user said and from the best of the recipes; ``best`` is the cheapest that fits."""
        points = {self.first.splits: self.first}
        for splits in (self._closed(), *map(self._propagated, starts(self.folded.program))):
            self.engine.restore(splits)
            point = self._point()
            points.setdefault(point.splits, point)
        ranked = sorted(points.values(), key=lambda point: point.price)
        for point in ranked[: DESCENTS[min(self.effort, max(DESCENTS))]]:
            self.tried = 0
            _, end = self._descend(point, self.close)
            if end.price < self.best.price:
                self.best = end

    def _propagated(self, start: Start) -> tuple[DimAxes, ...]:
        return Propagated(start.program, self.found.barriers).engine.snapshot()

    def _closed(self) -> tuple[DimAxes, ...]:
        """Where a plain search ends that leaves the arguments as propagation has them."""
        self.engine.restore(self.first.splits)
        of, program = self.found.table().of, self.folded.program
        said = {value: Said(of[value]) for value in program.body.arguments if value in of and value not in program.said}
        folded = replace(self.folded, program=replace(program, said={**program.said, **said}))
        search = Search(self.program, self.found.barriers, self.effort, self.clock.machine, folded, self.decided)
        search.run()
        return search.best.splits

    def tighten(self, by: int) -> None:
        """Takes ``by`` bytes off the limit and descends again from the best point."""
        if self.limit.bytes is None:
            return
        self.limit = replace(self.limit, bytes=max(0, self.limit.bytes - by))
        assert isinstance(self.estimate, LimitedEstimate)
        self.estimate.limit = self.limit
        self._looked.clear()  # prices are others now
        self.tried = 0
        self.engine.restore(self.best.splits)
        _, self.best = self._descend(self._point(), True)

    def _expensive(self, base: Point) -> list[int]:
        """As ``Descent``; every op where the limit is not kept, as ops of no price may hold the memory."""
        plain = sum(base.costs.values())
        limit = self.limit.bytes
        fits = limit is None or base.price - plain < self.limit.excess(limit + 1, self.clock)
        least = EXPENSIVE * plain if fits and not self.close else 0.0
        return sorted([n for n, cost in base.costs.items() if cost > least], key=lambda n: -base.costs[n])

    def _point(self) -> Point:
        point = super()._point()
        if self.limit is NOT_YET:
            return point
        peak = self.footprint.peak(self.found.table().of)
        return replace(point, price=point.price + self.limit.excess(peak, self.clock))


@dataclass(frozen=True)
class Fitting:
    """What was found: ``shardings`` of the whole program, its peak by its plan, and what the folded point costs."""

    shardings: Shardings
    peak: int
    price: float
    splits: tuple[DimAxes, ...]


def search_within(search: LimitedSearch, limit: int | None) -> Fitting:
    """Runs ``search`` and returns the cheapest shardings whose plan keeps the limit; else those of the least peak."""
    search.run()
    least: Fitting | None = None
    for left in reversed(range(ROUNDS)):
        shardings = search.unfolded()
        peak = plan_program(search.program, shardings, search.decided).alive.peak
        found = Fitting(shardings, peak, sum(search.best.costs.values()), search.best.splits)
        if least is None or peak < least.peak:
            least = found
        if limit is None or peak <= limit:
            return found
        search.tighten(peak - limit if left > 1 else limit)
    assert least is not None
    return least


def decide_within(
    limit: int,
    program: Program,
    barriers: Mapping[int, str],
    effort: int,
    machine: Machine = IDEAL,
    *,
    settle_results: bool = False,
    asked: bool = True,
) -> Decision:
    """As ``decide``, with at most ``limit`` bytes alive at once in the plan.

    Where the cheapest shardings keep the limit, they are the answer. Where none do, raises ShardpassError (SP804) with
    the least that was found; of a limit that nobody ``asked`` for, a remark says so, and the cheapest are the answer.
    ``effort`` 0 looks for no others.
    """
    free = decide(program, barriers, effort, machine, settle_results=settle_results)
    cheapest = plan_program(program, free.shardings, machine=machine)
    if cheapest.alive.peak <= limit:
        return free
    least = cheapest.alive.peak
    if effort:
        within = replace(program, memory=limit)
        search = LimitedSearch(Task.of(within, barriers, effort, machine), Limit(limit))
        found = search_within(search, limit)
        if found.peak <= limit:
            told = f"all values, to hold {show_bytes(found.peak)} in place of {show_bytes(least)}"
            settled = Settled(told, None, price(cheapest), found.price)
            tried = free.tried + search.tried
            steps = *free.settled, settled
            return Decision(found.shardings, free.found, steps, tried, search.found, free.parts, memory=limit)
        least = min(least, found.peak)
    if asked:
        raise LIMIT_TOO_LOW.error(limit=show_bytes(limit), least=show_bytes(least), bytes=least)
    shown = [show_bytes(size) for size in (limit, least, cheapest.alive.peak)]
    report(DOES_NOT_FIT.at(machine=machine.name, limit=shown[0], least=shown[1], cheapest=shown[2]))
    return free
