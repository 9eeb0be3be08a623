"""Pictures of a sharding: the devices of each tile (in the style of figures 1 and 4 of Rink et al.).

rich prints a picture in the terminal; in Jupyter the value of ``picture(sharding, shape)`` draws itself; ``.svg()``
returns a document.
Only dimensions that are split are drawn. A picture says what it leaves out for lack of room.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from shardpass.diagnostics import table_sharding as table
from shardpass.diagnostics.arguments import has, wrong_argument
from shardpass.report import picture_svg, picture_text
from shardpass.report.picture_grid import Cell, Grid, grid_of
from shardpass.sharding import Sharding, TupleSharding, parse_sharding
from shardpass.sharding.errors import fault

if TYPE_CHECKING:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

WIDTH = 120  # of a picture as text
_TYPE = re.compile(
    r"\s*(?:[a-z]\w*\s*\[\s*(?P<list>[\d\s,]*)\]|tensor<\s*(?P<x>(?:\d+\s*x\s*)*)[a-z]\w*\s*>)\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A grid of tiles that draws itself: in a terminal with rich, and in notebooks and files as SVG."""

    grid: Grid

    @property
    def pages(self) -> tuple[tuple[tuple[Cell, ...], ...], ...]:
        """``pages[p][r][c]`` is a cell."""
        return self.grid.pages

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the sentences about the parts that are not drawn."""
        return self.grid.left_out

    def __rich__(self) -> RenderableType:
        return picture_text.rendered(self.grid)

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        return picture_svg.document(self.grid)

    def _repr_svg_(self) -> str:
        """Show the picture in notebooks."""
        return self.svg()

    def __str__(self) -> str:
        console = Console(width=WIDTH, no_color=True)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip("\n")


def draw(
    x: jax.Array | str | Sharding | NamedSharding | PartitionSpec,
    shape: Sequence[int] | None = None,
    *,
    mesh: Any = None,
) -> Picture:
    """Draw the devices that hold each tile of an array. Print the result, or display it in a notebook.

    Args:
        x: a ``jax.Array``; or a sharding: a ``Sharding``, its text, a ``jax.sharding.NamedSharding``, or a
            ``PartitionSpec`` with ``mesh``.
        shape: the shape of the array; required unless ``x`` is an array.
        mesh: the mesh of a ``PartitionSpec``, as in ``parse_sharding``.

    Raises:
        ShardpassError: SP140 without a shape, and the errors of ``parse_sharding`` and ``picture``.
    """
    given: Any = x
    if has(given, "sharding"):
        shape = given.shape if shape is None and has(given, "shape") else shape
        given = given.sharding
    if shape is None:
        raise wrong_argument("draw", "shape", shape, "the shape of the array, such as (8, 16)")
    if isinstance(given, Sharding):
        return picture(given, shape)
    parsed = parse_sharding(given, mesh)
    if isinstance(parsed, TupleSharding):
        raise table.NO_TILES.error(sharding=given, why="it is a tuple", hint="draw its elements one by one")
    return picture(parsed, shape)


def picture(sharding: Sharding | str, shape: Sequence[int]) -> Picture:
    """Draw ``sharding`` (or its text) of an array of ``shape``.

    Raises:
        ShardingError: the text is no sharding, it is of another rank, or it has no tiles (``{unknown}``).
    """
    if isinstance(sharding, str):
        parsed = parse_sharding(sharding)
        if isinstance(parsed, TupleSharding):
            raise table.NO_TILES.error(sharding=sharding, why="it is a tuple", hint="draw its elements one by one")
        sharding = parsed
    return Picture(grid_of(sharding, shape))


def pictures_of(text: str, type_text: str) -> list[Picture]:
    """Draw the sharding ``text`` of an array of type ``type_text`` (``f32[8,16]``); a tuple gives several pictures.

    Raises:
        ShardingError: the text is no sharding, the type no array type, or there is nothing to draw.
    """
    shape = shape_of(type_text)
    parsed = parse_sharding(text)
    elements = list(parsed) if isinstance(parsed, TupleSharding) else [parsed]
    return [picture(element, shape) for element in elements]


def files_for(file: Path, count: int) -> list[Path]:
    """Return a file for each of ``count`` pictures: ``a.svg``, or ``a-0.svg`` and on where there are several."""
    return [file] if count == 1 else [file.with_name(f"{file.stem}-{k}{file.suffix}") for k in range(count)]


def shape_of(type_text: str) -> tuple[int, ...]:
    """Read the shape of ``f32[8,16]`` or ``tensor<8x16xf32>``.

    Raises:
        ShardingParseError: ``type_text`` is no array type.
    """
    match = _TYPE.fullmatch(type_text)
    if match is None:
        expected, hint = "an array type", "write f32[8,16] or tensor<8x16xf32>"
        what = repr(type_text) if type_text else "nothing"
        raise fault(table.SYNTAX, type_text, 0, len(type_text), expected=expected, found=what, hint=hint)
    sizes = re.findall(r"\d+", match["list"] if match["list"] is not None else match["x"])
    return tuple(map(int, sizes))
