"""The price against reality: step times of several plans of one program, beside what the cost model says of them.

    python -m tools.bench.price                               every small program that runs; three plans of each
    python -m tools.bench.price models.mlp examples           those whose name begins so
    python -m tools.bench.price --count 15 --json price.json
    python -m tools.bench.price --read price.json             measure nothing: the figures of an earlier run again

Each program is planned in ways that users choose from (effort 0 or 1, constraints exact or free, the machine cpu, ideal
or h100); plans that are built alike count once. A process of its own for each program compiles its plans for 8 virtual
CPU devices and runs them in turns, waiting for every call; the time of a plan is the least of its runs. The model is
asked for the built program on the machine cpu: for its collectives, and for the work of its plan.

A model is of use where it puts plans of one program into the right order. So of the pairs of plans of one program whose
times differ by more than 15%, in the first half of their runs and in the second, the benchmark counts those whose order
the model has right (85% are asked for), and lists the others. Only a quiet machine gives figures worth keeping;
``spread`` is the median of a plan's runs over the least. On Linux, with the right to real-time priorities, ``--alone``
makes any machine quiet for as long as plans are timed.

Exits with 1 where fewer pairs than asked for are right, or a program was not measured.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from tools.bench.price_measure import Timed, measure, prepare, programs, right
from tools.bench.report import geometric_mean, show_table
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

APART, ASKED, FAR = 1.15, 0.85, 3.0
HEADS = ("program", "plan", "n", "KiB", "modelled ms", "of it sent", "measured ms", "spread", "measured/modelled")


@dataclass(frozen=True, slots=True)
class Row:
    """One program; ``reason``: why nothing was measured."""

    name: str
    plans: tuple[Timed, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two plans of one program, the slower first."""

    name: str
    slow: Timed
    fast: Timed

    @property
    def measured(self) -> float:
        return self.slow.seconds / self.fast.seconds

    @property
    def apart(self) -> bool:
        """Whether both halves of the runs tell the two apart."""
        halves = zip(self.slow.halves, self.fast.halves, strict=True)
        return self.measured > APART and all(slow > APART * fast for slow, fast in halves)

    @property
    def modelled(self) -> float:
        return self.slow.modelled / self.fast.modelled if self.fast.modelled else math.inf

    @property
    def right(self) -> bool:
        return right(self.slow.modelled, self.fast.modelled)

    def __str__(self) -> str:
        return (
            f"{self.name}: ({self.slow.way}) takes {self.measured:.2f} times as long as ({self.fast.way}), "
            f"modelled {self.modelled:.2f}"
        )


def pairs(rows: Sequence[Row]) -> list[Pair]:
    """Those whose times differ, the furthest apart first."""
    found = [
        Pair(row.name, *sorted(two, key=lambda plan: -plan.seconds))
        for row in rows
        for two in combinations(row.plans, 2)
    ]
    return sorted((pair for pair in found if pair.apart), key=lambda pair: -pair.measured)


def share(found: Sequence[Pair]) -> float:
    """Of the pairs, those whose order the model has right."""
    return sum(pair.right for pair in found) / len(found)


# ---------------------------------------------------------------- report


