"""Choose the sub-axes of each factor of an op: the cheapest of the splits that its values suggest.

Problem: given the op's rule, how its operands are split now and how its results must be split, choose the sub-axes of
each factor. After the strategies of Alpa (Zheng et al. 2022), which enumerates splits of each op with their costs; here
only those that a value already has are looked at, op by op.

Candidates, each reduced by ``settle`` to the part that shardings of all operands and results express exactly:

1. the results' split first, filled up from the operands;
2. each operand's split first, filled up from the other operands and the results;
3. the first value of 1 and 2 alone: an operand may be gathered rather than its partial products summed;
4. of each of these, sub-axes that stand on a factor which cannot be split moved to one that can (``_moved``): an
   all_to_all rather than a gather;
5. of the first candidate, the sub-axes of a factor that all devices of them would work on alike, moved to a contracted
   one (``_contracted``): with few rows, reading a share of the weights is worth the sum;
6. no split at all.

An existing copy of an operand under another split suggests candidates as the operand itself does.

Price of a candidate, in seconds of the machine that the caller's ``Pricing`` asks: to bring the operands there, of the
op's own collectives, to complete partial results (``complete``), to bring the results to the sharding they must have,
and of the op's work on one device, so that work is not done many times over to save a few bytes. The cheapest wins;
among equals the earliest. Operands that have nothing to do with one another (``Rule.independent``) are decided one by
one.

Example on x=2, y=2: ``[8,16] x [16,32]`` with the left side over [x, y], the right side's rows over y, and the result
wanted over [x, y]. Candidate 1 (m: x, n: y) exchanges the right side for columns; candidate 2 (m: x, k: y) moves no
operand and scatters the partial [4,32] over y, 256 bytes: it wins.

Complexity: O(values) candidates, each reduced and priced in O(values x dimensions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

from shardpass.cost.collective import ALL_REDUCE, REDUCE_SCATTER, bytes_received
from shardpass.element_types import ElementType
from shardpass.ops.splits.factors import Axes, DimAxes, DimMap, Kind, Rule, pair_rules, project, unproject
from shardpass.ops.splits.prime_mesh import PrimeMesh

Move = Callable[[int, DimAxes], float]  # tensor index, dims to reach (operands) or to start from (results) -> seconds


@dataclass(frozen=True, slots=True)
class Side:
    """An operand or result: its global shape, its map in the rule, and its sharding (None: not over the mesh)."""

    shape: tuple[int, ...]
    dim_map: DimMap
    dims: DimAxes | None
    element: ElementType


@dataclass(frozen=True, slots=True)
class Assignment:
    """The chosen split of an op: the sub-axes of each factor, and the split of each operand and result."""

    factors: dict[int, Axes]
    operands: tuple[DimAxes, ...]
    results: tuple[DimAxes, ...]
    partial: Axes  # sub-axes over which the results are partial
    price: float  # seconds


class Meaning(NamedTuple):
    """The consequences of a split that do not depend on the current shardings of the values.

    ``own``: seconds of the op's own collectives and of its work on one device.
    """

    factors: dict[int, Axes]
    operands: tuple[DimAxes, ...]
    results: tuple[DimAxes, ...]
    partial: Axes
    own: float


class Floors(NamedTuple):
    """Lower bounds of ``bring`` and ``deliver``, which are faster to compute."""

    bring: Move
    deliver: Move


class Pricing(NamedTuple):
    """Price, in seconds, the parts of an op's split.

    Attributes:
        bring: the price to reshard an operand to a split.
        deliver: the price to reshard a result from a split to its sharding.
        own: the price of the op's own collectives and its work on one device, under a split of its factors.
        complete: the price of a completion.
        made: the price to compute so many elements of operand i, for an op whose operands are independent.
        floors: lower bounds by which candidates are dropped before their moves are priced.
    """

    bring: Move
    deliver: Move
    own: Callable[[dict[int, Axes]], float]
    complete: Callable[[Completion], float]
    made: Callable[[int, int], float]
    floors: Floors | None = None


class Known:
    """A cache of the splits of one op, or of equal ops, that does not depend on their values' current shardings.

    A search asks for the split of one op under hundreds of shardings, which suggest the same few splits.
    """

    def __init__(self) -> None:
        self._projected: dict[tuple[DimMap, tuple[int, ...], DimAxes], Projected] = {}
        self._settle_cache: dict[tuple[tuple[int, Axes], ...], dict[int, Axes]] = {}
        self.meanings: dict[tuple[tuple[int, Axes], ...], Meaning] = {}

    def projected(self, rule: Rule, side: Side, sizes: Sequence[int]) -> Projected:
        """Cache ``project`` of a side, with the factors that can be split apart from those that cannot."""
        dims = side.dims or ((),) * len(side.shape)
        key = (side.dim_map, side.shape, dims)
        cached = self._projected.get(key)
        if cached is None:
            every = project(rule, side.dim_map, side.shape, dims, sizes).items()
            stuck = [axis for factor, axes in every if rule.factors[factor].kind is Kind.REPLICATED for axis in axes]
            splittable = [(factor, axes) for factor, axes in every if rule.factors[factor].kind is not Kind.REPLICATED]
            cached = self._projected[key] = Projected(tuple(splittable), tuple(stuck))
        return cached

    def settle(
        self, rule: Rule, sides: Sequence[Side], option: dict[int, Axes], sizes: Sequence[int]
    ) -> dict[int, Axes]:
        """Return the largest part of ``option`` that all shardings express, cached (see the function ``settle``)."""
        key = tuple(sorted(option.items()))
        cached = self._settle_cache.get(key)
        if cached is None:
            cached = self._settle_cache[key] = settle(rule, sides, option, sizes)
        return cached


class Projected(NamedTuple):
    """The sub-axes of the factors that one value splits (``splits``), and sub-axes on factors that may not be split."""

    splits: tuple[tuple[int, Axes], ...]
    stuck: Axes


def settle(rule: Rule, sides: Sequence[Side], assigned: dict[int, Axes], sizes: Sequence[int]) -> dict[int, Axes]:
    """Return the largest part of ``assigned`` that shardings of all sides express exactly."""
    assigned = dict(assigned)
    changed = True
    while changed:
        changed = False
        for side in sides:
            dims = unproject(rule, side.dim_map, side.shape, assigned, sizes)
            back = project(rule, side.dim_map, side.shape, dims, sizes)
            for factor in {f for factors in side.dim_map for f in factors}:
                now = back.get(factor, ())
                if assigned.get(factor, ()) != now:
                    assigned[factor] = now
                    changed = True
    return {f: axes for f, axes in assigned.items() if axes}


def _fill(order: Sequence[Projected | None]) -> dict[int, Axes]:
    """Merge the splits of sides in ``order``; each sub-axis splits only the first factor that it is given for."""
    assigned: dict[int, Axes] = {}
    used: set[int] = set()
    for side in order:
        for factor, axes in side.splits if side is not None else ():
            if factor in assigned:
                continue
            if not used.isdisjoint(axes):
                axes = axes[: next(place for place, axis in enumerate(axes) if axis in used)]
            if axes:
                assigned[factor] = axes
                used.update(axes)
    return assigned


def _moved(
    rule: Rule, order: Sequence[Projected | None], filled: dict[int, Axes], sizes: Sequence[int]
) -> list[dict[int, Axes]]:
    """Move sub-axes from a factor that cannot be split to one that can: an all_to_all, not a gather."""
    every = [axis for side in order if side is not None for axis in side.stuck]
    if not every:
        return []
    used = {a for axes in filled.values() for a in axes}
    stuck = [axis for axis in dict.fromkeys(every) if axis not in used]
    if not stuck:
        return []
    out = []
    for factor, about in enumerate(rule.factors):
        axes = (*filled.get(factor, ()), *stuck)
        if about.kind is Kind.PARALLEL and about.size % prod(sizes[a] for a in axes) == 0:
            out.append({**filled, factor: axes})
    return out


def _contracted(rule: Rule, filled: dict[int, Axes]) -> list[dict[int, Axes]]:
    """Move the sub-axes of one parallel factor in ``filled`` to a reduced factor."""
    reduced = [f for f, about in enumerate(rule.factors) if about.kind is Kind.REDUCTION]
    out = []
    for factor, axes in filled.items():
        if rule.factors[factor].kind is Kind.PARALLEL:
            rest = {f: other for f, other in filled.items() if f != factor}
            out += [{**rest, to: (*rest.get(to, ()), *axes)} for to in reduced]
    return out


def candidates(
    rule: Rule,
    operands: Sequence[Side],
    results: Sequence[Side],
    sizes: Sequence[int],
    copies: Sequence[Side] = (),
    known: Known | None = None,
) -> list[dict[int, Axes]]:
    """List distinct candidates, the result's first, no split at all last. ``copies``: existing copies of operands."""
    known = known or Known()
    sides = [*operands, *results]
    at = [None if side.dims is None else known.projected(rule, side, sizes) for side in sides]
    first, made = at[: len(operands)], at[len(operands) :]
    orders = [[*made, *first]]
    orders += [[at[i], *first[:i], *first[i + 1 :], *made] for i, side in enumerate(operands) if side.dims]
    orders += [[known.projected(rule, copy, sizes), *made] for copy in copies if copy.dims]
    distinct: list[dict[int, Axes]] = []
    seen: list[dict[int, Axes]] = []  # before ``settle``: most are suggested several times
    for order in orders:
        # the first side alone too: an operand may be gathered rather than its partial products summed
        for part in (order, order[:1]):
            filled = _fill(part)
            contracted = _contracted(rule, filled) if order is orders[0] and part is order else []
            for option in (filled, *_moved(rule, part, filled, sizes), *contracted):
                if option in seen:
                    continue
                seen.append(option)
                candidate = known.settle(rule, sides, option, sizes)
                if candidate not in distinct:
                    distinct.append(candidate)
    if {} not in distinct:
        distinct.append({})
    return distinct


