"""Trials of sets of annotations on the folded program: the price and the memory of the program with them.

An argument is placed before the program runs, by a caller who must know its sharding; without an annotation the passes
may choose another sharding than the caller's. So a set has two outcomes, and the more expensive counts:

1. placed: an argument that no annotation names, and that propagation from the annotations does not reach, is whole on
   every device; all else is solved (``problem``);
2. open: such arguments are solved too. Only computed where the first outcome is as good as is ``enough``.

A program without any annotation runs on one device, as JAX places it: nothing is split, and its price is that of all of
its work; it is not enough where it breaks the limit.

State: what was tried, by the set of annotations, and solutions by what is fixed in them. Complexity: one or two
solutions for each new set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardpass.advise.find.price import as_propagated, changed
from shardpass.advise.place.write import Change
from shardpass.advise.suggest.places import slots
from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.decide.problem import Answer, Problem
from shardpass.planning.plan.task import holding
from shardpass.planning.solve.network import Table
from shardpass.program.program import NO_ANNOTATION, Program
from shardpass.propagation.program import Propagated


@dataclass(frozen=True)
class Trial:
    """The outcome of a set of annotations. ``cost``: the price with that of memory; infinite if a state changes its
    split.

    ``splits``: as in ``Answer``.
    """

    cost: float
    price: float
    peak: float
    splits: tuple[DimAxes, ...]


class Trials:
    """Try sets of annotations of one program.

    ``states``: tables that force each state to have the same split as its update. ``start``: a nearby solution.
    ``limit``: the peak of live bytes that a set may have. ``most``: the peak that the program may have without
    annotations, if it is known from a plan rather than from tables.
    """

    def __init__(self, problem: Problem, states: Sequence[Table], start: Answer, most: int | None = None) -> None:
        self.problem, self.task, self.states = problem, problem.task, states
        self.start, self.most = start, most
        self.begin(None)
        self._known: dict[frozenset[Change], Trial] = {}
        self._solved: dict[object, Answer] = {}
        annotations = self.task.folded.program.annotations
        index = problem.propagated.index
        self._free = [index[v] for v in self.task.folded.program.body.arguments if v in index and v not in annotations]

    def cost(self, price: float, peak: float) -> float:
        """Return ``price`` plus the price of ``peak`` bytes alive at once."""
        return price + holding(peak, self.task.decided.clock)

    def begin(self, limit: float | None) -> None:
        """Require that trials use at most ``limit`` bytes, or as many as ``start``, and cost no more than ``start``."""
        self.enough = self.cost(self.start.price, self.start.peak)
        self.limit = math.inf if limit is None else max(limit, self.start.peak)

    def order(self, trial: Trial) -> tuple[float, float]:
        """Return the key by which trials compare, smallest best: the bytes above the limit, then the cost."""
        return max(0.0, trial.peak - self.limit), trial.cost

    def is_enough(self, trial: Trial) -> bool:
        """Return whether ``trial`` keeps the limit and costs no more than ``enough``."""
        return self.order(trial) <= (0.0, self.enough)

    def reached(self, annotations: Iterable[Change]) -> Mapping[int, DimAxes]:
        """Propagate ``annotations``; return the splits of the arguments without annotations, by value of the
        engine.
        """
        program = changed(self.task.folded, annotations)
        values = Propagated(program, self.task.barriers).engine.values
        return {index: values[index].dims for index in self._free}

    def of(self, annotations: Iterable[Change]) -> Trial:
        """Return the worse of the two outcomes; the first alone if it is not enough."""
        key = frozenset(annotations)
        placed = self.placed(key)
        fixed = self._fixed(key)
        if not self.is_enough(placed) or fixed.keys() >= set(self._free):
            return placed
        return max(placed, self._outcome(fixed), key=self.order)

    def placed(self, annotations: Iterable[Change]) -> Trial:
        """Return the first outcome: arguments to which ``annotations`` do not propagate are replicated.

        Without any annotation, the program runs on one device.
        """
        key = frozenset(annotations)
        if key not in self._known:
            is_plain = nothing_annotated(changed(self.task.folded, key))
            fixed = {} if is_plain else {**self.reached(key), **self._fixed(key)}
            self._known[key] = self._whole() if is_plain else self._outcome(fixed)
        return self._known[key]

    def passes(self, annotations: Iterable[Change]) -> Answer:
        """Solve the program as the passes do with ``annotations``: without the ties between states."""
        return self._answer(self._fixed(annotations), ())

    def _fixed(self, annotations: Iterable[Change]) -> dict[int, DimAxes]:
        return {index: self.dims(one) for one in annotations for index in slots(self.problem, one.site)}

    def dims(self, one: Change) -> DimAxes:
        """Return the split of an annotation by parts of axes."""
        return one.dims(self.task.program.mesh) or ()

    def _outcome(self, fixed: Mapping[int, DimAxes]) -> Trial:
        answer = self._answer(fixed, self.states)
        cost = self.cost(answer.price, answer.peak) if answer.tied else math.inf
        return Trial(cost, answer.price, answer.peak, answer.splits)

    def _answer(self, fixed: Mapping[int, DimAxes], states: Sequence[Table]) -> Answer:
        key = frozenset(fixed.items()), bool(states)
        if key not in self._solved:
            self._solved[key] = self.problem.solve(fixed, states, start=self.start)
        return self._solved[key]

    def _whole(self) -> Trial:
        program = self.task.folded.program
        propagation = Propagated(program, self.task.barriers)
        price, peak = as_propagated(self.task, program, propagation)
        fits = self.most is None or peak <= self.most
        return Trial(self.cost(price, peak) if fits else math.inf, price, peak, propagation.engine.snapshot())


def nothing_annotated(program: Program) -> bool:
    """Return whether ``program`` has no annotation, so that none names a mesh."""
    return not program.annotations and all(row is NO_ANNOTATION for row in program.result_annotations)
