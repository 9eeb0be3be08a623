"""What a set of annotations leads to, on the folded program: the price and the memory under them.

An argument is placed before the program runs, by a caller who must know how; and the passes may choose otherwise than
the caller thinks where nothing is said. So a set has two outcomes, and the dearer counts:

1. placed: an argument that no annotation names, and that propagation from the annotations does not reach, is whole on
   every device; all else is solved (``problem``);
2. open: such arguments are solved too. This is asked only where the first outcome is as good as is ``enough``.

A program of which nothing at all is said runs on one device, as JAX places it: nothing is split, and its price is that
of all of its work.

State: what was tried, by the set of annotations, and solutions by what is fixed in them. Complexity: one or two
solutions for each new set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.cost import costs
from shardpass.planning.fold import Folded
from shardpass.planning.planner import plan_program
from shardpass.planning.problem import Answer, Problem
from shardpass.planning.solve.network import Table
from shardpass.planning.task import holding
from shardpass.program.program import NOTHING_SAID, Program, Said
from shardpass.propagation.program import Propagated
from shardpass.suggesting.places import ARGUMENT, LINE, RESULT, Group, slots


@dataclass(frozen=True)
class Annotation:
    """A group of values and the split that is said of each."""

    group: Group
    dims: DimAxes


@dataclass(frozen=True)
class Trial:
    """What some annotations lead to. ``cost``: the price, and the excess of memory; infinite where states change.

    ``splits``: as those of ``Answer``.
    """

    cost: float
    price: float
    peak: float
    splits: tuple[DimAxes, ...]


class Trials:
    """Trials of one program. ``states``: tables by which states come out as they go in. ``start``: a near solution."""

    def __init__(self, problem: Problem, states: Sequence[Table], start: Answer) -> None:
        self.problem, self.task, self.states = problem, problem.task, states
        self.start, self.enough = start, self.cost(start.price, start.peak)
        self._known: dict[frozenset[Annotation], Trial] = {}
        self._solved: dict[object, Trial] = {}
        said = self.task.folded.program.said
        index = problem.found.index
        self._free = [index[v] for v in self.task.folded.program.body.arguments if v in index and v not in said]

    def cost(self, price: float, peak: float) -> float:
        """A price with that of the memory in it."""
        return price + holding(peak, self.task.decided.clock)

    def reached(self, annotations: Iterable[Annotation]) -> Mapping[int, DimAxes]:
        """How propagation from ``annotations`` splits arguments of which the user says nothing, by engine's value."""
        said = annotated(self.task.folded.program, annotations, self.task.folded)
        values = Propagated(said, self.task.barriers).engine.values
        return {index: values[index].dims for index in self._free}

    def of(self, annotations: Iterable[Annotation]) -> Trial:
        """The dearer outcome; the first one where that is above ``enough``."""
        key = frozenset(annotations)
        placed = self.placed(key)
        fixed = self._fixed(key)
        if placed.cost > self.enough or fixed.keys() >= set(self._free):
            return placed
        return max(placed, self._outcome(fixed), key=lambda one: one.cost)

    def placed(self, annotations: Iterable[Annotation]) -> Trial:
        """The first outcome."""
        key = frozenset(annotations)
        found = self._known.get(key)
        if found is None:
            said = annotated(self.task.folded.program, key, self.task.folded)
            found = self._whole() if nothing_said(said) else self._outcome({**self.reached(key), **self._fixed(key)})
            self._known[key] = found
        return found

    def passes(self, annotations: Iterable[Annotation]) -> Answer:
        """What the passes make of ``annotations``, which know of no states."""
        return self.problem.solve(self._fixed(annotations), start=self.start)

    def _fixed(self, annotations: Iterable[Annotation]) -> dict[int, DimAxes]:
        return {index: one.dims for one in annotations for index in slots(self.problem, one.group)}

    def _outcome(self, fixed: Mapping[int, DimAxes]) -> Trial:
        key = frozenset(fixed.items())
        found = self._solved.get(key)
        if found is None:
            answer = self.problem.solve(fixed, self.states, start=self.start)
            cost = self.cost(answer.price, answer.peak) if answer.tied else math.inf
            found = self._solved[key] = Trial(cost, answer.price, answer.peak, answer.splits)
        return found

    def _whole(self) -> Trial:
        task = self.task
        found = Propagated(task.folded.program, task.barriers)
        plan = plan_program(task.folded.program, found.shardings, task.decided, folded=task.folded.repeats)
        price = sum(costs(plan, task.decided.clock, task.folded).values())
        peak = task.footprint.peak(found.shardings.of)
        return Trial(self.cost(price, peak), price, peak, found.engine.snapshot())


def nothing_said(program: Program) -> bool:
    """Whether no sharding is written anywhere, so that nothing names a mesh."""
    return not program.said and all(said is NOTHING_SAID for said in program.results_said)


def annotated(program: Program, annotations: Iterable[Annotation], folded: Folded) -> Program:
    """The folded ``program`` with ``annotations``."""
    said, results = dict(program.said), list(program.results_said)
    for one in annotations:
        sharding = program.mesh.sharding(one.dims)
        for value in one.group.values:
            if one.group.kind in (ARGUMENT, LINE):
                said[folded.of[value]] = Said(sharding)
            elif one.group.kind == RESULT and results[folded.results[value]] is NOTHING_SAID:
                results[folded.results[value]] = Said(sharding)
    return replace(program, said=said, results_said=tuple(results))
