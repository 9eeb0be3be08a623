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
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.bench.peers import WAYS, Child
from tools.bench.real_programs import real_programs
from tools.bench.report import (
    cell,
    geometric_mean,
    markdown_table,
    memory_cell,
    ratio,
    ratio_cell,
    show_table,
    states,
    value,
    worst_first,
    write_between,
)

BOUND, MEMORY_BOUND = 1.2, 1.05
MARKS = ("<!-- table: tools/bench/models.py -->", "<!-- end of the table -->")


@dataclass(frozen=True, slots=True)
class Row:
    """One program; ``ways`` holds the answers of tools/bench/peers.py by way."""

    name: str
    mesh: tuple[int, ...]
    ways: dict[str, dict[str, Any]]

    def best(self, what: str) -> float | None:
        """The least of the peers that were right; None where none was."""
        found = [value(self.ways[w], what) for w in WAYS[1:] if self.ways[w]["status"] == "right"]
        return min(found, default=None)

    def ratio(self, what: str) -> float | None:
        """Ours over the better peer. None without one, where ours is not right, or where neither sends anything."""
        ours = self.ways["shardpass"]
        return ratio(value(ours, what), self.best(what)) if ours["status"] == "right" else None


# ---------------------------------------------------------------- report


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
            line += f"; above {bound}x: {worst_first([(row.name, row.ratio(what)) for row in rows], bound)}"
        lines.append(line)
    return lines + [states(way, [(row.name, row.ways[way]) for row in rows]) for way in WAYS]


def markdown(rows: Sequence[Row]) -> str:
    return markdown_table(HEADS, [cells(row) for row in rows], summary(rows))


def show(rows: Sequence[Row]) -> None:
    reasons = [
        f"{row.name}: {way}: {row.ways[way]['reason']}" for row in rows for way in WAYS if row.ways[way].get("reason")
    ]
    title = "bytes received per device / collectives; KiB of temp + output"
    show_table(title, HEADS, [cells(row) for row in rows], [*summary(rows), *reasons])


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
        write_between(Path(arguments.markdown), MARKS, markdown(rows))
    if rows:
        show(rows)
    return 0 if all(row.ways["shardpass"]["status"] == "right" for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
