"""Partial sums in the tables: layouts of values that are partial over axes, and the ways of ops that produce or read
them.

Problem. A split contraction leaves a summand on each device. Completed at once, each product of a parallel block, each
gradient of an array that several products use, and each use of a shared table sends its own sum; added up first, one
collective serves for all (PartIR's and Alpa's counts; ZeRO's one reduce_scatter).

State. A *layout* of a value that may wait (``linear``) is a split, or a split with the axes that the value is partial
over (``Partial``). Beside the ways of ``ways``, an op has those in which its operands, its result, or both are partial.
Invariants:

- operands that an op takes as summands are partial over the same axes, along which nothing of the op is split;
- a layout is never changed into, or out of, a partial one, and an op reads a value that waits as it lies: so the only
  collectives are those of ops that complete, as without this file. A whole operand beside partial ones is brought to
  its split, and is zero on all devices but the first along the axes.

Cases, of an op that takes operands partial over U and leaves sums over P by its own split, so sums over U + P:

1. its result waits over some of these axes, at no price;
2. the rest is completed there, scattered as far as a layout of the result asks for.

Example on x=4, ``y = tanh(a @ w + b @ v)`` with both products split over their contraction: both dots are partial over
x, and the addition completes: one all_reduce of y's size, or a reduce_scatter where y is split over x, for two.

Complexity: with k axes, 2^k times the ways of an op, for ops that may take or leave sums alone; on more than two axes
a value waits over one axis only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from shardpass.ops.border import plan_of
from shardpass.ops.model import OpModel, Split
from shardpass.ops.splits.assign import Side, complete
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.choose import maskable
from shardpass.planning.options.copies import PlacedArray
from shardpass.planning.options.ways import Way, distributions, sides_of
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.clock import Clock
from shardpass.planning.solve.network import Costs
from shardpass.program.program import Array

MOST = 512  # ways of one op with partial operands or results
FEW_AXES = 2  # of a mesh on which a value may wait over several axes at once


class Partial(tuple[Axes, ...]):
    """A split, of a value that is partial over the axes ``over``."""

    over: Axes

    def __new__(cls, dims: DimAxes, over: Axes) -> Partial:
        self = super().__new__(cls, dims)
        self.over = over
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and self.over == other.over and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.over))


def over(layout: DimAxes | None) -> Axes:
    """Return the axes over which a value of ``layout`` is partial."""
    return layout.over if isinstance(layout, Partial) else ()


def split_of(layout: DimAxes) -> DimAxes:
    """Return the split of ``layout`` without its partial axes."""
    return tuple(layout) if isinstance(layout, Partial) else layout


def layouts(splits: Sequence[DimAxes], axes: Sequence[Axes]) -> Iterator[Partial]:
    """Yield the partial layouts of a value whose possible splits are ``splits``, over whole ``axes``."""
    for summed in _sets(axes):
        for dims in splits:
            if not any(axis in summed for one in dims for axis in one):
                yield Partial(dims, summed)


def _sets(axes: Sequence[Axes]) -> Iterator[Axes]:
    """Yield the sets of axes over which a value may be partial, each in the order of the mesh."""
    most = len(axes) if len(axes) <= FEW_AXES else 1
    for count in range(1, most + 1):
        for chosen in itertools.combinations(axes, count):
            yield tuple(itertools.chain(*chosen))


def matched(costs: Costs, sources: Sequence[DimAxes], targets: Sequence[DimAxes], *, made: bool) -> Costs:
    """Extend ``costs`` of reshards between splits to the layouts ``sources`` and ``targets``.

    A whole value may become a summand where an op reads it, but not where an op has ``made`` it.
    """
    before, after = (np.array([bool(over(each)) for each in side]) for side in (sources, targets))
    refused = before[:, None] | (made & after[None, :])
    if not before.any() and not refused.any():
        return costs
    places: dict[DimAxes, list[int]] = {}
    for row in np.flatnonzero(before).tolist():
        places.setdefault(sources[row], []).append(row)
    for column in np.flatnonzero(after).tolist():
        refused[places.get(targets[column], []), column] = False
    out: Costs = np.where(refused, np.inf, np.where(before[:, None], 0.0, costs))
    return out


def weighed(costs: Costs, weight: Costs | float) -> Costs:
    """Multiply ``costs`` by ``weight``, where a weight of 0 gives 0 even for an infinite cost."""
    weights = np.broadcast_to(weight, costs.shape)
    out: Costs = np.multiply(costs, weights, out=np.zeros_like(costs), where=weights > 0)
    return out


@lru_cache(maxsize=4096)
def partial_ways(
    model: OpModel[Any],
    mesh: PrimeMesh,
    axes: tuple[Axes, ...],
    types: tuple[Array, ...],
    made: Array,
    clock: Clock,
    borders: Borders,
    places: tuple[int, ...],
    waits: bool,
    trips: int = 1,
) -> tuple[Way, ...]:
    """Return the ways of an op that reads the operands at ``places`` as partial sums, or whose result stays partial,
    or both.

    ``trips``: of the loop behind which its result is summed, if it is summed there. Returns none if there are too many.
    """
    values = [PlacedArray(0, array, mesh.replicated(array.rank), None, mesh) for array in types]
    rule = maskable(model.rule, values)
    numbers = [number for number, factor in enumerate(rule.factors) if factor.kind is not Kind.REPLICATED]
    shapes = tuple(array.shape for array in types), (made.shape,)
    elements = tuple([array.element for array in types]), (made.element,)
    cheapest: dict[tuple[Any, Any], Way] = {}
    for summed in ((), *_sets(axes)) if places else ((),):
        free = [each for each in axes if each[0] not in summed]
        if (len(numbers) + 1) ** len(free) > MOST:
            return ()
        for factors in distributions(rule, numbers, free, mesh, sides_of(rule, types, (made,))):
            split = Split.of(rule, mesh, factors, *shapes, clock.machine)
            own = () if rule.self_completing or rule.combiner != "add" else partial_axes(rule, split.factors)
            if not summed and not (waits and own):
                continue
            local = plan_of(model, split)
            sent = cost = sum([clock.collective(one.kind, one.bytes, one.axes, mesh) for one in local.collectives])
            cost += clock.work(rule, split, elements, borders)
            operands = tuple([_operand(split, local.ignored, place, summed, places) for place in range(len(types))])
            for result, more in _results(made, rule, split, (*summed, *own), waits, axes, clock):
                if not summed and not over(result):
                    continue  # among those of ``ways``
                known = cheapest.get((operands, result))
                if result == split.results[0]:
                    more /= trips
                if known is None or cost + more < known.cost:
                    key = tuple(sorted(factors.items()))
                    cheapest[operands, result] = Way(cost + more, operands, (result,), key, sent + more)
    return tuple(cheapest.values()) if len(cheapest) <= MOST else ()


def _operand(
    split: Split, ignored: frozenset[int], place: int, summed: Axes, places: tuple[int, ...]
) -> DimAxes | None:
    if place in ignored:
        return None
    return Partial(split.operands[place], summed) if summed and place in places else split.operands[place]


def _results(
    made: Array, rule: Rule, split: Split, sums: Axes, waits: bool, axes: Sequence[Axes], clock: Clock
) -> Iterator[tuple[DimAxes, float]]:
    """Yield the layouts of a result that is partial over ``sums``, with the seconds to complete it there."""
    mesh = split.mesh
    summed = [each for each in axes if each[0] in sums]
    wait, sets = made.rank, set(_sets(axes))
    for chosen in itertools.product(range(-1, made.rank + waits), repeat=len(summed)):
        wanted = list(split.results[0])
        later: Axes = ()
        for place, each in zip(chosen, summed, strict=True):
            if place == wait:
                later += each
            elif place >= 0:
                wanted[place] = (*wanted[place], *each)
        if later and later not in sets:
            continue
        side = Side(made.shape, rule.results[0], tuple(wanted), made.element)
        now = tuple([axis for axis in sums if axis not in later])
        reached, steps = complete(side, split.results[0], now, "add", mesh)
        cost = sum([clock.collective(step.kind, step.bytes, step.axes, mesh) for step in steps])
        yield (Partial(reached, later) if later else reached), cost
