"""Runs the mistakes, a line each; see the package."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shardpass
from tools.bench.mistakes.table import MISTAKES, Mistake
from tools.bench.unified_diff import applied

PROGRAMS = Path(__file__).parent / "programs"
NEAR = 0.02


@dataclass(frozen=True)
class Outcome:
    """Of one program with a mistake.

    ``named``: the first finding is about the mistake; ``good``: else, whether the program with the finding receives and
    holds no more than the right one; ``true``: the diff saves what the finding says; None where there is no diff.
    """

    named: bool
    good: bool | None
    true: bool | None
    words: str


def explained(source: str) -> Any:
    """The report of ``jitted`` in a file of that source, by XLA."""
    folder = Path(tempfile.mkdtemp())
    file = folder / "train.py"
    file.write_text(source)
    module = runpy.run_path(str(file))
    return shardpass.explain(module["jitted"], *module["arguments"], partitioner="xla")


def with_mistake(source: str, mistake: Mistake) -> str:
    """The source with the mistake. Raises ValueError where the program is another than the table says."""
    for old, new in mistake.swaps:
        if source.count(old) != 1:
            raise ValueError(f"{mistake.program}: {old!r} stands there {source.count(old)} times")
        source = source.replace(old, new)
    return source


def outcome(mistake: Mistake) -> Outcome:
    """What the findings about a program with ``mistake`` are worth."""
    right_source = (PROGRAMS / f"{mistake.program}.py").read_text()
    source = with_mistake(right_source, mistake)
    report = explained(source)
    if not report.findings:
        return Outcome(False, None, None, "no finding")
    first = report.findings[0]
    names = [one.name for one in first.annotations]
    named = any(name.startswith(about) for name in names for about in mistake.about)
    good = None
    if not named:
        right = explained(right_source)
        fewer = first.after.bytes <= right.total_bytes_received * (1 + NEAR) + 64
        good = fewer and first.after.memory <= right.memory.total * (1 + NEAR)
    true = None
    if first.diff:
        edited = explained(applied(source, first.diff))
        true = _near(edited.total_bytes_received, first.after.bytes) and _near(edited.memory.total, first.after.memory)
    return Outcome(named, good, true, "; ".join(first.code))


def _near(one: int, other: int) -> bool:
    return abs(one - other) <= NEAR * max(one, other)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.mistakes", description=__doc__)
    parser.add_argument("--only", default="", help="kinds or programs with this in their names")
    parser.add_argument("--right", action="store_true", help="programs without mistakes")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N programs")
    parser.add_argument("--json", metavar="FILE", help="append a line of JSON for each program")
    args = parser.parse_args(argv)
    if args.right:
        for file in sorted(file for file in PROGRAMS.glob("*.py") if args.only in file.stem):
            start = time.process_time()
            found = explained(file.read_text()).findings
            words = "; ".join(code for one in found for code in one.code[:2]) or "no edit"
            print(f"{file.stem:16} {time.process_time() - start:5.1f} s  {words}", flush=True)
        return 0
    most = max(map(len, MISTAKES.values()))
    rows = [(kind, some[place]) for place in range(most) for kind, some in MISTAKES.items() if place < len(some)]
    for kind, mistake in rows[args.skip :]:  # one of each kind first
        if args.only not in kind and args.only not in mistake.program:
            continue
        found = outcome(mistake)
        marks = "named" if found.named else "good" if found.good else "-"
        told = {True: "true", False: "FALSE", None: "-"}[found.true]
        print(f"{kind[:24]:25}{mistake.program:15}{marks:6}{told:6}{found.words[:110]}", flush=True)
        if args.json:
            with Path(args.json).open("a") as file_out:
                print(json.dumps({"kind": kind, "program": mistake.program, **vars(found)}), file=file_out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
