#!/usr/bin/env python
"""The account of memory beside XLA's own statistics, on the real programs and on those that say little.

    python -m tools.bench.memory                        every program
    python -m tools.bench.memory mlp transformer        those whose name or family begins so
    python -m tools.bench.memory --json memory.json
    python -m tools.bench.memory --slice 1/8            every eighth, from the first on

Each program is partitioned by the pipeline "partition" and compiled by XLA's CPU client. XLA's memory is arguments,
outputs and temporaries, less aliases, of its statistics. Ours is the account of the built module, and that of the plan
that it is built from, by the rules of the CPU client (shardpass/cost/memory.py). Nothing is run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs
from tools.bench.report import geometric_mean, show_table

FAR = 0.3  # a ratio that is off by more is an outlier
HEADS = ("program", "XLA, KiB", "module", "over XLA", "plan", "over XLA")


@dataclass(frozen=True, slots=True)
class Measured:
    """One program: bytes on a device by XLA's statistics, by the account of the module, and by that of the plan."""

    name: str
    xla: int
    module: int
    plan: int

    @property
    def ratios(self) -> tuple[float, float]:
        return self.module / self.xla, self.plan / self.xla


def measure(name: str, text: str) -> Measured:
    import shardpass
    from shardpass.cost.lifetimes import CPU
    from shardpass.diagnostics import collect
    from shardpass.ir.memory import memory_of
    from shardpass.pipeline.plan import plan_module
    from shardpass.planning.price.alive import alive

    with collect():
        module = shardpass.run_pipeline(text, "partition")
        plan = plan_module(text)
    stats = shardpass.compile(module).memory_stats()
    together = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    ours = memory_of(module, CPU).account.peak, alive(plan.body, plan.program, client=CPU).peak
    return Measured(name, together - stats.alias_size_in_bytes, *ours)


def programs(wanted: Sequence[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Names, and what lowers each, of those whose name or family begins as one of ``wanted``; of all without any."""
    from tools.bench.underspecified_programs import PROGRAMS

    for real in real_programs().values():
        if real.available and _begins((real.name, real.family), wanted):
            yield real.name, lambda real=real: real.lower().text  # type: ignore[misc]
    for free in PROGRAMS.values():
        if _begins((free.name, free.kind), wanted):
            yield f"{free.name}/free", lambda free=free: free.in_form("free").lower().text  # type: ignore[misc]


def _begins(names: Sequence[str], wanted: Sequence[str]) -> bool:
    return not wanted or any(name.startswith(tuple(wanted)) for name in names)


def summary(rows: Sequence[Measured]) -> Iterator[str]:
    for way, which in (("the module", 0), ("the plan", 1)):
        ratios = [row.ratios[which] for row in rows]
        spread = math.exp(sum(abs(math.log(ratio)) for ratio in ratios) / len(ratios))
        far = sorted((row for row in rows if abs(row.ratios[which] - 1) > FAR), key=lambda row: row.ratios[which])
        named = ", ".join(f"{row.name} {row.ratios[which]:.2f} of {row.xla / 1024:.1f} KiB" for row in far)
        yield (
            f"{way} over XLA: geometric mean {geometric_mean(ratios):.3f} over {len(rows)} programs, off by a factor "
            f"of {spread:.2f} in the mean; off by more than {FAR:.0%}: {named or 'none'}"
        )


def cells(row: Measured) -> list[str]:
    module, plan = row.ratios
    sizes = [f"{size / 1024:.1f}" for size in (row.xla, row.module, row.plan)]
    return [row.name, sizes[0], sizes[1], f"{module:.2f}", sizes[2], f"{plan:.2f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names, families or kinds; default: all")
    parser.add_argument("--slice", default="1/1", metavar="K/N", help="the K-th program and every N-th after it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    arguments = parser.parse_args()
    first, _, step = arguments.slice.partition("/")
    if not (first.isdecimal() and step.isdecimal() and 0 < int(first) <= int(step)):
        parser.error(f"--slice {arguments.slice}: give K/N, as in 1/8")
    set_devices()
    chosen = list(programs(arguments.programs))[int(first) - 1 :: int(step)]
    if not chosen:
        parser.error(f"no program is named {' or '.join(arguments.programs)}")
    rows: list[Measured] = []
    try:
        for name, lower in chosen:
            rows.append(measure(name, lower()))
            print("  ".join(cells(rows[-1])), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(chosen)} programs", file=sys.stderr)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if rows:
        ordered = sorted(rows, key=lambda row: row.ratios[0])
        show_table("memory of a device", HEADS, [cells(row) for row in ordered], list(summary(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