def cells(row: Row) -> Iterator[list[str]]:
    """A line for each plan."""
    for plan in row.plans:
        yield [
            row.name,
            plan.way,
            str(plan.collectives),
            f"{plan.bytes / 1024:.0f}",
            f"{plan.modelled * 1e3:.3f}",
            f"{plan.communication * 1e3:.3f}",
            f"{plan.seconds * 1e3:.3f}",
            f"{plan.median / plan.seconds:.2f}",
            f"{plan.seconds / plan.modelled:.2f}" if plan.modelled else "-",
        ]


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The criterion, how far the model is off, and what it has wrong."""
    found, measured = pairs(rows), [row for row in rows if row.plans]
    plans = [(row.name, plan) for row in measured for plan in row.plans]
    yield f"{len(measured)} programs, {len(plans)} plans"
    if plans:
        yield f"spread: {median(plan.median / plan.seconds for _, plan in plans):.2f} in the median over plans"
    if found:
        yield (
            f"pairs of one program that differ by more than {APART - 1:.0%}: {len(found)}; the model has the order of "
            f"{sum(pair.right for pair in found)} ({share(found):.0%}; {ASKED:.0%} are asked for)"
        )
    else:
        yield f"no pair of plans of one program differs by more than {APART - 1:.0%}"
    ratios = [(name, plan, plan.seconds / plan.modelled) for name, plan in plans if plan.modelled]
    mean = geometric_mean([ratio for _, _, ratio in ratios])
    far = sorted(
        (row for row in ratios if not mean / FAR < row[2] < mean * FAR), key=lambda row: -abs(math.log(row[2]))
    )
    yield f"measured over modelled: {mean:.2f} in geometric mean; further from that than {FAR:.0f} times: {len(far)}"
    for name, plan, ratio in far:
        yield f"  {name} ({plan.way}): {ratio:.2f}"
    wrong = [pair for pair in found if not pair.right]
    yield f"in the wrong order: {len(wrong)}"
    yield from (f"  {pair}" for pair in wrong)
    yield from (f"{row.name}: not measured: {row.reason}" for row in rows if row.reason)


def passed(rows: Sequence[Row]) -> bool:
    found = pairs(rows)
    return all(not row.reason for row in rows) and (not found or share(found) >= ASKED)


# ---------------------------------------------------------------- measuring


def serve() -> None:
    """Answers each JSON line ``[name, plans, runs, seconds, alone]`` on stdin with one line on stdout."""
    prepare()
    for line in sys.stdin:
        name, *how = json.loads(line)
        try:
            answer({"plans": [asdict(plan) for plan in measure(name, *how)]})
        except Exception as error:
            answer({"reason": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:300]})


def row_of(data: dict[str, Any]) -> Row:
    """What --json wrote of a program, or a child answered. Raises KeyError or TypeError where it did not."""
    return Row(data["name"], tuple(_timed(plan) for plan in data.get("plans", ())), data.get("reason", ""))


def _timed(data: dict[str, Any]) -> Timed:
    return Timed(**{**data, "halves": tuple(data["halves"])})


def ask(names: Sequence[str], plans: int, runs: int, seconds: float, alone: bool) -> list[Row]:
    """A fresh child for each program. Ctrl-C ends with what there is."""
    from rich.progress import track

    rows: list[Row] = []
    try:
        for name in track(names, "programs", disable=not sys.stderr.isatty()):
            child = JsonChild(module_command("tools.bench.price", "--serve"), environment(), 600)
            try:
                rows.append(row_of({"name": name, **child.ask([name, plans, runs, seconds, alone])}))
            except ChildFailed as failure:
                rows.append(Row(name, reason=str(failure)))
            finally:
                child.close()
            if not sys.stderr.isatty():
                for line in cells(rows[-1]):
                    print(" | ".join(line), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(names)} programs", file=sys.stderr)
    return rows


def drawn(names: Sequence[str], count: int | None) -> list[str]:
    """``count`` of the names, always the same; all of them where no count is given."""
    if count is None or count >= len(names):
        return list(names)
    kept = set(Random(0).sample(list(names), count))
    return [name for name in names if name in kept]


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names, such as models.mlp; default: all")
    parser.add_argument("--count", type=int, metavar="N", help="only so many of them, always the same")
    parser.add_argument("--plans", type=int, default=3, metavar="N", help="plans of each program (default 3)")
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="least runs of each plan (default 15)")
    parser.add_argument("--seconds", type=float, default=5, metavar="S", help="least time for a program's (default 5)")
    parser.add_argument("--alone", action="store_true", help="time ahead of all other processes; keep it short")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    parser.add_argument("--read", type=Path, metavar="FILE", help="measure nothing, and show what --json wrote")
    parser.add_argument("--list", action="store_true", help="list the programs and end")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 where fewer pairs than asked for are right, or a program was not measured."""
    parser = options()
    arguments = parser.parse_args(argv)
    if arguments.serve:
        serve()
        return 0
    wanted = tuple(arguments.programs)
    names = drawn([name for name in programs() if not wanted or name.startswith(wanted)], arguments.count)
    if not names:
        parser.error(f"no program is named {' or '.join(wanted)}; --list names them")
    if arguments.list:
        print(*names, sep="\n")
        return 0
    if arguments.read:
        try:
            rows = [row_of(data) for data in json.loads(arguments.read.read_text())]
        except (OSError, ValueError, KeyError, TypeError) as error:
            parser.error(f"--read: {error}")
    else:
        rows = ask(names, max(arguments.plans, 1), max(arguments.runs, 1), arguments.seconds, arguments.alone)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    show_table(
        "plans as modelled and as measured", HEADS, [line for row in rows for line in cells(row)], [*summary(rows)]
    )
    return 0 if passed(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
