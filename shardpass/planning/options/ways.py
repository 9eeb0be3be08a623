"""List the ways to run an op: each split of its factors over whole axes, with operands, results, and its own cost.

A *way* is a distribution of mesh axes over the factors of the op's rule that all its values can say exactly, and, where
results are partial sums, one way to complete them: scattered as far as one of the result's splits asks for.

Example, ``[m,k] x [k,n]`` on data=4, model=2: three factors and two axes give 16 distributions, each axis on m, k, n or
none. Data on k makes partial sums over data: they are summed on all devices, or scattered along rows or columns.

State: a table of the splits by rule and types, which programs share. Complexity: O((factors + 1)^axes) splits a
kind of op.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shardpass.cost.machine import Machine
from shardpass.ops.border import plan_of
from shardpass.ops.model import OpModel, Split
from shardpass.ops.splits.assign import Side, complete, settle
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.choose import maskable
from shardpass.planning.options.copies import PlacedArray
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.clock import Clock
from shardpass.program.program import Array
from shardpass.program.shardings import Factors

MOST = 512  # distributions of one op


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run an op. ``operands``: the split under which each is read, None where it is not read. ``sent``: of
    the cost, the seconds of collectives.
    """

    cost: float
    operands: tuple[DimAxes | None, ...]
    results: tuple[DimAxes, ...]
    factors: tuple[tuple[int, Axes], ...]
    sent: float = 0.0


@lru_cache(maxsize=4096)
def ways(
    model: OpModel[Any],
    mesh: PrimeMesh,
    axes: tuple[Axes, ...],
    types: tuple[Array, ...],
    made: tuple[Array, ...],
    clock: Clock,
    borders: Borders,
) -> tuple[Way, ...]:
    """Return all ways of an op with operands of ``types`` and results ``made``, none if there are too many.

    ``axes`` split factors as wholes.
    """
    placed = [PlacedArray(0, array, mesh.replicated(array.rank), None, mesh) for array in types]
    rule = maskable(model.rule, placed)
    places = [number for number, factor in enumerate(rule.factors) if factor.kind is not Kind.REPLICATED]
    if (len(places) + 1) ** len(axes) > MOST:
        return ()
    elements = tuple([array.element for array in types]), tuple([array.element for array in made])
    cheapest: dict[tuple[Any, Any], Way] = {}
    for factors, split in _splits(rule, mesh, axes, tuple(places), types, made, clock.machine):
        local = plan_of(model, split)
        sent = cost = sum([clock.collective(one.kind, one.bytes, one.axes, mesh) for one in local.collectives])
        cost += clock.work(rule, split, elements, borders)
        operands: tuple[DimAxes | None, ...] = split.operands
        if local.ignored:
            operands = tuple([None if index in local.ignored else dims for index, dims in enumerate(operands)])
        for results, more in _completed(rule, split, made, clock, axes):
            known = cheapest.get((operands, results))
            if known is None or cost + more < known.cost:
                cheapest[operands, results] = Way(cost + more, operands, results, factors, sent + more)
    return tuple(cheapest.values())


@lru_cache(maxsize=1024)
def _splits(
    rule: Rule,
    mesh: PrimeMesh,
    axes: tuple[Axes, ...],
    places: tuple[int, ...],
    types: tuple[Array, ...],
    made: tuple[Array, ...],
    machine: Machine,
) -> tuple[tuple[Factors, Split], ...]:
    """Return every split over ``axes``; ops of one rule and equal types share the result."""
    shapes = tuple([array.shape for array in types]), tuple([array.shape for array in made])
    chosen = distributions(rule, places, axes, mesh, sides_of(rule, types, made))
    return tuple([(tuple(sorted(one.items())), Split.of(rule, mesh, one, *shapes, machine)) for one in chosen])


def sides_of(rule: Rule, types: Sequence[Array], made: Sequence[Array]) -> list[Side]:
    pairs = (*zip(types, rule.operands, strict=True), *zip(made, rule.results, strict=True))
    return [Side(array.shape, dim_map, None, array.element) for array, dim_map in pairs]


