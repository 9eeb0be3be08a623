"""The report as one HTML page without outside parts: a table that sorts, with the source lines."""

from __future__ import annotations

import html

from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.report import Report
from shardpass.report.rows import Row
from shardpass.report.text import _head, _totals, show_bytes

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


def to_html(found: Report) -> str:
    """The page. Lines of the program are quoted where ``found.sources`` allows it."""
    most = max((row.bytes_received for row in found.rows), default=0)
    rows = "\n".join(_row(number, row, most, found) for number, row in enumerate(found.rows, 1))
    heads = "".join(f"<th>{name}</th>" for name in ("#", "collective", "axes", "bytes", "array", "line", "reason"))
    first, *head = _head(found, 10_000)
    totals = "".join(f"<li>{html.escape(line)}</li>" for line in (*head, *_totals(found)))
    title = html.escape(first)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{title}</h1>\n<ul>{totals}</ul>\n"
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>\n"
        f"<script>{_SORT}</script></body></html>\n"
    )


def _row(number: int, row: Row, most: int, found: Report) -> str:
    size = show_bytes(row.bytes_received) + (f" x{row.times}" if row.times != 1 else "")
    bar = f'<span class="bar" style="width:{100 * row.bytes_received // max(most, 1)}%"></span>'
    source = found.sources.line(row.place)
    place = _place(row.place)
    line = html.escape(place) + (f'<code class="source">{html.escape(source)}</code>' if source else "")
    ways = f"{row.source or '-'} -> {row.target or '-'}" if row.source or row.target else ""
    array = " ".join(filter(None, (row.array, row.type, ways)))
    axes = f"{row.axes or '-'} ({row.group_size})"
    cells = (
        (str(number), str(number), ' class="number"'),
        (row.kind, html.escape(row.kind), ""),
        (row.axes, html.escape(axes), ""),
        (str(row.bytes_received), size + bar, ' class="number"'),
        (array, f"<code>{html.escape(array)}</code>", ""),
        (place, line, ""),
        (row.reason, html.escape(row.reason or "-"), ""),
    )
    return "<tr>" + "".join(f'<td data-key="{html.escape(k)}"{c}>{v}</td>' for k, v, c in cells) + "</tr>"


def _place(place: Place) -> str:
    return "-" if place == NOWHERE else str(place)
