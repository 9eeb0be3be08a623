"""Small tables as HTML, for notebooks: what ``_repr_html_`` of plans and shardings returns. No scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardpass.diagnostics.printable import as_html

_CELL = "text-align:{};padding:1px 8px"


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """Write a table below ``title``, with numbers aligned to the right, and ``note`` under it."""
    head = "".join(f'<th style="{_CELL.format("left")}">{as_html(word)}</th>' for word in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""
    under = f"<div>{as_html(note)}</div>" if note else ""
    return f"<div><code>{as_html(title)}</code>{table}{under}</div>"


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int) else "left"
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    return f'<td style="{_CELL.format(side)}">{as_html(shown)}</td>'
