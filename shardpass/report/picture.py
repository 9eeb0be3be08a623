"""Pictures of a sharding: which devices hold which tile (as figures 1 and 4 of Rink et al. draw it).

A picture is a grid of cells, one for each tile: rows are the tiles along one dimension, columns those along a second,
and a third dimension is drawn as several grids. Only dimensions that are split are drawn. What does not fit is left
out, and the picture says so.

``show`` draws in the terminal; in Jupyter the value of ``picture(sharding, shape)`` draws itself; ``.svg()`` is a file.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console, RenderableType

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import Sharding, TupleSharding, parse_sharding
from shardpass.sharding.digits import Ints
from shardpass.sharding.errors import fault

MOST_CELLS = 16  # along one dimension
MOST_PAGES = 8
MOST_DEVICES = 8  # named in one cell

_TYPE = re.compile(
    r"\s*(?:[a-z]\w*\s*\[\s*(?P<list>[\d\s,]*)\]|tensor<\s*(?P<x>(?:\d+\s*x\s*)*)[a-z]\w*\s*>)\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A tile: its number in row-major order, its part of each dimension [start, stop), and the devices that hold it."""

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
class Picture:
    """``pages[p][r][c]`` is a cell. ``axes``: the dimension drawn as rows, columns and pages; None where none is."""

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
        """One dimension of many tiles, drawn in several rows."""
        return self.axes[0] is not None and self.axes[1] is None and len(self.pages[0][0]) > 1

    def row_text(self, row: tuple[Cell, ...]) -> str:
        """The part of the dimension drawn as rows that a row covers."""
        axis = self.axes[0]
        if axis is None or not self.folded:
            return self.part_text(axis, row[0])
        return f"{row[0].part[axis][0]}:{row[-1].part[axis][1]}"

    def part_text(self, axis: int | None, cell: Cell) -> str:
        if axis is None:
            return ""
        start, stop = cell.part[axis]
        return f"{start}:{stop}" if start < stop else "empty"

    def __rich__(self) -> RenderableType:
        from shardpass.report.picture_text import rendered

        return rendered(self)

    def svg(self) -> str:
        """The picture as an SVG document."""
        from shardpass.report.picture_svg import document

        return document(self)

    def _repr_html_(self) -> str:
        from shardpass.report.picture_svg import html

        return html(self)


def picture(sharding: Sharding | str, shape: Sequence[int]) -> Picture:
    """The picture of ``sharding`` (or of its text) of an array of ``shape``.

    Raises:
        ShardingError: the text is no sharding, it is of another rank, or it has no tiles (``{unknown}``).
    """
    if isinstance(sharding, str):
        parsed = parse_sharding(sharding)
        if isinstance(parsed, TupleSharding):
            raise table.NO_TILES.error(sharding=sharding, why="it is a tuple", hint="draw its elements one by one")
        sharding = parsed
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
    return Picture(sharding, shape, (rows, columns, pages), tuple(tuple(map(tuple, page)) for page in drawn), left_out)


def show(text: str, type_text: str, *, svg: Path | None = None, console: Console | None = None) -> None:
    """Draws the sharding ``text`` of an array of type ``type_text`` (``f32[8,16]``), and writes it to ``svg``.

    Raises:
        ShardingError: the text is no sharding, the type no array type, or there is nothing to draw.
    """
    console = console or Console()
    shape = shape_of(type_text)
    parsed = parse_sharding(text)
    elements = list(parsed) if isinstance(parsed, TupleSharding) else [parsed]
    drawn = [picture(element, shape) for element in elements]
    for one in drawn:
        console.print(one)
    if svg is not None:
        for k, one in enumerate(drawn):
            path = svg if len(drawn) == 1 else svg.with_name(f"{svg.stem}-{k}{svg.suffix}")
            try:
                path.write_text(one.svg(), encoding="utf-8")
            except OSError as error:
                raise table.CANNOT_WRITE.error(path=path, reason=error.strerror) from None


def shape_of(type_text: str) -> tuple[int, ...]:
    """The shape of ``f32[8,16]`` or ``tensor<8x16xf32>``.

    Raises:
        ShardingParseError: ``type_text`` is no array type.
    """
    found = _TYPE.fullmatch(type_text)
    if found is None:
        expected, hint = "an array type", "write f32[8,16] or tensor<8x16xf32>"
        what = repr(type_text) if type_text else "nothing"
        raise fault(table.SYNTAX, type_text, 0, len(type_text), expected=expected, found=what, hint=hint)
    sizes = re.findall(r"\d+", found["list"] if found["list"] is not None else found["x"])
    return tuple(map(int, sizes))


def _folded(cells: list[Cell]) -> list[list[list[Cell]]]:
    """One page of rows; the last row may be shorter."""
    width = MOST_CELLS if len(cells) > 4 * MOST_CELLS // 2 else MOST_CELLS // 2
    return [[cells[k : k + width] for k in range(0, len(cells), width)]]


def _drawn(counts: tuple[int, ...], axis: int | None, most: int) -> int:
    return 1 if axis is None else min(counts[axis], most)


def _holders(sharding: Sharding, counts: tuple[int, ...]) -> Ints | None:
    """The devices of each tile, [tiles, copies]; None where all devices, or none that is named, hold the one tile."""
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
    for word, found in (("partial sums over", sharding.unreduced), ("manual over", sharding.manual)):
        if found and mesh is not None:
            out.append(f"{word} {', '.join(f'{a} of {mesh.ref_size(a)}' for a in found)}")
    if sharding.is_manual:
        out.append("manual: every device has an array of its own")
    elif sharding.is_unreduced:
        out.append("every device holds a summand of all of it")
    elif sharding.mesh is None and sharding.device is None:
        out.append("every device holds all of it")
    return tuple(out)
