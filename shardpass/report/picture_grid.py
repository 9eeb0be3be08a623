"""The grid that a picture of a sharding draws: cells of tiles, and the parts that are left out.

Rows are the tiles along one split dimension, columns those along a second, and a third is drawn as several grids. One
dimension of many tiles is folded into several rows. The grid is plain data, and ``picture_text`` and ``picture_svg``
draw it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import Sharding
from shardpass.sharding.digits import Ints

MOST_CELLS = 16  # along one dimension
MOST_PAGES = 8
MOST_DEVICES = 8  # named in one cell


@dataclass(frozen=True, slots=True)
class Cell:
    """A tile: its row-major number, its range [start, stop) in each dimension, and its devices."""

    number: int
    part: tuple[tuple[int, int], ...]
    devices: tuple[int, ...]

    @property
    def names(self) -> str:
        """The devices, in a few words."""
        ids = self.devices
        if len(ids) <= MOST_DEVICES:
            return " ".join(map(str, ids)) if ids else "all"
        steps = {b - a for a, b in itertools.pairwise(ids)}
        if steps == {1}:
            return f"{ids[0]}..{ids[-1]}"
        return " ".join(map(str, ids[: MOST_DEVICES - 2])) + f" +{len(ids) - MOST_DEVICES + 2}"


@dataclass(frozen=True, slots=True)
class Grid:
    """The tiles of an array, laid out in rows, columns and pages.

    Attributes:
        sharding: the sharding of the array.
        shape: the shape of the array.
        axes: the dimensions drawn as rows, as columns and as pages; None for those not used.
        pages: ``pages[p][r][c]`` is a cell.
        left_out: sentences about the parts that are not drawn.
    """

    sharding: Sharding
    shape: tuple[int, ...]
    axes: tuple[int | None, int | None, int | None]
    pages: tuple[tuple[tuple[Cell, ...], ...], ...]
    left_out: tuple[str, ...]

    @property
    def title(self) -> str:
        text = str(self.sharding)
        text = text if len(text) <= 100 else text[:70] + " .. " + text[-26:]
        size = "x".join(map(str, self.shape)) or "scalar"
        return f"{text} of {size}: tiles of {'x'.join(map(str, self.sharding.tile_shape(self.shape))) or 'scalar'}"

    @property
    def folded(self) -> bool:
        """Whether the picture has one dimension of many tiles, drawn in several rows."""
        return self.axes[0] is not None and self.axes[1] is None and len(self.pages[0][0]) > 1

    def row_text(self, row: tuple[Cell, ...]) -> str:
        """Name the part of the dimension drawn as rows that a row covers."""
        axis = self.axes[0]
        if axis is None or not self.folded:
            return self.part_text(axis, row[0])
        return f"{row[0].part[axis][0]}:{row[-1].part[axis][1]}"

    def part_text(self, axis: int | None, cell: Cell) -> str:
        if axis is None:
            return ""
        start, stop = cell.part[axis]
        return f"{start}:{stop}" if start < stop else "empty"


def grid_of(sharding: Sharding, shape: Sequence[int]) -> Grid:
    """Return the grid of the tiles that ``sharding`` makes of an array of ``shape``.

    Raises:
        ShardingError: the sharding is of another rank, or has no tiles (``{unknown}``).
    """
    shape = tuple(shape)
    counts = sharding.tile_counts(len(shape))
    tile = sharding.tile_shape(shape)
    split = [k for k, count in enumerate(counts) if count > 1]
    # one split dimension runs along the columns unless it is the first of several
    rows, columns, pages = (
        (None, None, None) if not split
        else (split[0], None, None) if len(split) == 1 and split[0] == 0 and len(shape) > 1
        else (None, split[0], None) if len(split) == 1
        else (split[0], split[1], split[2] if len(split) > 2 else None)
    )  # fmt: skip
    holders = _holders(sharding, counts)

    def cell(*places: tuple[int | None, int]) -> Cell:
        at = [0] * len(shape)
        for axis, place in places:
            if axis is not None:
                at[axis] = place
        return _cell(tuple(at), counts, tile, shape, holders)

    if len(split) == 1 and counts[split[0]] > MOST_CELLS:
        rows, columns = split[0], None
        drawn = _folded([cell((rows, k)) for k in range(min(counts[rows], MOST_CELLS**2))])
    else:
        drawn = [
            [
                [cell((rows, r), (columns, c), (pages, p)) for c in range(_drawn(counts, columns, MOST_CELLS))]
                for r in range(_drawn(counts, rows, MOST_CELLS))
            ]
            for p in range(_drawn(counts, pages, MOST_PAGES))
        ]
    left_out = _left_out(sharding, counts, split, (rows, columns, pages))
    return Grid(sharding, shape, (rows, columns, pages), tuple(tuple(map(tuple, page)) for page in drawn), left_out)


def _folded(cells: list[Cell]) -> list[list[list[Cell]]]:
    """Split a single row of cells into rows that fit the page; the last row may be shorter."""
    width = MOST_CELLS if len(cells) > 4 * MOST_CELLS // 2 else MOST_CELLS // 2
    return [[cells[k : k + width] for k in range(0, len(cells), width)]]


def _drawn(counts: tuple[int, ...], axis: int | None, most: int) -> int:
    return 1 if axis is None else min(counts[axis], most)


def _holders(sharding: Sharding, counts: tuple[int, ...]) -> Ints | None:
    """Return the devices of each tile, [tiles, copies]; None for one tile on all devices or on unnamed ones."""
    if sharding.is_maximal or sharding.mesh is None:
        if sharding.is_unknown:
            raise table.NO_TILES.error(sharding=str(sharding), why="it is a placeholder", hint="draw a tiled sharding")
        return None if sharding.device is None else np.array([[sharding.device]])
    if not sharding.dims or sharding.is_replicated:
        return np.arange(sharding.mesh.size).reshape(1, -1)
    return sharding.tile_devices().reshape(math.prod(counts), -1)


def _cell(
    at: tuple[int, ...], counts: tuple[int, ...], tile: tuple[int, ...], shape: tuple[int, ...],
    holders: Ints | None,
) -> Cell:  # fmt: skip
    number = int(np.ravel_multi_index(at, counts)) if counts else 0
    part = tuple((min(k * t, n), min((k + 1) * t, n)) for k, t, n in zip(at, tile, shape, strict=True))
    return Cell(number, part, () if holders is None else tuple(map(int, holders[number])))


def _left_out(
    sharding: Sharding, counts: tuple[int, ...], split: list[int], axes: tuple[int | None, int | None, int | None]
) -> tuple[str, ...]:
    out = []
    for axis, most, word in zip(axes, (MOST_CELLS, MOST_CELLS, MOST_PAGES), ("rows", "columns", "grids"), strict=True):
        most = MOST_CELLS**2 if len(split) == 1 else most
        if axis is not None and counts[axis] > most:
            out.append(
                f"{counts[axis] - most} more {'tiles' if len(split) == 1 else word} of dimension {axis} are not drawn"
            )
    for axis in split[3:]:
        out.append(f"dimension {axis} is split in {counts[axis]}: its first tile is drawn")
    whole = [k for k in range(len(counts)) if counts[k] == 1]
    if whole and len(counts) > 1:
        out.append(f"dimension{'s' * (len(whole) > 1)} {', '.join(map(str, whole))} not split")
    mesh = sharding.mesh
    for word, names in (("partial sums over", sharding.unreduced), ("manual over", sharding.manual)):
        if names and mesh is not None:
            out.append(f"{word} {', '.join(f'{a} of {mesh.ref_size(a)}' for a in names)}")
    if sharding.is_manual:
        out.append("manual: every device has an array of its own")
    elif sharding.is_unreduced:
        out.append("every device holds a summand of all of it")
    elif sharding.mesh is None and sharding.device is None:
        out.append("every device holds all of it")
    return tuple(out)
