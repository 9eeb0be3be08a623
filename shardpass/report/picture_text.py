"""The grid of a picture as tables for the terminal, with rich."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardpass.report.picture_grid import Cell, Grid

# Neighbours differ in lightness, so that people who see few colours tell them apart too.
STYLES = ("cyan", "yellow", "magenta", "green", "blue", "red", "bright_cyan", "bright_yellow", "bright_magenta",
          "bright_green", "bright_blue", "bright_red")  # fmt: skip


def rendered(drawn: Grid) -> RenderableType:
    """Return the grid as a rich renderable: a table for each page, then the sentences about parts left out."""
    parts: list[RenderableType] = [Text(drawn.title, style="bold")]
    parts += [_page(drawn, page) for page in drawn.pages]
    if drawn.left_out:
        parts.append(Text("; ".join(drawn.left_out), style="dim"))
    return Group(*parts)


def _page(drawn: Grid, page: tuple[tuple[Cell, ...], ...]) -> Table:
    rows, columns, pages = drawn.axes
    title = None if pages is None else f"dimension {pages}: {drawn.part_text(pages, page[0][0])}"
    table = Table(title=title, title_justify="left", box=box.SQUARE, show_lines=True, pad_edge=False)
    table.add_column("" if columns is None else f"dim {columns}", style="dim", no_wrap=True)
    for c, cell in enumerate(page[0]):
        heading = drawn.part_text(columns, cell) if columns is not None else "" if c else "devices"
        table.add_column(heading, justify="center", header_style="dim", overflow="fold")
    for row in page:
        label = f"dim {rows} {drawn.row_text(row)}" if rows is not None else ""
        table.add_row(label, *(Text(cell.names, style=STYLES[cell.number % len(STYLES)]) for cell in row))
    return table
