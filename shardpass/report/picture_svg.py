"""The grid of a picture as SVG. A tile has a colour, a device its number."""

from __future__ import annotations

from shardpass.diagnostics.printable import as_html
from shardpass.report.picture_grid import Cell, Grid

CELL_WIDTH, CELL_HEIGHT, MARGIN, HEADING = 92, 40, 72, 22


def colour(number: int) -> str:
    """Return a light color for tile ``number``. Hues are a golden angle apart, so that neighbours differ strongly."""
    return f"hsl({number * 137.508 % 360:.0f},62%,{82 - 8 * (number % 3)}%)"


def document(drawn: Grid) -> str:
    """Return the picture as an SVG document."""
    pages = [_page(drawn, page, 30 + k * _page_height(drawn)) for k, page in enumerate(drawn.pages)]
    width = max(MARGIN + len(drawn.pages[0][0]) * CELL_WIDTH + 10, 9 * len(drawn.title))
    bottom = 30 + len(drawn.pages) * _page_height(drawn)
    notes = [_words(10, bottom + 14 + 16 * k, note, "start", "#555") for k, note in enumerate(drawn.left_out)]
    height = bottom + 16 * len(drawn.left_out) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="13">\n'
        f"<title>{as_html(drawn.title)}</title>\n"
        + "\n".join([_words(10, 18, drawn.title, "start", "#000"), *pages, *notes])
        + "\n</svg>\n"
    )


def _page_height(drawn: Grid) -> int:
    return len(drawn.pages[0]) * CELL_HEIGHT + 2 * HEADING


def _words(x: float, y: float, text: str, anchor: str, fill: str, size: int = 13) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}" font-size="{size}">{as_html(text)}</text>'


def _page(drawn: Grid, page: tuple[tuple[Cell, ...], ...], top: int) -> str:
    rows, columns, pages = drawn.axes
    out = []
    if pages is not None:
        out.append(_words(10, top + 12, f"dimension {pages}: {drawn.part_text(pages, page[0][0])}", "start", "#333"))
    grid = top + HEADING
    for c, cell in enumerate(page[0]):
        if columns is not None:
            x = MARGIN + (c + 0.5) * CELL_WIDTH
            out.append(_words(x, grid - 5, drawn.part_text(columns, cell), "middle", "#555", 11))
    for r, row in enumerate(page):
        y = grid + r * CELL_HEIGHT
        if rows is not None:
            out.append(_words(MARGIN - 6, y + CELL_HEIGHT / 2 + 4, drawn.row_text(row), "end", "#555", 11))
        for c, cell in enumerate(row):
            x = MARGIN + c * CELL_WIDTH
            out.append(
                f'<rect x="{x}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="{colour(cell.number)}" '
                f'stroke="#444"><title>{as_html(_tooltip(cell))}</title></rect>'
            )
            size = 13 if len(cell.names) < 12 else 10 if len(cell.names) < 16 else 8
            out.append(_words(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, cell.names, "middle", "#000", size))
    return "\n".join(out)


def _tooltip(cell: Cell) -> str:
    part = ", ".join(f"{a}:{b}" for a, b in cell.part)
    devices = ", ".join(map(str, cell.devices)) or "all"
    return f"[{part}] on devices {devices}"
