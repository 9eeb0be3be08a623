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
    """Of one program with a mistake. ``named``: the first finding is about it; ``good``: it is as good as the right
    program; ``true``: the diff saves what is said; None where there is no diff."""

    named: bool
    good: bool
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


def outcome(mistake: Mistake, right: Any) -> Outcome:
    source = with_mistake((PROGRAMS / f"{mistake.program}.py").read_text(), mistake)
    report = explained(source)
    if not report.findings:
        return Outcome(False, False, None, "no finding")
    first = report.findings[0]
    names = [one.name for one in first.annotations]
    named = any(name.startswith(about) for name in names for about in mistake.about)
    good = first.after.bytes <= right.total_bytes_received * (
        1 + NEAR
    ) + 64 and first.after.memory <= right.memory.total * (1 + NEAR)
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
    parser.add_argument("--json", metavar="FILE", help="append a line of JSON for each program")
    args = parser.parse_args(argv)
    if args.right:
        for file in sorted(PROGRAMS.glob(f"*{args.only}*.py")):
            start = time.process_time()
            found = explained(file.read_text()).findings
            words = "; ".join(code for one in found for code in one.code[:2]) or "no edit"
            print(f"{file.stem:16} {time.process_time() - start:5.1f} s  {words}", flush=True)
        return 0
    known: dict[str, Any] = {}
    for kind, mistakes in MISTAKES.items():
        for mistake in mistakes:
            if args.only not in kind and args.only not in mistake.program:
                continue
            if mistake.program not in known:
                known[mistake.program] = explained((PROGRAMS / f"{mistake.program}.py").read_text())
            found = outcome(mistake, known[mistake.program])
            marks = f"{'named' if found.named else '-':6}{'good' if found.good else '-':5}"
            told = {True: "true", False: "FALSE", None: "-"}[found.true]
            print(f"{kind[:24]:25}{mistake.program:15}{marks}{told:6}{found.words[:110]}", flush=True)
            if args.json:
                with Path(args.json).open("a") as file_out:
                    print(json.dumps({"kind": kind, "program": mistake.program, **vars(found)}), file=file_out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
