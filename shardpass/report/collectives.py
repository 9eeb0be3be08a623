"""Reports of the collectives of a module: a table for the terminal, JSON, and one self-contained HTML page."""

from __future__ import annotations

import html
import io
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardpass.diagnostics import NOWHERE, Place, printable
from shardpass.ir.collectives import CollectiveUse, total_bytes
from shardpass.report.source_lines import source_line

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The collectives of one module, with its file, its devices and its mesh."""

    file: str
    devices: int
    mesh: str  # "" where the module names none
    uses: tuple[CollectiveUse, ...]

    def __str__(self) -> str:
        return text(self)

    @property
    def by_kind(self) -> dict[str, tuple[int, int]]:
        """kind -> (how many, bytes received by a device), most bytes first."""
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for use in self.uses:
            sums[use.kind][0] += 1
            sums[use.kind][1] += use.bytes_received
        ordered = sorted(sums.items(), key=lambda item: -item[1][1])
        return {kind: (count, size) for kind, (count, size) in ordered}


def show_bytes(count: int) -> str:
    """``count`` bytes with a unit, three digits or so: '48.0 KiB'."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def table(uses: Sequence[CollectiveUse], width: int | None = None) -> str:
    """A table of ``uses``, one row each, for a terminal of ``width`` columns (None: as wide as it takes)."""
    from rich.console import Console
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, header_style="")
    for name in ("#", "collective", "axes", "bytes", "line", "reason"):
        rows.add_column(name, justify="right" if name in ("#", "bytes") else "left", overflow="fold")
    for number, use in enumerate(uses, 1):
        size = show_bytes(use.bytes_received) + (" in a loop" if use.in_loop else "")
        rows.add_row(str(number), use.kind, _axes(use), size, _place(use.place), use.reason or "-")
    out = io.StringIO()
    Console(file=out, width=width or 10_000, color_system=None, markup=False, highlight=False).print(rows)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def text(found: Explanation, width: int | None = None) -> str:
    """The whole report: headline, table, totals."""
    lines = [_headline(found)]
    if found.uses:
        lines += ["", table(found.uses, width), "", *_totals(found)]
    return printable("\n".join(lines))


def to_json(found: Explanation) -> str:
    """The report as JSON. Bytes are those received by one device; places count from 1, 0 is unknown."""
    return json.dumps(
        {
            "file": found.file,
            "devices": found.devices,
            "mesh": found.mesh,
            "total_bytes_received": total_bytes(found.uses),
            "collectives": [use.as_dict() for use in found.uses],
        },
        indent=2,
    )


def _headline(found: Explanation) -> str:
    over = f" {found.mesh}" if found.mesh else ""
    where = f"{found.file}: {found.devices} device{'' if found.devices == 1 else 's'}{over}"
    if not found.uses:
        return f"{where}: no collectives"
    count = len(found.uses)
    received = show_bytes(total_bytes(found.uses))
    return f"{where}: {count} collective{'' if count == 1 else 's'}, each device receives {received}"


def _totals(found: Explanation) -> list[str]:
    lines = [f"{count} x {kind}: {show_bytes(size)}" for kind, (count, size) in found.by_kind.items()]
    if any(use.in_loop for use in found.uses):
        lines.append("What stands in a loop is counted for one time round.")
    return lines


def _axes(use: CollectiveUse) -> str:
    return f"{use.axes or '-'} ({use.group_size})" if use.kind != "collective_permute" else use.axes or "-"


def _place(place: Place) -> str:
    return "-" if place == NOWHERE else str(place)


_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d8d8d8, #444); --bar: light-dark(#9ec5fe, #2f5597); }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
th { cursor: pointer; position: sticky; top: 0; background: Canvas; } code { font-size: .9em; }
td.number { text-align: right; white-space: nowrap; }
.bar { display: block; height: .35rem; background: var(--bar); border-radius: 2px; }
.source { display: block; color: GrayText; white-space: pre-wrap; }
"""

_SORT = """
document.querySelectorAll("th").forEach((head, column) => head.addEventListener("click", () => {
  const body = document.querySelector("tbody"), key = row => row.children[column].dataset.key;
  const down = head.dataset.down = head.dataset.down === "1" ? "0" : "1";
  [...body.rows].sort((a, b) => (down === "1" ? 1 : -1) *
    key(b).localeCompare(key(a), undefined, {numeric: true})).forEach(row => body.append(row));
}));
"""


def to_html(found: Explanation, folders: Sequence[Path] | None = None) -> str:
    """The report as one HTML page without outside parts: a table that sorts, with the source lines.

    Lines are quoted from files below ``folders`` (the working directory unless said): see ``source_lines``.
    """
    folders = [Path.cwd()] if folders is None else folders
    most = max((use.bytes_received for use in found.uses), default=0)
    rows = "\n".join(_row(number, use, most, folders) for number, use in enumerate(found.uses, 1))
    heads = "".join(f"<th>{name}</th>" for name in ("#", "collective", "axes", "bytes", "tile", "line", "reason"))
    totals = "".join(f"<li>{html.escape(line)}</li>" for line in _totals(found))
    title = html.escape(_headline(found))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{title}</h1>\n<ul>{totals}</ul>\n"
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>\n"
        f"<script>{_SORT}</script></body></html>\n"
    )


def _row(number: int, use: CollectiveUse, most: int, folders: Sequence[Path]) -> str:
    size = show_bytes(use.bytes_received) + (" in a loop" if use.in_loop else "")
    bar = f'<span class="bar" style="width:{100 * use.bytes_received // max(most, 1)}%"></span>'
    source = source_line(use.place, folders)
    line = html.escape(_place(use.place)) + (f'<code class="source">{html.escape(source)}</code>' if source else "")
    tile = f"<code>{html.escape(use.operand)} &rarr; {html.escape(use.result)}</code>"
    cells = (
        (str(number), str(number), ' class="number"'),
        (use.kind, html.escape(use.kind), ""),
        (use.axes, html.escape(_axes(use)), ""),
        (str(use.bytes_received), size + bar, ' class="number"'),
        (use.operand, tile, ""),
        (_place(use.place), line, ""),
        (use.reason, html.escape(use.reason or "-"), ""),
    )
    return "<tr>" + "".join(f'<td data-key="{html.escape(k)}"{c}>{v}</td>' for k, v, c in cells) + "</tr>"
