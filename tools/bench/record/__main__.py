"""Public measurements of two shardings, beside the modelled ratio of the same two forms of a small program.

    python -m tools.bench.record                            all of record.toml
    python -m tools.bench.record deferred decode            those whose names begin so
    python -m tools.bench.record --markdown docs/cost.md    the table, put into the page

Each form is planned as it is annotated (effort 0) for the machine that was measured, or its nearest relative, and
built; its time is its schedule's. The rank is right where the model and the measurement agree on which form is faster.
Exits with 1 where fewer than 17 ranks of all are.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.expert_programs import lowered
from tools.bench.record.programs import made
from tools.bench.report import geometric_mean, markdown_table, show_table, write_between

HEADS = ("measured", "machine", "before", "after", "after/before", "modelled", "rank")
MARKS = ("<!-- table: tools/bench/record -->", "<!-- end of the table -->")
RIGHT = 17
SAME = 5e-3  # a modelled difference below it ranks nothing


@dataclass(frozen=True, slots=True)
class Row:
    """A measurement: ``published`` and ``modelled`` are times after over before."""

    entry: Mapping[str, Any]
    published: float
    modelled: float

    @property
    def right(self) -> bool:
        return (self.published < 1) == (self.modelled < 1) and abs(self.modelled - 1) > SAME


def row(entry: Mapping[str, Any]) -> Row:
    """Return the modelled ratio of an entry of record.toml beside its own."""
    import shardpass

    kinds = entry.get("kinds") or [entry["kind"]] * 2
    seconds = []
    for kind, fields in zip(kinds, entry["forms"], strict=True):
        form = made(kind, {**entry.get("common", {}), **fields})
        schedule = shardpass.explain(lowered(form), machine=entry["machine"], effort=0).schedule
        assert schedule is not None
        seconds.append(schedule.seconds)
    ratio = entry["after"] / entry["before"]
    return Row(entry, 1 / ratio if entry["unit"].endswith("/s") else ratio, seconds[1] / seconds[0])


def cells(one: Row, linked: bool) -> list[str]:
    """Return a line of the table."""
    entry = one.entry
    name = f"[{entry['about']}]({entry['link']})" if linked else entry["name"]
    figures = (f"{entry[which]:g} {entry['unit']}" for which in ("before", "after"))
    return [
        *(name, entry["machine"], *figures, f"{one.published:.2f}", f"{one.modelled:.2f}"),
        "right" if one.right else "wrong",
    ]


def summary(rows: Sequence[Row]) -> list[str]:
    """Return how many ranks are right, and the mean ratios."""
    right = sum(one.right for one in rows)
    means = (geometric_mean([getattr(one, name) for one in rows]) for name in ("published", "modelled"))
    measured, modelled = means
    return [f"{right} of {len(rows)} ranks are right; after/before {measured:.2f} measured, {modelled:.2f} modelled"]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 where fewer than 17 ranks of all are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table into this page, between its marks")
    arguments = parser.parse_args(argv)
    entries = tomllib.loads((Path(__file__).parent / "record.toml").read_text())["measured"]
    chosen = [entry for entry in entries if entry["name"].startswith(tuple(arguments.names) or "")]
    if not chosen:
        parser.error(f"no measurement is named {' or '.join(arguments.names)}")
    rows = []
    for entry in chosen:
        rows.append(row(entry))
        print(*cells(rows[-1], linked=False), sep="  ", file=sys.stderr, flush=True)
    if arguments.markdown:
        table = markdown_table(HEADS, [cells(one, linked=True) for one in rows], summary(rows))
        write_between(arguments.markdown, MARKS, table)
    show_table("public measurements", HEADS, [cells(one, linked=False) for one in rows], summary(rows))
    return int(sum(one.right for one in rows) < RIGHT and len(rows) == len(entries))


if __name__ == "__main__":
    sys.exit(main())
