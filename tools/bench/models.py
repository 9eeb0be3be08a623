#!/usr/bin/env python
"""Real programs: what shardpass, XLA's partitioner and Shardy's passes send between devices, in one table.

    python -m tools.bench.models                              every program of test/integration/models
    python -m tools.bench.models mlp transformer_fsdp         those whose name or family begins so
    python -m tools.bench.models --json out.json --markdown docs/models.md
    python -m tools.bench.models unet --add out.json          one again, in the table of all

Bytes received per device and number of collectives are read from the compiled HLO of all three by one counter
(tools/bench/hlo_traffic.py); memory is temp + output bytes of XLA's compiled stats; each program runs and is compared
with one device. Ratios are ours over the better of the peers that were right. Child processes do the work: a peer
that ends one fails on that program alone. Ctrl-C reports what was measured until then.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.bench.peers import WAYS, Child
from tools.bench.real_programs import real_programs

BOUND, MEMORY_BOUND = 1.2, 1.05
CLAMP = 10.0  # a ratio in a geometric mean is held between its inverse and this
MARKS = ("<!-- table: tools/bench/models.py -->", "<!-- end of the table -->")


@dataclass(frozen=True, slots=True)
class Row:
    """One program; ``ways`` holds the answers of tools/bench/peers.py by way."""

    name: str
    mesh: tuple[int, ...]
    ways: dict[str, dict[str, Any]]

    def best(self, what: str) -> float | None:
        """The least of the peers that were right; None where none was."""
        found = [_value(self.ways[w], what) for w in WAYS[1:] if self.ways[w]["status"] == "right"]
        return min(found, default=None)

    def ratio(self, what: str) -> float | None:
        """Ours over the better peer. None without one, where ours is not right, or where neither sends anything."""
        ours, best = self.ways["shardpass"], self.best(what)
        if ours["status"] != "right" or best is None:
            return None
        mine = _value(ours, what)
        if mine == best:
            return 1.0 if mine else None
        return math.inf if best == 0 else mine / best


def _value(answer: dict[str, Any], what: str) -> float:
    return float(answer["temp"] + answer["output"] if what == "memory" else answer[what])


def geometric_mean(ratios: Sequence[float]) -> float:
    """Each ratio counts as at most CLAMP and at least its inverse: nothing against something must not decide alone."""
    logs = [math.log(min(max(ratio, 1 / CLAMP), CLAMP)) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


# ---------------------------------------------------------------- report


def cell(answer: dict[str, Any]) -> str:
    """'1024 / 3': bytes and collectives; or 'wrong', 'fails'."""
    if answer["status"] != "right":
        return str(answer["status"])
    return f"{answer['bytes']} / {answer['collectives']}" + ("*" if answer["unknown_loops"] else "")


def memory_cell(answer: dict[str, Any]) -> str:
    return f"{_value(answer, 'memory') / 1024:.1f}" if answer["status"] == "right" else "-"


def ratio_cell(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return "new" if math.isinf(ratio) else f"{ratio:.2f}"


def cells(row: Row) -> list[str]:
    return [
        row.name,
        "x".join(map(str, row.mesh)),
        *(cell(row.ways[w]) for w in WAYS),
        ratio_cell(row.ratio("bytes")),
        *(memory_cell(row.ways[w]) for w in WAYS),
        ratio_cell(row.ratio("memory")),
    ]


HEADS = ("program", "mesh", *WAYS, "ratio", *(f"KiB {w}" for w in WAYS), "ratio")


def summary(rows: Sequence[Row]) -> list[str]:
    """Means, the worst programs, and who was not right."""
    lines = []
    for what, bound in (("bytes", BOUND), ("collectives", None), ("memory", MEMORY_BOUND)):
        ratios = [r for row in rows if (r := row.ratio(what)) is not None]
        mean = geometric_mean(ratios)
        line = f"{what}: geometric mean of ours over the better peer {mean:.3f} over {len(ratios)} programs"
        if bound is not None:
            worse = sorted(((r, row.name) for row in rows if (r := row.ratio(what) or 0) > bound), reverse=True)
            told = ", ".join(f"{name} {ratio_cell(r)}" for r, name in worse) or "none"
            line += f"; above {bound}x: {told}"
        lines.append(line)
    for way in WAYS:
        states = [row.ways[way]["status"] for row in rows]
        bad = ", ".join(f"{row.name} ({row.ways[way]['status']})" for row in rows if row.ways[way]["status"] != "right")
        lines.append(f"{way}: right on {states.count('right')} of {len(rows)}" + (f"; not on {bad}" if bad else ""))
    return lines


def markdown(rows: Sequence[Row]) -> str:
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"- {line}" for line in summary(rows))])


def write_into(path: Path, rows: Sequence[Row]) -> None:
    """Puts the table between the marks of a page; a page without marks gets them at its end."""
    page = path.read_text() if path.exists() else ""
    block = f"{MARKS[0]}\n\n{markdown(rows)}\n\n{MARKS[1]}"
    between = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    page = between.sub(lambda _: block, page) if between.search(page) else f"{page.rstrip()}\n\n{block}\n"
    path.write_text(page)


def show(rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, title="bytes received per device / collectives; KiB of temp + output")
    for index, head in enumerate(HEADS):
        table.add_column(head, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*cells(row))
    console.print(table)
    for line in summary(rows):
        console.print(line, markup=False, highlight=False)
    for row in rows:
        for way in WAYS:
            if row.ways[way].get("reason"):
                console.print(f"{row.name}: {way}: {row.ways[way]['reason']}", markup=False, highlight=False)


# ---------------------------------------------------------------- measuring


def read_rows(path: str) -> list[Row]:
    """What --json wrote. Raises OSError, ValueError or KeyError where it did not."""
    return [Row(r["name"], tuple(r["mesh"]), r["ways"]) for r in json.loads(Path(path).read_text())]


def merged(new: Sequence[Row], earlier: Sequence[Row]) -> list[Row]:
    """One row a program, the newest, in the order of the programs."""

    found = {row.name: row for row in (*earlier, *new)}
    return [found[name] for name in real_programs() if name in found]


def measure(names: Sequence[str]) -> list[Row]:
    """Asks a child for each program and way. Ctrl-C ends it with what there is."""
    from rich.progress import track

    rows: list[Row] = []
    child = Child()
    try:
        for name in track(names, "programs", disable=not sys.stderr.isatty()):
            ways = {way: child.ask(name, way) for way in WAYS}
            rows.append(Row(name, real_programs()[name].mesh, ways))
            if not sys.stderr.isatty():
                print(f"{name}: " + ", ".join(f"{w} {cell(a)}" for w, a in ways.items()), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(names)} programs", file=sys.stderr)
    finally:
        child.close()
    return rows


def main() -> int:

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names or families; default: all")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument(
        "--add", metavar="FILE", action="append", default=[], help="take programs not measured now from here"
    )
    parser.add_argument("--markdown", metavar="FILE", help="put the table into this page, between its marks")
    parser.add_argument("--table", action="store_true", help="measure nothing, only show what --add names")
    parser.add_argument("--list", action="store_true", help="list the programs and end")
    arguments = parser.parse_args()
    wanted = tuple(arguments.programs)
    chosen = [
        p for p in real_programs().values() if not wanted or p.name.startswith(wanted) or p.family.startswith(wanted)
    ]
    if not chosen:
        parser.error(f"no program is named {' or '.join(wanted)}; --list names them")
    for p in chosen:
        if arguments.list:
            print(f"{p.name:32} {'x'.join(map(str, p.mesh)):6} {p.summary}")
        elif not p.available:
            print(f"{p.name}: left out, {p.needs} is not installed", file=sys.stderr)
    if arguments.list:
        return 0
    try:
        earlier = [row for path in arguments.add for row in read_rows(path)]
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"--add: {error}")
    rows = merged(measure([p.name for p in chosen if p.available and not arguments.table]), earlier)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if rows and arguments.markdown:
        write_into(Path(arguments.markdown), rows)
    if rows:
        show(rows)
    return 0 if all(row.ways["shardpass"]["status"] == "right" for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
