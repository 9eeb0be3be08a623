"""Plans for clashing tilings through a tile that is common to both sides, with one permute between the two orders.

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
3. Another plan begins with an exchange: sub-axes go where the target wants them, if nobody is there, and what is still
   whole of a clashing dimension gets those that have to leave others. f32[4, 2, 12] from [{b}, {}, {c}] to
   [{}, {b}, {a}], a sliced, goes to [{}, {b}, {c, a}] before the permute to [{}, {b}, {a, c}].
4. Where several dimensions clash, each in turn may be whole in that tile, rather than cut by both sides: its sub-axes
   leave it in the exchange. f32[6, 6, 4, 4] on a=2, b=2, c=3, d=2, from [{d}, {c}, {}, {a, b}] to [{c}, {a}, {b}, {}]:
   c leaves dimension 1, and [{d, c}, {}, {b}, {a}] is permuted to [{c, d}, {}, {b}, {a}].
5. After the permute the same parts are split: by the sub-axis that the target has there, or else by one of the size
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
from dataclasses import replace

from shardpass.redistribute.candidates.sub_axes.assignments import (
    REPLICATED,
    Assignment,
    Splits,
    SubAxisProblem,
    SubDim,
)
from shardpass.redistribute.problem.problem import Problem

Ends = tuple[SubAxisProblem, SubAxisProblem]


def through_common_tile(problem: Problem, shape: tuple[int, ...]) -> list[Ends]:
    """List pairs of problems, before and after the permute; empty without enough sub-axes or elements.

    The target of the first and the source of the second are the same tiles, numbered alike (``SubAxisProblem.key``).
    ``shape`` is the padded shape that both tilings divide.
    """
    splits = Splits.of(problem, len(shape))
    clashing = () if splits is None else tuple(i for i in range(len(shape)) if not splits.nest(i))
    if splits is None or splits.summed or not clashing:
        return []
    refined = _refined(splits, shape, 0), _refined(splits, shape, 1)
    if refined[0] is None or refined[1] is None:
        return []
    whole = clashing if len(clashing) > 1 else ()
    ways = [(False, None), (True, None), *((True, dim) for dim in whole)]
    ends = [_through(splits, (refined[0], refined[1]), exchanged, dim) for exchanged, dim in ways]
    return list({pair[0].target: pair for pair in ends if pair is not None}.values())


def _through(
    splits: Splits, refined: tuple[tuple[SubDim, ...], tuple[SubDim, ...]], exchanged: bool, whole: int | None
) -> Ends | None:
    """Plan with or without an exchange first (case 3), and with dimension ``whole`` whole in the tile (case 4)."""
    source, target = _placed(splits, refined[0], 0), _placed(splits, refined[1], 1)
    free = [m for m in range(len(source)) if m not in splits.kept]
    cut = _of_clashing(splits, refined[0])
    both = [t for t in cut if refined[0][t].dim != whole]
    left = [t for t in cut if refined[0][t].dim == whole]
    gone = _gone(source, target, cut, left, free) if exchanged else source
    spare = [m for m in free if gone[m] == REPLICATED or (exchanged and gone[m] not in (target[m], *both))]
    spare += [m for m in free if gone[m] in left and m not in spare]
    filled = _filled(gone, both, refined[0], spare, target, splits)
    if filled is None or any(t in left for t in filled):
        return None
    sliced = _sliced(filled, target, cut, refined[0], free, splits)
    split = [t for t in sliced if t != REPLICATED]
    kept = tuple(t if t in split else REPLICATED for t in target)
    wanted = _filled(kept, split, refined[1], [m for m in free if kept[m] == REPLICATED], target, splits)
    if wanted is None:
        return None
    first = SubAxisProblem(len(splits.sides[0]), refined[0], splits.sub_axes, source, sliced, (), splits.kept)
    return first, replace(first, sub_dims=refined[1], source=wanted, target=target)


def _refined(splits: Splits, shape: tuple[int, ...], side: int) -> tuple[SubDim, ...] | None:
    """List all sub-dimensions, in clashing dimensions the sizes of ``side`` first; None without enough elements."""
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
    """Return the assignment of one side."""
    out = [REPLICATED] * len(splits.sub_axes.parts)
    for i, splitting in enumerate(splits.sides[side]):
        first = next(t for t, sub_dim in enumerate(sub_dims) if sub_dim.dim == i)
        for number, m in enumerate(splitting):
            out[m] = first + number
    return tuple(out)


def _of_clashing(splits: Splits, sub_dims: Sequence[SubDim]) -> list[int]:
    """List the sub-dimensions of clashing dimensions, except the last, unsplit sub-dimension of each."""
    last = {sub_dim.dim: t for t, sub_dim in enumerate(sub_dims)}
    return [t for t, sub_dim in enumerate(sub_dims) if not splits.nest(sub_dim.dim) and t != last[sub_dim.dim]]


def _gone(
    source: Assignment, target: Assignment, clashing: Sequence[int], left: Sequence[int], free: Sequence[int]
) -> Assignment:
    """Move each splitting sub-axis of ``free`` to its target place, unless its old or new place clashes (case 3).

    ``left``: sub-dimensions that every sub-axis must leave.
    """
    stays = [t for t in clashing if t not in left]
    at_once = [m for m in free if source[m] not in (REPLICATED, *stays)]
    at_once = [m for m in at_once if target[m] not in (REPLICATED, *clashing, *source)]
    return tuple(target[m] if m in at_once else t for m, t in enumerate(source))


def _filled(
    assignment: Assignment,
    split: Iterable[int],
    sub_dims: Sequence[SubDim],
    spare: list[int],
    target: Assignment,
    splits: Splits,
) -> Assignment | None:
    """Put one of ``spare`` on each unsplit sub-dimension of ``split``, replicated sub-axes first.

    Among these, sub-axes that split ``target`` come first.
    """
    out = list(assignment)
    left = sorted(spare, key=lambda m: (assignment[m] != REPLICATED, target[m] == REPLICATED))
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
    """Slice until no sub-dimension of a clashing dimension is whole (case 2)."""
    out = list(assignment)
    places = [t for t in target if t != REPLICATED and t not in clashing]
    for m in free:
        if out[m] == REPLICATED and target[m] != REPLICATED:
            size = splits.sub_axes.sizes[m]
            fit = [t for t in places if t not in out and sub_dims[t].size == size]
            out[m] = target[m] if target[m] in fit else next(iter(fit), REPLICATED)
    return tuple(out)
