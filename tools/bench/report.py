"""What the tables of tools/bench/models.py and tools/bench/underspecified.py share: cells, means, pages, the console.

An answer is what tools/bench/peers.py measured of one program in one way.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

CLAMP = 10.0  # a ratio in a geometric mean is held between its inverse and this
RIGHT = "right"
WIDTH = 240  # of a table in a file


def value(answer: dict[str, Any], what: str) -> float:
    """Of "memory" the temporaries and outputs, else the entry of that name."""
    return float(answer["temp"] + answer["output"] if what == "memory" else answer[what])


def ratio(ours: float, other: float | None) -> float | None:
    """``ours`` over ``other``. None without another, or where neither is anything."""
    if other is None:
        return None
    if ours == other:
        return 1.0 if ours else None
    return math.inf if other == 0 else ours / other


def geometric_mean(ratios: Sequence[float]) -> float:
    """Each ratio counts as at most CLAMP and at least its inverse: nothing against something must not decide alone."""
    logs = [math.log(min(max(ratio, 1 / CLAMP), CLAMP)) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def cell(answer: dict[str, Any]) -> str:
    """'1024 / 3': bytes and collectives; or 'wrong', 'fails'."""
    if answer["status"] != RIGHT:
        return str(answer["status"])
    return f"{answer['bytes']} / {answer['collectives']}" + ("*" if answer["unknown_loops"] else "")


def memory_cell(answer: dict[str, Any]) -> str:
    return f"{value(answer, 'memory') / 1024:.1f}" if answer["status"] == RIGHT else "-"


def ratio_cell(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return "new" if math.isinf(ratio) else f"{ratio:.2f}"


def worst_first(ratios: Iterable[tuple[str, float | None]], bound: float) -> str:
    """'a 3.00, b 1.30': those above ``bound``; 'none' where there is none."""
    above = sorted(((ratio, name) for name, ratio in ratios if ratio is not None and ratio > bound), reverse=True)
    return ", ".join(f"{name} {ratio_cell(ratio)}" for ratio, name in above) or "none"


def states(way: str, named: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """How many answers of ``way`` are right, and which are not."""
    bad = ", ".join(f"{name} ({answer['status']})" for name, answer in named if answer["status"] != RIGHT)
    right = sum(answer["status"] == RIGHT for _, answer in named)
    return f"{way}: right on {right} of {len(named)}" + (f"; not on {bad}" if bad else "")


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    """The table, and ``lines`` as a list below it."""
    table = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*table, "", *(f"- {line}" for line in lines)])


def write_between(path: Path, marks: tuple[str, str], text: str) -> None:
    """Puts ``text`` between the marks of a page; a page without marks gets them at its end."""
    page = path.read_text() if path.exists() else ""
    block = f"{marks[0]}\n\n{text}\n\n{marks[1]}"
    between = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), re.DOTALL)
    page = between.sub(lambda _: block, page) if between.search(page) else f"{page.rstrip()}\n\n{block}\n"
    path.write_text(page)


def show_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str]) -> None:
    """The table and then ``lines``, on the console."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    table = Table(box=None, title=title)
    for index, head in enumerate(heads):
        table.add_column(head, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in lines:
        console.print(line, markup=False, highlight=False)
