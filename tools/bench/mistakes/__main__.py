"""Runs the mistakes, a line each; see the package."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import shardpass
from shardpass.report.findings import Finding
from tools.bench.mistakes.table import MISTAKES, Mistake
from tools.bench.unified_diff import applied

PROGRAMS = Path(__file__).parent / "programs"
NEAR = 0.02


@dataclass(frozen=True)
class Outcome:
    """Of one program.

    ``named``: the first finding is about the mistake; ``good``: else, whether the program with the finding receives and
    holds no more than the right one; ``true``: the findings with a diff whose diff saves what the finding says, of
    ``diffs`` such findings.
    """

    named: bool
    good: bool
    true: int
    diffs: int
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


@cache
def right(program: str) -> Any:
    """The report of the program without a mistake."""
    return explained((PROGRAMS / f"{program}.py").read_text())


def outcome(mistake: Mistake) -> Outcome:
    """What the findings about a program with ``mistake`` are worth."""
    source = with_mistake((PROGRAMS / f"{mistake.program}.py").read_text(), mistake)
    report = explained(source)
    if not report.findings:
        return Outcome(False, False, 0, 0, "no edit")
    first = report.findings[0]
    names = [one.name for one in first.annotations]
    named = any(name.startswith(about) for name in names for about in mistake.about)
    good = False
    if not named:
        aim = right(mistake.program)
        fewer = first.after.bytes <= aim.total_bytes_received * (1 + NEAR) + 64
        good = fewer and first.after.memory <= aim.memory.total * (1 + NEAR)
    return Outcome(named, good, *checked(source, report.findings), words_of(report.findings[:1]))


def checked(source: str, findings: Sequence[Finding]) -> tuple[int, int]:
    """How many findings save what they say, and how many have a diff: each diff is applied to the source before it."""
    true = diffs = 0
    for one in findings:
        if not one.diff:
            break  # those after it are on top of it
        source, diffs = applied(source, one.diff), diffs + 1
        edited = explained(source)
        same = _near(edited.total_bytes_received, one.after.bytes) and _near(edited.memory.total, one.after.memory)
        true += same
    return true, diffs


def words_of(findings: Sequence[Finding]) -> str:
    """The edits in JAX's text."""
    return "; ".join(code for one in findings for code in one.code) or "no edit"


def _near(one: int, other: int) -> bool:
    return abs(one - other) <= NEAR * max(one, other)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.mistakes", description=__doc__)
    parser.add_argument("--only", default="", help="kinds or programs with this in their names")
    parser.add_argument("--right", action="store_true", help="programs without mistakes")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N programs")
    parser.add_argument("--json", metavar="FILE", help="append a line of JSON for each program")
    args = parser.parse_args(argv)
    os.environ.setdefault("SHARDPASS_MACHINE", "ideal")  # the programs are small: a real machine sees latency alone
    if args.right:
        for file in sorted(file for file in PROGRAMS.glob("*.py") if args.only in file.stem)[args.skip :]:
            found = right(file.stem).findings
            true, diffs = checked(file.read_text(), found)
            print(f"{file.stem:16}{true}/{diffs} of {len(found)}  {words_of(found)[:110]}", flush=True)
        return 0
    most = max(map(len, MISTAKES.values()))
    rows = [(kind, some[place]) for place in range(most) for kind, some in MISTAKES.items() if place < len(some)]
    for kind, mistake in rows[args.skip :]:  # one of each kind first
        if args.only not in kind and args.only not in mistake.program:
            continue
        found = outcome(mistake)
        marks = "named" if found.named else "good" if found.good else "-"
        kept = f"{found.true}/{found.diffs}"
        print(f"{kind[:24]:25}{mistake.program:15}{marks:6}{kept:5}{found.words[:110]}", flush=True)
        if args.json:
            with Path(args.json).open("a") as file_out:
                print(json.dumps({"kind": kind, "program": mistake.program, **vars(found)}), file=file_out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
