"""Where the tilings of a dimension clash: slices to a tile that both sides cut, and one permute from order to order.

Problem: halves and thirds of a dimension have no common refinement as leading parts (``assignments``). But the sixths
of it are the halves of thirds as well as the thirds of halves: cut so far, the tiles are the same on both sides, and
only stand on other devices. One permute brings them there.

State: each dimension as two lists of sub-dimensions, of the same number and product. A clashing one is refined by the
sizes of the source and then those that only the target has, and by the sizes of the target and then those that only
the source has; another is refined alike. Cases:

1. Before the permute, each sub-dimension of a clashing dimension that the source does not split gets a sub-axis of its
   size that the source replicates: a slice. Where there is none, there is no such plan (but perhaps a ``detour``).
2. Other sub-axes that the source replicates are sliced where the target wants them, or where it wants another of their
   size: the tile that is permuted is smaller.
3. After the permute the same parts are split: by the sub-axis that the target has there, or else by one of the size
   that the target has elsewhere, to be exchanged; or by one that it replicates, to be gathered.

Example: f32[12, 2, 8] on a=2, b=2, c=3, d=2, from [{d}, {b}, {}] to [{c}, {a}, {d, b}]: sliced to [{d, c}, {b}, {a}],
tiles of 2x1x4; permuted to [{c, b}, {a}, {d}]; and b is exchanged to dimension 2. A device receives 32 and 16 bytes,
where by way of an assignment that leaves dimension 0 whole it would be 24 and 32.

Invariants: no tile is greater than the source's or the target's. O(sub-axes squared), and O(devices) for the permute.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from shardpass.redistribute.candidates.sub_axes.assignments import (
    REPLICATED,
    Assignment,
    Splits,
    SubAxisProblem,
    SubDim,
)
from shardpass.redistribute.problem.problem import Problem

Ends = tuple[SubAxisProblem, SubAxisProblem]


def through_common_tile(problem: Problem, shape: tuple[int, ...]) -> Ends | None:
    """What comes before the permute, and after it; None where sub-axes or elements do not suffice.

    The target of the first and the source of the second are the same tiles, numbered alike (``SubAxisProblem.key``).
    ``shape`` is the padded shape that both tilings divide.
    """
    splits = Splits.of(problem, len(shape))
    if splits is None or splits.summed or all(splits.nest(i) for i in range(len(shape))):
        return None
    refined = _refined(splits, shape, 0), _refined(splits, shape, 1)
    if refined[0] is None or refined[1] is None:
        return None
    source, target = _placed(splits, refined[0], 0), _placed(splits, refined[1], 1)
    free = [m for m in range(len(source)) if m not in splits.kept]
    clashing = _of_clashing(splits, refined[0])
    held = _filled(source, clashing, refined[0], [m for m in free if source[m] == REPLICATED], target, splits)
    if held is None:
        return None
    held = _sliced(held, target, clashing, refined[0], free, splits)
    split = [t for t in held if t != REPLICATED]
    kept = tuple(t if t in split else REPLICATED for t in target)
    wanted = _filled(kept, split, refined[1], [m for m in free if kept[m] == REPLICATED], target, splits)
    if wanted is None:
        return None
    ends = ((refined[0], source, held), (refined[1], wanted, target))
    first, second = (
        SubAxisProblem(len(shape), sub_dims, splits.sub_axes, before, after, (), splits.kept)
        for sub_dims, before, after in ends
    )
    return first, second


def _refined(splits: Splits, shape: tuple[int, ...], side: int) -> tuple[SubDim, ...] | None:
    """All sub-dimensions, of a clashing dimension by the sizes of ``side`` first; None where elements are too few."""
    out = []
    for i, n in enumerate(shape):
        sizes = splits.sizes(i)
        if splits.nest(i):
            cut = max(sizes, key=len)
        else:
            cut = [*sizes[side], *sorted((Counter(sizes[1 - side]) - Counter(sizes[side])).elements())]
        if n % math.prod(cut):
            return None
        out += [SubDim(i, size) for size in [*cut, n // math.prod(cut)]]
    return tuple(out)


def _placed(splits: Splits, sub_dims: Sequence[SubDim], side: int) -> Assignment:
    """The assignment of one side."""
    out = [REPLICATED] * len(splits.sub_axes.parts)
    for i, splitting in enumerate(splits.sides[side]):
        first = next(t for t, sub_dim in enumerate(sub_dims) if sub_dim.dim == i)
        for number, m in enumerate(splitting):
            out[m] = first + number
    return tuple(out)


def _of_clashing(splits: Splits, sub_dims: Sequence[SubDim]) -> list[int]:
    """The sub-dimensions of clashing dimensions, without the last of each, which nobody splits."""
    last = {sub_dim.dim: t for t, sub_dim in enumerate(sub_dims)}
    return [t for t, sub_dim in enumerate(sub_dims) if not splits.nest(sub_dim.dim) and t != last[sub_dim.dim]]


def _filled(
    assignment: Assignment,
    split: Iterable[int],
    sub_dims: Sequence[SubDim],
    spare: list[int],
    target: Assignment,
    splits: Splits,
) -> Assignment | None:
    """``assignment`` with one of ``spare`` on each of ``split`` that is whole, those first that the target splits."""
    out, left = list(assignment), sorted(spare, key=lambda m: target[m] == REPLICATED)
    for t in split:
        if t in out:
            continue
        m = next((m for m in left if splits.sub_axes.sizes[m] == sub_dims[t].size), None)
        if m is None:
            return None
        left.remove(m)
        out[m] = t
    return tuple(out)


def _sliced(
    assignment: Assignment,
    target: Assignment,
    clashing: Sequence[int],
    sub_dims: Sequence[SubDim],
    free: Sequence[int],
    splits: Splits,
) -> Assignment:
    """Case 2: no sub-dimension of a clashing dimension is whole any more."""
    out = list(assignment)
    places = [t for t in target if t != REPLICATED and t not in clashing]
    for m in free:
        if out[m] == REPLICATED and target[m] != REPLICATED:
            size = splits.sub_axes.sizes[m]
            fit = [t for t in places if t not in out and sub_dims[t].size == size]
            out[m] = target[m] if target[m] in fit else next(iter(fit), REPLICATED)
    return tuple(out)
