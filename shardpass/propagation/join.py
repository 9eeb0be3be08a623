"""One step of propagation: joins the splits of an op's values factor by factor. A pure function of its arguments.

Cases, for each factor of the op's rule:

1. one split, or splits of which one continues the others: the longest. (x=2, y=2; an add of one operand in rows over
   [x] and one over [x, y]: the result is split over [x, y].)
2. splits that disagree: each value votes by its bytes for its split and for the split's beginnings, and the split with
   most bytes wins. The refused ones are recorded. (Rows over [x] of 4 KiB beside rows over [y] of 1 KiB: [x].)
3. two factors that want one sub-axis: the one has it that moves fewer bytes (``_cost``): a value that splits the other
   factor over it is exchanged where it has both dimensions, gathered where it has one, and partial results are summed.
   (A matmul whose left side splits its rows over [x] and whose right side splits its columns over [x]: the smaller one
   is gathered.)
4. where bytes do not decide case 3 either (queries and keys split alike): values with both factors wait, or, where
   ``reduced_later`` is given, the factor has it whose dimension is reduced least further on.

Every value then takes what it can of the joined splits: what continues its own split, over sub-axes that it has not
used and may use, no more shards than elements (only even tiles, for arguments and results of main). Cost:
O(values x dimensions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from shardpass.cost.collective import ALL_GATHER, REDUCE_SCATTER, bytes_received
from shardpass.ops.splits.factors import Axes, DimAxes, DimMap, Kind, Rule, project, unproject, used_axes

ReducedLater = Callable[[int, Axes], int]


@dataclass(frozen=True, slots=True)
class Facts:
    """The inputs of ``join`` for a value, besides its split.

    ``forbidden``: sub-axes that must not split the value further. ``divisible_only``: whether splits must divide the
    value's sizes evenly.
    """

    shape: tuple[int, ...]
    bytes: int
    fixed: bool
    open_dims: frozenset[int]
    forbidden: frozenset[int]
    divisible_only: bool
    states: dict[DimAxes, int] = field(default_factory=dict, compare=False, repr=False)  # numbers of splits (``joins``)

    @property
    def closed(self) -> bool:
        """Whether the user fixed every dimension."""
        return self.fixed and not self.open_dims


NO_FACTS = Facts((), 0, False, frozenset(), frozenset(), False)


class StepValue(NamedTuple):
    """A value of the step: its number (a value may occur twice), facts and split."""

    value: int
    facts: Facts
    dims: DimAxes


class RefusedSplit(NamedTuple):
    """A split of ``factor`` that lost to another, and the bytes in favour of each."""

    factor: int
    chosen: Axes
    refused: Axes
    chosen_bytes: int
    refused_bytes: int


class Outcome(NamedTuple):
    """The result of a step. ``changes``: (place in the step, the value's new split). ``waits``: whether a tie
    remains.
    """

    changes: tuple[tuple[int, DimAxes], ...]
    refusals: tuple[RefusedSplit, ...]
    waits: bool


NOTHING = Outcome((), (), False)


def join(
    rule: Rule,
    frozen: frozenset[int],
    sides: Sequence[StepValue],
    sizes: Sequence[int],
    reduced_later: ReducedLater | None = None,
) -> Outcome:
    """Join the splits of one step. ``frozen``: places of values that it only reads; ``sizes``: of sub-axes."""
    maps = (*rule.operands, *rule.results)
    votes: dict[int, dict[Axes, int]] = {}  # factor -> split -> bytes of the values that hold it
    proposals: list[dict[int, Axes]] = []
    for side, dim_map in zip(sides, maps, strict=True):
        proposal = project(rule, dim_map, side.facts.shape, side.dims, sizes) if any(side.dims) else {}
        for factor, axes in proposal.items():
            if rule.factors[factor].blocked:
                continue
            by_split = votes.setdefault(factor, {})
            by_split[axes] = by_split.get(axes, 0) + side.facts.bytes
        proposals.append(proposal)
    if not votes:
        return NOTHING
    refusals: list[RefusedSplit] = []
    joined = {factor: _preferred(factor, by_split, refusals) for factor, by_split in votes.items()}
    cost = {factor: _cost(rule, sides, proposals, joined, factor, sizes) for factor in votes}
    tied = _tied(joined, cost)
    later = {f: reduced_later(f, joined[f]) for f in tied} if reduced_later is not None else {}
    order = sorted(joined, key=lambda f: (cost[f], later.get(f, 0), f))
    if reduced_later is not None:
        tied = set()
    return _changes(rule, frozen, sides, proposals, joined, order, tied, sizes, tuple(refusals))


def _changes(
    rule: Rule,
    frozen: frozenset[int],
    sides: Sequence[StepValue],
    proposals: Sequence[Mapping[int, Axes]],
    joined: Mapping[int, Axes],
    order: Sequence[int],
    tied: set[int],
    sizes: Sequence[int],
    refusals: tuple[RefusedSplit, ...],
) -> Outcome:
    """Extend each value's split by the joined splits."""
    changes, waits = [], False
    now = {side.value: side.dims for side in sides}
    for place, (side, dim_map, own) in enumerate(zip(sides, (*rule.operands, *rule.results), proposals, strict=True)):
        if place in frozen:
            continue
        mine = {f for factors in dim_map for f in factors}
        if side.facts.fixed:  # what a dimension that stays as it is cannot take is left to those that are open
            mine = {f for dim in side.facts.open_dims for f in dim_map[dim]}
        here = [f for f in order if f in mine]
        if len(tied & mine) > 1 and not side.facts.fixed:
            waits = True
            here = [f for f in here if f not in tied]
        dims = _extended(side.facts, now[side.value], dim_map, own, rule, joined, here, sizes)
        if dims != now[side.value]:
            now[side.value] = dims
            changes.append((place, dims))
    return Outcome(tuple(changes), refusals, waits) if changes or refusals or waits else NOTHING


def _preferred(factor: int, votes: Mapping[Axes, int], refusals: list[RefusedSplit]) -> Axes:
    """Return the split with most bytes in its favour."""
    if len(votes) == 1:
        return next(iter(votes))

    def support(axes: Axes) -> int:
        return sum(b for other, b in votes.items() if axes[: len(other)] == other or other[: len(axes)] == axes)

    best = max(votes, key=lambda axes: (support(axes), len(axes), [-a for a in axes]))
    for other, size in votes.items():
        if best[: len(other)] != other:
            refusals.append(RefusedSplit(factor, best, other, support(best), size))
    return best


def _cost(
    rule: Rule,
    sides: Sequence[StepValue],
    proposals: Sequence[Mapping[int, Axes]],
    joined: Mapping[int, Axes],
    factor: int,
    sizes: Sequence[int],
) -> int:
    """Count the bytes that move, over all devices, if ``factor`` gets the sub-axes that other factors want too.

    A value that splits another factor over them is gathered, or, where it has ``factor`` too, exchanged. Partial
    results are summed where nothing else was wanted of them.
    """
    mine = set(joined[factor])
    contested = {a for other, axes in joined.items() if other != factor for a in axes if a in mine}
    if not contested:
        return 0
    total = 0
    partial = rule.factors[factor].kind is Kind.REDUCTION
    maps = (*rule.operands, *rule.results)
    for place, (side, dim_map, proposal) in enumerate(zip(sides, maps, proposals, strict=True)):
        lost = {a for other, axes in proposal.items() if other != factor for a in axes if a in mine}
        count = prod(sizes[a] for a in lost or contested)
        moved = bytes_received(ALL_GATHER, side.facts.bytes, count)
        if lost:
            total += moved // count if any(factor in factors for factors in dim_map) else moved
        elif partial and place >= len(rule.operands):
            total += bytes_received(REDUCE_SCATTER, side.facts.bytes, count) + moved
    return total


def _tied(joined: Mapping[int, Axes], cost: Mapping[int, int]) -> set[int]:
    """Return the factors that want a sub-axis at the same cost as another factor does."""
    claims: dict[int, list[int]] = {}
    for factor, axes in joined.items():
        for axis in axes:
            claims.setdefault(axis, []).append(factor)
    tied: set[int] = set()
    for factors in claims.values():
        least = min(cost[f] for f in factors)
        best = [f for f in factors if cost[f] == least]
        if len(best) > 1:
            tied.update(best)
    return tied


def _extended(
    facts: Facts,
    dims: DimAxes,
    dim_map: DimMap,
    own: Mapping[int, Axes],
    rule: Rule,
    joined: Mapping[int, Axes],
    order: Sequence[int],
    sizes: Sequence[int],
) -> DimAxes:
    """Extend ``dims`` of a value, which project to ``own``, by the joined splits that it can take.

    ``order``: its factors; earlier factors choose sub-axes first.
    """
    if facts.closed or all(own.get(factor, ()) == joined[factor] for factor in order):
        return dims
    used = set(used_axes(dims)) | facts.forbidden
    wanted: dict[int, Axes] = dict(own)
    for factor in order:
        have, more = own.get(factor, ()), joined[factor]
        if more[: len(have)] != have:
            continue
        fresh = []
        for axis in more[len(have) :]:
            if axis in used:
                break
            used.add(axis)
            fresh.append(axis)
        wanted[factor] = have + tuple(fresh)
    target = unproject(rule, dim_map, facts.shape, wanted, sizes)
    return tuple(_grown(facts, dim, old, new, sizes) for dim, (old, new) in enumerate(zip(dims, target, strict=True)))


def _grown(facts: Facts, dim: int, old: Axes, new: Axes, sizes: Sequence[int]) -> Axes:
    """Extend ``old`` by ``new``, as far as it fits, if ``new`` continues it and the dimension may change."""
    if len(new) <= len(old) or new[: len(old)] != old or (facts.fixed and dim not in facts.open_dims):
        return old
    length, size = len(old), facts.shape[dim]
    while length < len(new):
        count = prod(sizes[a] for a in new[: length + 1])
        if size % count if facts.divisible_only else size < count:
            break
        length += 1
    return new[:length]
