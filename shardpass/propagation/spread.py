"""Changes all dimensions that belong together: a factor is split over an axis, or no longer split.

Problem: changing the split of one value in a chain of ops costs a reshard on either side, so no single change pays.
What pays is a change of all dimensions that belong together: "the batch is split over x, wherever it is".

``spread`` starts from (value, dimension) pairs and follows the factors of steps to other dimensions, as propagation
does, but overrides existing splits: a value that it reaches loses the axis on other dimensions. If it reaches two
dimensions of one value (queries and keys of one sequence), the nearer to the start takes the axis. It stops

1. at values that the user fixed (one that has the split already is passed through);
2. at values that cannot take it: more shards than elements, an uneven tile at the program's border, an axis that must
   not split the value;
3. at dimensions that stand for several factors of which it is not the first;
4. with ``across=False``, at contractions and reductions: a dimension that an op sums over does not pass its split on.

``withdraw`` takes the axis away from a factor instead, wherever it is split over it. With ``far=False`` both change
the start alone.

Example on d=8: ``y = x @ w`` with rows of w over d, and x over d along its columns, as greedy propagation has it.
Spreading rows of x over d reaches y and all activations after it; they lose d elsewhere; w keeps it.

State: none; both return the new splits of what they change. Complexity: O(values reached x their steps).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule
from shardpass.propagation.engine import Propagation, Value

Place = tuple[int, int]  # a value and a dimension of it


class Spread(NamedTuple):
    """Splits that spreading from a start changes. ``splits``: the new ones, by value. ``reached``: the dimensions that
    have them; other starts among these lead to much the same splits.
    """

    splits: dict[int, DimAxes]
    reached: set[Place]


class Spreading:
    """Spreads and withdraws splits in one program; caches which dimensions the rules tie together."""

    def __init__(self, engine: Propagation) -> None:
        self.engine = engine
        self._ties: dict[tuple[int, int, int], tuple[tuple[int, int, bool], ...]] = {}
        self._extended: dict[tuple[int, int, Axes], DimAxes | None] = {}
        self._places: dict[tuple[int, int, bool], tuple[Place, ...]] = {}

    def spread(self, start: Iterable[Place], axes: Axes, across: bool, far: bool = True) -> Spread:
        """Return the changes if ``start`` is split over ``axes`` too."""
        values = self.engine.values
        changed: dict[int, DimAxes] = {}
        reached: dict[int, int] = {}  # of each value the dimension that has the axes
        seen = set(start)
        todo = deque(start)
        while todo:
            value, dim = todo.popleft()
            if value in reached:
                continue
            known = values[value]
            dims = self._with(known, dim, axes)
            if dims is None:
                continue
            reached[value] = dim
            if dims is not known.dims:
                changed[value] = dims
            for other in self.tied(value, dim, across) if far else ():
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return Spread(changed, set(reached.items()))

    def withdraw(self, start: Iterable[Place], axes: Axes, across: bool, far: bool = True) -> Spread:
        """Return the changes if ``start`` is no longer split over ``axes``."""
        values = self.engine.values
        changed: dict[int, DimAxes] = {}
        reached: set[Place] = set()
        seen = set(start)
        todo = list(seen)
        while todo:
            place = todo.pop()
            value, dim = place
            known = values[value]
            dims = changed.get(value, known.dims)
            if known.fixed or not any(a in axes for a in dims[dim]):
                continue
            reached.add(place)
            changed[value] = (*dims[:dim], tuple(a for a in dims[dim] if a not in axes), *dims[dim + 1 :])
            for other in self.tied(value, dim, across) if far else ():
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return Spread(changed, reached)

    def _with(self, known: Value, dim: int, axes: Axes) -> DimAxes | None:
        """Return the split of ``known`` with ``axes`` on dimension ``dim`` alone; None where that is impossible."""
        key = (known.state, dim, axes)  # of what is shared by values that are alike
        if key not in self._extended:
            self._extended[key] = _with(known, known.dims, dim, axes, self.engine.mesh.sizes)
        return self._extended[key]

    def tied(self, value: int, dim: int, across: bool) -> tuple[Place, ...]:
        """Return the dimensions that steps tie to dimension ``dim`` of ``value``."""
        key = (value, dim, across)
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = tuple(dict.fromkeys(self._find(value, dim, across)))
        return places

    def _find(self, value: int, dim: int, across: bool) -> Iterable[Place]:
        for number in self.engine.values[value].steps:
            step = self.engine.steps[number]
            for place, other in enumerate(step.values):
                if other != value:
                    continue
                for to, its_dim, reduces in self._ties_of(step.rule, place, dim):
                    if to not in step.frozen and (across or not reduces):
                        yield step.values[to], its_dim

    def _ties_of(self, rule: Rule, place: int, dim: int) -> tuple[tuple[int, int, bool], ...]:
        """Return the ties of ``rule`` to dimension ``dim`` of ``place``: (place, dimension, is reduced)."""
        key = (id(rule), place, dim)
        ties = self._ties.get(key)
        if ties is None:
            ties = self._ties[key] = tuple(_ties(rule, place, dim))
        return ties


def _with(known: Value, dims: DimAxes, dim: int, axes: Axes, sizes: Sequence[int]) -> DimAxes | None:
    if set(axes) <= set(dims[dim]):
        return dims
    if known.fixed or known.facts.forbidden & set(axes):
        return None
    out = [tuple(a for a in one if a not in axes) for one in dims]
    together = (*out[dim], *axes)
    if list(out[dim]) == sorted(out[dim]):  # one order for all that say nothing of it
        together = tuple(sorted(together))
    count, size = prod(sizes[a] for a in together), known.shape[dim]
    if count > size or (known.divisible_only and size % count):
        return None
    out[dim] = together
    return tuple(out)


def _ties(rule: Rule, place: int, dim: int) -> Iterable[tuple[int, int, bool]]:
    maps = (*rule.operands, *rule.results)
    factors = maps[place][dim]
    if not factors or rule.factors[factors[0]].kind is Kind.REPLICATED:
        return
    reduces = rule.factors[factors[0]].kind is Kind.REDUCTION
    for to, dims in enumerate(maps):
        for its_dim, its in enumerate(dims):
            if its and its[0] == factors[0] and (to, its_dim) != (place, dim):
                yield to, its_dim, reduces
