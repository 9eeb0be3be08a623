#!/usr/bin/env python
"""How long a report of XLA's program with its findings takes, beside XLA's own compile of the program.

    python -m tools.bench.findings                  two steps of a transformer, each with a mistake, 5 runs
    python -m tools.bench.findings --repeat 9

The steps are those of test/unit/advise/transformer.txt: a constraint that was left between two weights split over
`model`, and tokens `P()`. Every run does, one after the other: the report (its compile, and reading the HLO), the
findings (each edit compiled), and XLA's compile of the step with the options of `jax.jit`. The table gives medians in
seconds, and how much longer report and findings take together than the compile.
"""

from __future__ import annotations

import argparse
import os
import runpy
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import shardpass
from shardpass.ir.context import parse_module
from shardpass.runtime import compile_by_xla
from tools.bench.peers import set_devices
from tools.processes import ROOT

TEXT = ROOT / "test" / "unit" / "advise" / "transformer.txt"
CONSTRAINT = 'u = jax.lax.with_sharding_constraint(u, NamedSharding(mesh, P("data")))'
STEPS = {"a constraint left": (CONSTRAINT, 'P("data")'), "tokens P()": ("pass", "P()")}


def program(folder: Path, leftover: str, tokens: str) -> dict[str, Any]:
    """The names of a file with one of the steps."""
    file = folder / "train.py"
    file.write_text(TEXT.read_text().replace("#LEFTOVER", leftover).replace("#TOKENS", tokens))
    return runpy.run_path(str(file))


def measured(names: dict[str, Any]) -> tuple[float, float, float]:
    """Seconds of XLA's compile, of the report, and of the findings."""
    start = time.perf_counter()
    report = shardpass.explain(names["jitted"], *names["arguments"], partitioner="xla")
    middle = time.perf_counter()
    assert report.findings, "no edit saves"
    end = time.perf_counter()
    assert isinstance(report.given, bytes)
    compile_by_xla(parse_module(report.given, trusted=True), donate=True)
    return time.perf_counter() - end, middle - start, end - middle


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.bench.findings", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args(argv)
    os.environ.setdefault("SHARDPASS_MACHINE", "ideal")
    set_devices()
    folder = Path(tempfile.mkdtemp())
    programs = {name: program(folder, *parts) for name, parts in STEPS.items()}
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in programs}
    for run in range(args.repeat + 1):  # the first starts the child
        for name, names in programs.items():
            times = measured(names)
            if run:
                rows[name].append(times)
    print(f"{'':20}{'XLA':>7}{'report':>8}{'findings':>10}{'together / XLA':>16}")
    for name, some in rows.items():
        compile_, report, findings = (statistics.median(column) for column in zip(*some, strict=True))
        ratio = statistics.median((one[1] + one[2]) / one[0] for one in some)
        print(f"{name:20}{compile_:7.2f}{report:8.2f}{findings:10.2f}{ratio:16.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
