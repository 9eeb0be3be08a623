"""Draw the tiles of a sharding as a grid for notebooks, with the devices of each tile in the first two dimensions.

Example: rows over 'x'=2 and columns over 'y'=2 are the grid 0 1 / 2 3.
"""

from __future__ import annotations

from shardpass.html_table import html_table
from shardpass.sharding.digits import Ints

MOST_TILES, MOST_DEVICES = 16, 256  # along a dimension; of all


def grid_html(title: str, index: Ints | None) -> str:
    """Draw ``title`` above the grid of ``index`` [devices, rank], the tile of each device; if None, only the title."""
    if index is None or not 0 < len(index) <= MOST_DEVICES or not index.shape[1]:
        return html_table(title, (), ())
    rank = index.shape[1]
    rows, columns = int(index[:, 0].max()) + 1, int(index[:, 1].max()) + 1 if rank > 1 else 1
    if max(rows, columns) > MOST_TILES:
        return html_table(title, (), (), f"{rows} x {columns} tiles")
    cells: dict[tuple[int, int], list[str]] = {}
    for device, tile in enumerate(index.tolist()):
        if not any(tile[2:]):
            cells.setdefault((tile[0], tile[1] if rank > 1 else 0), []).append(str(device))
    shown = [[" ".join(cells.get((row, column), ())) for column in range(columns)] for row in range(rows)]
    note = "devices that hold each tile" + (", at the start of all dimensions but two" if rank > 2 else "")
    return html_table(title, (), shown, note)
