"""Runs the programs, a line each; see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import jax

import shardpass
from tools.bench.explicit_reshards import plain
from tools.bench.explicit_reshards.cases import PROGRAMS, Program, lines_of, mesh

if find_spec("flax"):
    from tools.bench.explicit_reshards import with_nnx  # noqa: F401

assert plain


@dataclass(frozen=True)
class Outcome:
    """The marked lines without a finding, and the lines of findings that are not marked."""

    missed: tuple[int, ...]
    wrong: tuple[int, ...]
    findings: Any


def outcome(program: Program, partitioner: str = "shardpass") -> Outcome:
    over = mesh()
    with jax.set_mesh(over):
        function, arguments = program.make(over)
        findings = shardpass.explain(function, *arguments, partitioner=partitioner).findings or ()
    known = {line: lines_of(program.file, line) for line in program.lines}
    about = [annotation.place for one in findings for annotation in one.annotations]
    found = [place.line for place in about if place.file == program.file]
    missed = tuple(line for line, rows in known.items() if not any(one in rows for one in found))
    wrong = [place.line for place in about if not any(place.line in rows for rows in known.values())]
    return Outcome(missed, tuple(sorted(set(wrong))), findings)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PART", help="programs whose name has it")
    parser.add_argument("--partitioner", choices=("shardpass", "xla"), default="shardpass")
    parser.add_argument("--diffs", action="store_true", help="print the edits")
    args = parser.parse_args(argv)
    jax.config.update("jax_num_cpu_devices", 8)
    chosen = [one for name, one in PROGRAMS.items() if args.only in name]
    counts = [0, 0]
    for one in chosen:
        got = outcome(one, args.partitioner)
        saved = sum(finding.before.bytes - finding.after.bytes for finding in got.findings)
        words = "found" if not got.missed else f"missed line {', '.join(map(str, got.missed))}"
        words += f", wrong at line {', '.join(map(str, got.wrong))}" if got.wrong else ""
        print(f"{one.name:36} {words}, saves {saved} B", flush=True)
        if args.diffs:
            for finding in got.findings:
                print(finding.sentence, finding.diff, sep="\n")
        counts[0] += not got.missed
        counts[1] += bool(got.wrong)
    print(f"{counts[0]} of {len(chosen)} found; wrong findings in {counts[1]}")
    return int(counts[0] < len(chosen) or counts[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