def distributions(
    rule: Rule, places: Sequence[int], axes: Sequence[Axes], mesh: PrimeMesh, sides: Sequence[Side]
) -> Iterator[dict[int, Axes]]:
    """Yield every assignment of ``axes`` to the factors at ``places`` that all sides can express."""
    plain = _is_plain(rule, sides)
    for chosen in itertools.product((None, *places), repeat=len(axes)):
        split: dict[int, list[Axes]] = {}
        for place, each in zip(chosen, axes, strict=True):
            if place is not None:
                split.setdefault(place, []).append(each)
        for ordered in itertools.product(*[orders(one, len(axes)) for one in split.values()]):
            factors = dict(zip(split, ordered, strict=True))
            fits = all(mesh.count(one) <= rule.factors[factor].size for factor, one in factors.items())
            if fits and (plain or settle(rule, sides, factors, mesh.sizes) == factors):
                yield factors


def _is_plain(rule: Rule, sides: Sequence[Side]) -> bool:
    """Return whether each dimension is one whole factor or none, so that every assignment can be expressed."""
    return all(
        not factors or (len(factors) == 1 and rule.factors[factors[0]].covers(size))
        for side in sides
        for factors, size in zip(side.dim_map, side.shape, strict=True)
    )


def orders(several: Sequence[Axes], count: int) -> list[Axes]:
    """Return the orders in which ``several`` axes, of ``count`` axes of the mesh, may split one dimension.

    On a mesh of more than two axes only the mesh's own order: others are many and seldom wanted.
    """
    chosen = itertools.permutations(several) if count <= 2 else [tuple(several)]
    return [tuple(axis for each in one for axis in each) for one in chosen]


def every_split(shape: tuple[int, ...], axes: Sequence[Axes], mesh: PrimeMesh) -> list[DimAxes]:
    """Return every split of an array of ``shape`` over whole ``axes`` into no more parts than it has elements."""
    out = []
    for chosen in itertools.product(range(-1, len(shape)), repeat=len(axes)):
        split = [[each for place, each in zip(chosen, axes, strict=True) if place == dim] for dim in range(len(shape))]
        for dims in itertools.product(*[orders(one, len(axes)) for one in split]):
            if all(mesh.count(one) <= size for one, size in zip(dims, shape, strict=True)):
                out.append(dims)
    return out


def _completed(
    rule: Rule, split: Split, made: Sequence[Array], clock: Clock, axes: Sequence[Axes]
) -> list[tuple[tuple[DimAxes, ...], float]]:
    """Return the splits in which results can be produced, with the seconds to complete them."""
    mesh = split.mesh
    partial = () if rule.self_completing else partial_axes(rule, split.factors)
    if not partial:
        return [(split.results, 0.0)]
    summed = tuple([each for each in axes if each[0] in partial])
    every = [
        _reached(array, dims, partial, summed, made[0].rank, rule.combiner, mesh, clock)
        for array, dims in zip(made, split.results, strict=True)
    ]
    cheapest: dict[tuple[DimAxes, ...], float] = {}
    for at_once in zip(*every, strict=True):
        results, costs = zip(*at_once, strict=True)
        cheapest[results] = min(sum(costs), cheapest.get(results, math.inf))
    return list(cheapest.items())


@lru_cache(maxsize=4096)
def _reached(
    array: Array,
    dims: DimAxes,
    partial: Axes,
    summed: tuple[Axes, ...],
    rank: int,
    combiner: str,
    mesh: PrimeMesh,
    clock: Clock,
) -> tuple[tuple[DimAxes, float], ...]:
    """Return (split, seconds) of one result for each way to lay ``summed`` on ``rank`` dimensions or none."""
    out = []
    for places in itertools.product(range(-1, rank), repeat=len(summed)):
        wanted = list(dims)
        for place, each in zip(places, summed, strict=True):
            if 0 <= place < len(wanted):
                wanted[place] = (*wanted[place], *each)
        side = Side(array.shape, (), tuple(wanted), array.element)
        reached, steps = complete(side, dims, partial, combiner, mesh)
        out.append((reached, sum([clock.collective(step.kind, step.bytes, step.axes, mesh) for step in steps])))
    return tuple(out)
