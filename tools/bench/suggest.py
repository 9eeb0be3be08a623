#!/usr/bin/env python
"""Programs without any annotation: what ``shardpass.suggest`` finds, beside the annotations of an expert.

    python -m tools.bench.suggest                     five programs on 8, 4x2 and 2x2x2 devices, 24 layers, and Llama
    python -m tools.bench.suggest mlp moe             those whose name begins so
    python -m tools.bench.suggest llama --mesh 8x8    7B and 70B on 64 H100 (tools/bench/suggest_llama.py)
    python -m tools.bench.suggest --json out.json --effort 2

An expert's forms of each program are several: batch over all axes and whole weights; weights and batch over all axes;
weights over the batch's axes and the model's; arguments, results and the values between annotated. The limit of memory
lies halfway between the least that a form needs and what whole weights need, so that replication breaks it. All forms
are planned by the passes as they come; the expert is the cheapest form that keeps the limit. Llama's steps have the
memory of their machine as the limit.

Price is the modelled time of collectives and work (shardpass/planning/price/clock.py). Seconds are of processor
time, for the suggestion alone. Nothing is compiled or run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.bench.peers import set_devices
from tools.bench.report import geometric_mean, show_table
from tools.bench.suggest_llama import LLAMA, LlamaStep
from tools.bench.suggest_programs import PROGRAMS, WHOLE, SuggestProgram

BOUND = 1.0  # times the expert's price
SECONDS = 20.0  # of processor time


@dataclass(frozen=True, slots=True)
class Measured:
    """One program on one mesh."""

    name: str
    mesh: str
    limit: int
    whole: int  # bytes that live on a device where weights are whole; of Llama's steps, in the largest form
    expert: str  # the name of the form
    expert_price: float
    expert_memory: int
    price: float
    bytes: int
    memory: int
    annotations: int
    seconds: float
    failure: str = ""

    @property
    def ratio(self) -> float:
        return self.price / self.expert_price


def measure(
    program: SuggestProgram | LlamaStep, axes: tuple[tuple[str, int], ...], effort: int
) -> tuple[Measured, str]:
    """The figures, and the suggestion as text."""
    from shardpass.advise.suggest.suggest import suggest_module
    from shardpass.diagnostics import ShardpassError
    from shardpass.redistribute.terms.limit import read_limit
    from shardpass.sharding import Mesh

    machine = program.machine if isinstance(program, LlamaStep) else None
    forms = {name: planned(text, machine) for name, text in program.forms(axes)}
    peaks = [plan.alive.peak for plan in forms.values()]
    whole, limit = max(peaks), 0
    if isinstance(program, LlamaStep):
        given = read_limit(program.limit)
        assert isinstance(given, int)
        limit = given
    else:
        whole = forms[WHOLE].alive.peak
        limit = (whole + min(peaks)) // 2
    fitting = {name: price_of(plan) for name, plan in forms.items() if plan.alive.peak <= limit}
    expert = min(fitting, key=lambda name: fitting[name])
    mesh = "x".join(str(size) for _, size in axes)
    of_expert = (expert, fitting[expert], forms[expert].alive.peak)
    text = program.free()
    start = time.process_time()
    try:
        answer = suggest_module(text, mesh=Mesh(axes), memory_limit=limit, effort=effort, machine=machine)
    except ShardpassError as error:
        seconds = time.process_time() - start
        failed = Measured(program.name, mesh, limit, whole, *of_expert, 0.0, 0, 0, 0, seconds, error.code)
        return failed, str(error)
    seconds = time.process_time() - start
    cost = price_of(answer.plan), answer.figures.bytes, answer.figures.memory
    row = Measured(program.name, mesh, limit, whole, *of_expert, *cost, len(answer.advice), seconds)
    return row, str(answer)


def planned(text: str, machine: str | None = None) -> Any:
    """The plan that the passes make of a module, as they come, or for another ``machine``."""
    import shardpass
    from shardpass.diagnostics import collect
    from shardpass.ir.machines import machine_of
    from shardpass.partition.splices import spliced_table
    from shardpass.planning.plan.planner import plan_program

    passes = "propagate" if machine is None else f"shardpass-import,shardpass-propagate{{machine={machine}}}"
    with collect():
        module = shardpass.run_pipeline(text, passes)
        with module.context:
            table = spliced_table(module)
            return plan_program(table.program, table.all_shardings(), machine=machine_of(module))


def price_of(plan: Any) -> float:
    from shardpass.planning.plan.cost import price

    return price(plan)


def summary(rows: list[Measured]) -> Iterator[str]:
    """The criteria of the benchmark."""
    right = [row for row in rows if not row.failure]
    yield f"price over the expert's: geometric mean {geometric_mean([row.ratio for row in right]):.3f}"
    for told, above in (
        (f"above {BOUND} times", [f"{r.name} {r.mesh} {r.ratio:.2f}" for r in right if r.ratio > BOUND]),
        ("above the limit", [f"{r.name} {r.mesh}" for r in right if r.memory > r.limit]),
        (f"above {SECONDS:.0f} seconds", [f"{r.name} {r.mesh} {r.seconds:.0f}" for r in rows if r.seconds > SECONDS]),
        ("without an answer", [f"{r.name} {r.mesh} {r.failure}" for r in rows if r.failure]),
    ):
        yield f"{told}: {', '.join(above) or 'none'}"


def show(rows: list[Measured]) -> None:
    heads = ["program", "mesh", "limit KiB", "whole KiB", "expert", "us", "KiB", "ours us", "KiB"]
    heads += ["ratio", "annotations", "s"]
    cells = [
        [
            row.name,
            row.mesh,
            f"{row.limit / 1024:.0f}",
            f"{row.whole / 1024:.0f}",
            row.expert,
            f"{row.expert_price * 1e6:.1f}",
            f"{row.expert_memory / 1024:.0f}",
            row.failure or f"{row.price * 1e6:.1f}",
            f"{row.memory / 1024:.0f}",
            "-" if row.failure else f"{row.ratio:.3f}",
            str(row.annotations),
            f"{row.seconds:.1f}",
        ]
        for row in rows
    ]
    show_table("suggested annotations beside an expert's", heads, cells, list(summary(rows)))


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--effort", type=int, default=1, help="of the search; default: 1")
    parser.add_argument("--mesh", help="only this one: 8, 4x2, 2x2x2 or 8x8")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument("--texts", action="store_true", help="print the suggestions too")
    return parser


def main() -> int:
    parser = options()
    arguments = parser.parse_args()
    every = (*PROGRAMS, *LLAMA)
    chosen = [p for p in every if not arguments.programs or p.name.startswith(tuple(arguments.programs))]
    if not chosen:
        parser.error(f"the programs are {', '.join(p.name for p in every)}")
    set_devices()
    rows: list[Measured] = []
    try:
        for program in chosen:
            for axes in program.meshes:
                mesh = "x".join(str(size) for _, size in axes)
                if arguments.mesh not in (None, mesh):
                    continue
                row, text = measure(program, axes, arguments.effort)
                rows.append(row)
                print(
                    f"{row.name} {row.mesh}: {row.failure or f'{row.ratio:.3f}'}, {row.seconds:.1f} s", file=sys.stderr
                )
                if arguments.texts or row.failure:
                    print(text)
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} programs", file=sys.stderr)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    show(rows)
    return 0 if all(not r.failure and r.ratio <= BOUND and r.memory <= r.limit for r in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