def assign(
    rule: Rule,
    operands: Sequence[Side],
    results: Sequence[Side],
    mesh: PrimeMesh,
    pricing: Pricing,
    copies: Sequence[Side] = (),
    known: Known | None = None,
) -> Assignment:
    """Choose the cheapest split by ``pricing``.

    ``copies``: the operands with the splits of existing copies. ``known``: the cache of ops equal to this one, to
    which this call adds.
    """
    if rule.independent and len(operands) > 1:
        return _assign_pairs(rule, operands, results, mesh, pricing)
    known = known or Known()
    best: Assignment | None = None
    for assigned in candidates(rule, operands, results, mesh.sizes, copies, known):
        key = tuple(sorted(assigned.items()))
        means = known.meanings.get(key)
        if means is None:
            inputs, outputs = (
                tuple([unproject(rule, s.dim_map, s.shape, assigned, mesh.sizes) for s in sides])
                for sides in (operands, results)
            )
            partial = () if rule.self_completing else _partial(rule, assigned)
            means = Meaning(assigned, inputs, outputs, partial, pricing.own(assigned))
            known.meanings[key] = means
        price = _price(means, results, rule, mesh, pricing, math.inf if best is None else best.price)
        if best is None or price < best.price:
            best = Assignment(assigned, means.operands, means.results, means.partial, price)
    assert best is not None  # there is always the candidate that splits nothing
    return best


