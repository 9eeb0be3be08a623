"""Plans for tilings with crossing borders (tiles of 5 rows against 3): slide the tiles to a common padded size and
back.

Problem: a dimension of n rows in k1 tiles on one side and k2 on the other, whose tiles are not parts of one padding.

1. The dimension is padded to a multiple of both counts. On that size the borders nest, and every planner for sizes that
   divide applies. It is planned as a problem of its own.
2. Before that plan, the source's tiles grow from ceil(n / k1) rows to the k1-th part of the common size. Tile i slides
   by i times the difference, which is less than lcm(k1, k2) rows in all: a permute of that many rows between neighbours
   (``ops.Slide``), however great the tiles are.
3. After it, the target's tiles shrink to ceil(n / k2) rows in the same way.
4. Slices with which the plan starts, of dimensions that need not slide, come before the slides: there is less to move.

Example: 10 rows in 2 tiles of 5, and in 4 tiles of 3 (the last has 1). The common size is 12: source tiles of 6 rows,
target tiles of 3. Device 0 needs row 5, the first of its neighbour; device 1 ends with rows 6 to 11, of which it has
6 to 9. The target's tiles have their size already.

Not for tiles so small that a device would need rows from further than its neighbour. A tile may be greater than the
sharding's by the padding, less than lcm(k1, k2) / k1 rows. O(devices) for each dimension.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray, grouped
from shardpass.redistribute.problem.problem import Distribution, Problem
from shardpass.redistribute.problem.tiling import Tiling
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder


def common_shape(problem: Problem) -> tuple[int, ...]:
    """Return the least shape that both tilings divide."""
    counts = zip(problem.source.tiling.counts, problem.target.tiling.counts, strict=True)
    return tuple(-(-n // m) * m for n, m in zip(problem.shape, (math.lcm(*pair) for pair in counts), strict=True))


def slid_to_common_tile(problem: Problem, shape: tuple[int, ...], built: Builder) -> Builder | None:
    """Surround ``built``, a plan for the padded ``shape``, with slides that grow and shrink tiles.

    None where tiles are too small to slide.
    """
    source, target = problem.source, problem.target
    first = Builder(source.tile, problem.element, problem.sub_axes)
    for dim in _whole(source):
        _resize(first, dim, shape[dim])
    tiling, rest = _sliced_first(source, first, built)
    for dim in _split(source):
        if not _slide(problem.shape[dim], dim, tiling, shape[dim] // tiling.counts[dim], first):
            return None
    last = Builder(built.tile, problem.element, problem.sub_axes)
    for dim in _whole(target):
        _resize(last, dim, target.tile[dim])
    for dim in _split(target):
        if not _slide(problem.shape[dim], dim, target.tiling, target.tile[dim], last):
            return None
    return last.after(rest.after(first))


def _whole(side: Distribution) -> list[int]:
    return [dim for dim, count in enumerate(side.tiling.counts) if count == 1]


def _split(side: Distribution) -> list[int]:
    return [dim for dim, count in enumerate(side.tiling.counts) if count > 1]


def _sliced_first(side: Distribution, first: Builder, built: Builder) -> tuple[Tiling, Builder]:
    """Move the slices with which ``built`` starts before the slides, but for dimensions that slide.

    Returns the tiling after them, and the rest of ``built``.
    """
    whole = _whole(side)
    op = built.program[0] if built.program else None
    if not isinstance(op, ops.DynamicSlice) or not any(op.sizes[dim] < first.tile[dim] for dim in whole):
        return side.tiling, built
    sizes = tuple(op.sizes[dim] if dim in whole else n for dim, n in enumerate(first.tile))
    starts = np.where([dim in whole for dim in range(len(sizes))], op.starts, 0)
    counts = tuple(n // size for n, size in zip(first.tile, sizes, strict=True))
    index = side.tiling.index * np.array(counts) + starts // np.array(sizes)
    tiling = Tiling(tuple(a * b for a, b in zip(side.tiling.counts, counts, strict=True)), index)
    first.dynamic_slice(sizes, starts)
    before = built.steps[0].tile_before
    before = tuple(sizes[dim] if dim in whole else n for dim, n in enumerate(before))
    rest = Builder(before, built.element, built.sub_axes)
    rest.received, rest.refused, rest.tile = built.received, built.refused, built.tile
    is_done = before == op.sizes
    rest.program = [*([] if is_done else [ops.DynamicSlice(op.sizes, op.starts - starts)]), *built.program[1:]]
    rest.steps = [*([] if is_done else [replace(built.steps[0], tile_before=before)]), *built.steps[1:]]
    return tiling, rest


def _resize(builder: Builder, dim: int, size: int) -> None:
    """Pad or trim a dimension that is whole on every device."""
    tile = (*builder.tile[:dim], size, *builder.tile[dim + 1 :])
    if size > builder.tile[dim]:
        builder.pad(tile)
    elif size < builder.tile[dim]:
        builder.local(ops.Trim(tile), tile)


def _slide(n: int, dim: int, tiling: Tiling, size: int, builder: Builder) -> bool:
    """Slide tiles of dimension ``dim``, of ``n`` rows, to tiles of ``size`` rows."""
    have, count = builder.tile[dim], tiling.counts[dim]
    if have == size:
        return True
    here = np.arange(count)
    low, stop = np.minimum(here * size, n), np.minimum((here + 1) * size, n)  # the rows that tile i is to have
    empty = low == stop
    before = size < have
    # past its own rows a tile needs some of the next one's, or of the one before it
    need = np.where(empty, 0, here * have - low if before else stop - np.minimum((here + 1) * have, n))
    halo = max(int(need.max()), 0)
    reach = low >= here * have - halo if before else low <= (here + 1) * have
    if halo > have or not (reach | empty).all():
        return False
    starts = np.where(empty, 0, low - here * have + (halo if before else 0))
    slack = max(0, int((starts + size).max()) - have - halo)
    index = tiling.index[:, dim]
    source_of = _neighbours(tiling, dim, before)
    builder.slide(ops.Slide(dim, size, halo, before, slack, source_of, starts[index], index * size))
    return True


def _neighbours(tiling: Tiling, dim: int, before: bool) -> IntArray:
    """Return for each device the holder of the next tile along ``dim`` (or of the tile before); -1 at the end."""
    count = tiling.counts[dim]
    lines = grouped(tiling.joined(dim, count).key, tiling.index[:, dim], count, tiling.replica)
    out = np.full(len(tiling.index), -1, np.int64)
    if before:
        out[lines[:, 1:]] = lines[:, :-1]
    else:
        out[lines[:, :-1]] = lines[:, 1:]
    return out
