"""What a set of annotations leads to, on the folded program: the price and the memory under them.

An argument is placed before the program runs, by a caller who must know how; and the passes may choose otherwise than
the caller thinks where nothing is said. So each set is tried twice, and the dearer outcome counts:

1. placed: an argument that no annotation names, and that propagation from the annotations does not reach, is whole on
   every device; the default search (``planning.search``, as ``shardpass-propagate`` runs it) decides about the rest;
2. open: the default search decides about such arguments too.

A program of which nothing at all is said runs on one device, as JAX places it: without a search, and at the price of
all of its work.

State: what was tried, by the set of annotations; decisions and prices that all trials share. Complexity: two searches
of the folded program for each new set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shardpass.ops.splits.factors import DimAxes
from shardpass.planning.fold import Folded
from shardpass.planning.limited import Limit, Task
from shardpass.planning.search import Bound, Search
from shardpass.program.program import NOTHING_SAID, Program, Said
from shardpass.propagation.program import Propagated
from shardpass.sharding import Sharding
from shardpass.suggesting.places import ARGUMENT, LINE, RESULT, Group


@dataclass(frozen=True)
class Annotation:
    """A group of values and the split that is said of each."""

    group: Group
    dims: DimAxes


@dataclass(frozen=True)
class Trial:
    """What some annotations lead to. ``cost``: the price, and the excess of memory.

    ``arguments``: of those that the user says nothing of, by value, what propagation from the annotations gives them.
    """

    cost: float
    price: float
    peak: float
    arguments: Mapping[int, Sharding]


class Trials:
    """Trials of one program."""

    def __init__(self, task: Task, limit: Limit) -> None:
        self.task, self.limit = task, limit
        self._known: dict[frozenset[Annotation], Trial] = {}

    def of(self, annotations: Iterable[Annotation]) -> Trial:
        key = frozenset(annotations)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._try(key)
        return found

    def _try(self, annotations: frozenset[Annotation]) -> Trial:
        task = self.task
        said = annotated(task.folded.program, annotations, task.folded)
        found = Propagated(said, task.barriers).table().of
        placed = {v: found[v] for v in said.body.arguments if v in found and v not in task.folded.program.said}
        closed = replace(said, said={**said.said, **{value: Said(sharding) for value, sharding in placed.items()}})
        arguments = {v: placed[rep] for v in task.program.body.arguments if (rep := task.folded.of[v]) in placed}
        if nothing_said(said):
            search = self._prepared(said)
            return self._outcome(search.first.price, task.footprint.peak(found), arguments)
        outcomes = [self._search(closed)]
        if closed.said != said.said:
            outcomes.append(self._search(said))
        price, peak = max(outcomes, key=lambda one: one[0] + self.limit.excess(one[1], task.decided.clock))
        return self._outcome(price, peak, arguments)

    def _outcome(self, price: float, peak: float, arguments: Mapping[int, Sharding]) -> Trial:
        return Trial(price + self.limit.excess(peak, self.task.decided.clock), price, peak, arguments)

    def _search(self, program: Program) -> tuple[float, float]:
        """(price, peak) of what the default search makes of the folded ``program``."""
        search = self._prepared(program)
        search.run()
        search.engine.restore(search.best.splits)
        return search.best.price, self.task.footprint.peak(search.found.table().of)

    def bound(self, annotations: Iterable[Annotation]) -> Bound:
        """How near the decision under ``annotations`` is to the best of its tables."""
        search = self._prepared(annotated(self.task.folded.program, annotations, self.task.folded))
        search.run()
        return search.bound(search.best.price)

    def _prepared(self, program: Program) -> Search:
        task = self.task
        folded = replace(task.folded, program=program)
        return Search(task.program, task.barriers, task.effort, task.machine, folded, task.decided)


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