def _price(
    means: Meaning, results: Sequence[Side], rule: Rule, mesh: PrimeMesh, pricing: Pricing, most: float
) -> float:
    """Price a candidate, or return any price not below ``most``: moves, which are slow to price, come last."""
    price, reached = means.own, means.results
    if means.partial:
        done = [
            complete(side, dims, means.partial, rule.combiner, mesh)
            for side, dims in zip(results, means.results, strict=True)
        ]
        reached = tuple([dims for dims, _ in done])
        price += sum([pricing.complete(step) for _, steps in done for step in steps])
    every = means.operands, reached
    if pricing.floors is not None and most < math.inf:
        rows = zip(pricing.floors, every, strict=True)
        if price + sum([floor(place, dims) for floor, ends in rows for place, dims in enumerate(ends)]) >= most:
            return most
    for move, ends in zip((pricing.bring, pricing.deliver), every, strict=True):
        for place, dims in enumerate(ends):
            if price >= most:
                return most
            price += move(place, dims)
    return price


def _assign_pairs(
    rule: Rule, operands: Sequence[Side], results: Sequence[Side], mesh: PrimeMesh, pricing: Pricing
) -> Assignment:
    """Choose the split of each operand separately, for an op with independent operands."""
    factors: dict[int, Axes] = {}
    inputs: list[DimAxes] = []
    outputs: list[DimAxes] = []
    price = 0.0
    for index, (one, numbers) in enumerate(pair_rules(rule)):
        alone = Pricing(
            lambda _, dims, index=index: pricing.bring(index, dims),  # type: ignore[misc]
            lambda _, dims, index=index: pricing.deliver(index, dims),  # type: ignore[misc]
            lambda split, one=one, index=index: pricing.made(index, elements(one, split, mesh)),  # type: ignore[misc]
            pricing.complete,
            pricing.made,
        )
        sides = [replace(operands[index], dim_map=one.operands[0])], [replace(results[index], dim_map=one.results[0])]
        chosen = assign(one, *sides, mesh, alone)
        factors.update((numbers[f], axes) for f, axes in chosen.factors.items())
        inputs += chosen.operands
        outputs += chosen.results
        price += chosen.price
    return Assignment(factors, tuple(inputs), tuple(outputs), (), price)


def elements(rule: Rule, assigned: Mapping[int, Axes], mesh: PrimeMesh) -> int:
    """Count the points of the loop nest of an op with ``rule`` on one device."""
    nest = prod(max(1, factor.size) for factor in rule.factors)
    return nest // prod(mesh.count(axes) for axes in assigned.values())


def _partial(rule: Rule, assigned: dict[int, Axes]) -> Axes:
    return tuple(a for f, axes in sorted(assigned.items()) if rule.factors[f].kind is Kind.REDUCTION for a in axes)


def scatter_dims(
    shape: Sequence[int], wanted: DimAxes | None, dims: DimAxes, partial: Axes, mesh: PrimeMesh
) -> tuple[tuple[int, Axes], ...]:
    """List where partial sums can be scattered: (dimension, sub-axes) that the wanted split adds to ``dims``.

    Only the sub-axes that follow directly on the dimension's own, and only where the tile divides; no dimension of size
    0, along which StableHLO scatters nothing.
    """
    if wanted is None:
        return ()
    scattered, left = [], set(partial)
    for dim, (have, want) in enumerate(zip(dims, wanted, strict=True)):
        if want[: len(have)] != have:
            continue
        added: list[int] = []
        for axis in want[len(have) :]:
            whole = shape[dim] > 0 and shape[dim] % mesh.count((*have, *added, axis)) == 0
            if axis not in left or not whole:
                break
            left.discard(axis)
            added.append(axis)
        if added:
            scattered.append((dim, tuple(added)))
    return tuple(scattered)


@dataclass(frozen=True, slots=True)
class Completion:
    """A collective that combines partial results over ``axes`` by ``combiner``: a reduce_scatter or an all_reduce.

    ``dim``: the dimension that a reduce_scatter splits; None for an all_reduce. ``bytes``: what one device receives.
    """

    dim: int | None
    axes: Axes
    combiner: str
    bytes: int

    @property
    def kind(self) -> str:
        return ALL_REDUCE if self.dim is None else REDUCE_SCATTER


def complete(
    side: Side, dims: DimAxes, partial: Axes, combiner: str, mesh: PrimeMesh
) -> tuple[DimAxes, tuple[Completion, ...]]:
    """Return the dims of a result after its partial sums are completed, and the completions: scattered where wanted.

    Example on x=2, y=2: ``f32[8,8]`` partial over x and y, wanted in rows over x: a reduce_scatter over x
    along dimension 0 receives 128 bytes, and an all_reduce over y of the [4,8] that is left 128.
    """
    tile = list(mesh.tile(side.shape, dims))
    out, steps = list(dims), []
    left = list(partial)
    for dim, axes in scatter_dims(side.shape, side.dims, dims, partial, mesh):
        group = mesh.count(axes)
        scattered = bytes_received(REDUCE_SCATTER, side.element.bytes(prod(tile)), group)
        steps.append(Completion(dim, axes, combiner, scattered))
        tile[dim] //= group
        out[dim] = out[dim] + axes
        left = [a for a in left if a not in axes]
    if left:
        summed = bytes_received(ALL_REDUCE, side.element.bytes(prod(tile)), mesh.count(tuple(left)))
        steps.append(Completion(None, tuple(left), combiner, summed))
    return tuple(out), tuple(steps)
