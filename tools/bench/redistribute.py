#!/usr/bin/env python
"""Redistribution: shardpass beside XLA's partitioner and Shardy's passes, on the same arrays, in one run.

    python -m tools.bench.redistribute                          a sample on every mesh
    python -m tools.bench.redistribute --mesh 2x2x2 --problems 50 --min-mb 8 --max-mb 64
    python -m tools.bench.redistribute --hard corpora/hard_reshards.json
    python -m tools.bench.redistribute --profile default        planned for another machine than it runs on

Problems are sampled as in section 8 of Rink et al.: every mesh axis is replicated or put on one dimension, on
either side at random. Four programs are made for each: planner rink, planner best, XLA's own
(``jax.jit(out_shardings=)``), and Shardy's passes (reshard-to-collectives, convert-global-to-local). They run
in turn, each call waited for; a time is the median. Bytes received by a device are read from the collectives of
the compiled HLO, by one counter for all four.

Child processes do the work: Shardy's passes, and XLA, can end the process they run in. A problem on which one
does is reported and left out of that column.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shardpass.calibrating.memory import keep_freed_memory
from tools.bench.redistribute_samples import MESHES, Problem, hard, named, paper, sample
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

SECONDS_PER_PROBLEM = 600
WAYS = ("rink", "best", "xla", "shardy")

# ---------------------------------------------------------------- children


@dataclass(frozen=True, slots=True)
class Measuring:
    """How problems are measured: calls of each program, the profile that plans are for, and whether memory is kept."""

    repeats: int
    profile: str
    keeps_memory: bool

    @property
    def options(self) -> tuple[str, ...]:
        """Of a child's command line."""
        keep = ("--keep-memory",) if self.keeps_memory else ()
        return ("--repeats", str(self.repeats), "--profile", self.profile, *keep)


def child(task: str, how: Measuring) -> None:
    """Reads problems as JSON lines on stdin; answers each with one line on stdout."""
    from tools.bench.redistribute_measure import measure, shardy_reshard_module

    if how.keeps_memory:
        keep_freed_memory()

    for line in sys.stdin:
        asked = json.loads(line)
        problem = Problem.from_json(asked["problem"])
        try:
            if task == "shardy":
                found = {"text": shardy_reshard_module(problem)}
            else:
                found = measure(problem, asked["shardy"], how.repeats, how.profile)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        answer(found)


class Child:
    """A process for one task and number of devices; it is started again after it has died."""

    def __init__(self, task: str, devices: int, how: Measuring) -> None:
        flags = f"--xla_force_host_platform_device_count={devices}"
        command = module_command("tools.bench.redistribute", "--child", task, *how.options)
        self.worker = JsonChild(command, environment(XLA_FLAGS=flags, JAX_PLATFORMS="cpu"), SECONDS_PER_PROBLEM)

    def ask(self, problem: Problem, shardy: str = "") -> dict[str, Any]:
        try:
            return self.worker.ask({"problem": asdict(problem), "shardy": shardy})
        except ChildFailed as failure:
            return {"error": str(failure)}

    def close(self) -> None:
        self.worker.close()


# ---------------------------------------------------------------- report


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def report(results: list[dict[str, Any]]) -> None:
    from rich.console import Console

    console = Console()
    moving = [r for r in results if r["facts"]["bound"]]
    groups: dict[str, list[dict[str, Any]]] = {}
    for r in moving:
        size = math.prod(r["mesh"])
        groups.setdefault("powers of two" if size & (size - 1) == 0 else "3-, 5-, 6-way", []).append(r)
    for name, rows in {**groups, **({"all": moving} if len(groups) > 1 else {})}.items():
        console.print(ways_table(name, rows))
        for base in ("xla", "shardy", "rink"):
            print_ratio(console, rows, base)
        print_slower(console, rows)
        print_planning(console, rows)
    for r in results:
        for way, reason in r["failed"].items():
            console.print(f"{r['name']}: {way}: {reason}", markup=False)


def ways_table(name: str, rows: list[dict[str, Any]]) -> Any:
    """For each way, over the problems that it gets right: geometric means of times and bytes, counts, memory."""
    from rich.table import Table

    table = Table(title=f"{name}: {len(rows)} problems with communication", box=None)
    for column in ("", "n", "ms", "bytes / bound", "worst", "collectives", "temp / limit", "worst temp"):
        table.add_column(column, justify="right")
    for way in WAYS:
        done = [r for r in rows if way in r["ways"]]
        if not done:
            continue
        ratio = [max(r["ways"][way]["wire"], 1) / r["facts"]["bound"] for r in done]
        limits = [r["facts"]["limit"] + 4 * math.prod(r["facts"]["tiles"][1]) for r in done]
        temps = [max(r["ways"][way]["temp"], 1) / n for r, n in zip(done, limits, strict=True)]
        table.add_row(
            way,
            str(len(done)),
            f"{geometric_mean([r['ways'][way]['ms'] for r in done]):.2f}",
            f"{geometric_mean(ratio):.3f}",
            f"{max(ratio):.2f}",
            f"{statistics.mean(r['ways'][way]['collectives'] for r in done):.2f}",
            f"{geometric_mean(temps):.2f}",
            f"{max(temps):.2f}",
        )
    return table


def print_ratio(console: Any, rows: list[dict[str, Any]], base: str) -> None:
    both = [r for r in rows if {base, "best"} <= set(r["ways"])]
    ratios = sorted((r["ways"][base]["ms"] / r["ways"]["best"]["ms"], r["name"]) for r in both)
    if ratios:
        mean = geometric_mean([x for x, _ in ratios])
        (worst, where), (most, there) = ratios[0], ratios[-1]
        console.print(
            f"{base} / best, {len(ratios)} problems: geometric mean {mean:.2f}x, "
            f"{worst:.2f}x ({where}) to {most:.2f}x ({there})"
        )


def print_slower(console: Any, rows: list[dict[str, Any]]) -> None:
    """Where the faster of the peers is more than 10% faster than best."""
    found = []
    compared = 0
    for r in rows:
        peers = {way: r["ways"][way]["ms"] for way in ("xla", "shardy") if way in r["ways"]}
        if not peers or "best" not in r["ways"]:
            continue
        compared += 1
        way = min(peers, key=lambda w: peers[w])
        if r["ways"]["best"]["ms"] > 1.1 * peers[way]:
            found.append((r["ways"]["best"]["ms"] / peers[way], way, r))
    console.print(f"more than 10% slower than the faster peer: {len(found)} of {compared}")
    for ratio, way, r in sorted(found, key=lambda f: -f[0]):
        steps = ", ".join(r["facts"]["steps_best"])
        console.print(f"  {ratio:.2f}x of {way}, {r['ways']['best']['ms']:.1f} ms: {r['name']} ({steps})", markup=False)


def print_planning(console: Any, rows: list[dict[str, Any]]) -> None:
    few = [sum(k != "dynamic_slice" for k in r["facts"]["steps_best"]) <= 3 for r in rows]
    above = sum(r["facts"]["modelled_best"] > r["facts"]["modelled_rink"] for r in rows)
    wire = sum(r["facts"]["modelled_best"] > r["ways"]["shardy"]["wire"] for r in rows if "shardy" in r["ways"])
    planning = sorted(r["facts"]["plan_ms_best"] for r in rows)
    console.print(
        f"best: at most 3 collectives in {sum(few) / len(few):.1%}; "
        f"more bytes than rink on {above}, than Shardy on {wire}; "
        f"planning median {planning[len(planning) // 2]:.2f} ms, worst {planning[-1]:.2f} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", action="append", choices=MESHES, help="may be given several times; default: all")
    parser.add_argument("--problems", type=int, default=10, help="for each mesh")
    parser.add_argument("--uneven", type=int, default=2, help="more problems for each mesh, that do not divide")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--min-mb", type=float, default=8)
    parser.add_argument("--max-mb", type=float, default=64)
    parser.add_argument("--name", action="append", help="only this problem, as it is called in a report")
    parser.add_argument("--hard", metavar="FILE", help="only the problems of this file")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--profile", default="cpu", help="that plans are made for: a name, or a JSON file")
    parser.add_argument(
        "--keep-memory", action="store_true", help="time without page faults: see shardpass/calibrating/memory.py"
    )
    parser.add_argument("--out", metavar="FILE", help="write every number as JSON, after each problem")
    parser.add_argument("--child", choices=("shardy", "measure"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    how = Measuring(arguments.repeats, arguments.profile, arguments.keep_memory)
    if arguments.child:
        child(arguments.child, how)
        return 0
    low, high = arguments.min_mb * 2**20, arguments.max_mb * 2**20
    if arguments.hard:
        problems = hard(arguments.hard)
    elif arguments.name:
        problems = [named(name, low, high) for name in arguments.name]
    else:
        problems = [] if arguments.mesh else paper()
        for mesh in arguments.mesh or MESHES:
            problems += [sample(mesh, arguments.seed, k, low, high, False) for k in range(arguments.problems)]
            problems += [sample(mesh, arguments.seed, k, low, high, True) for k in range(arguments.uneven)]
    results = []
    for result in run(problems, how):
        results.append(result)
        if arguments.out:
            Path(arguments.out).write_text(json.dumps(results, indent=1))
    report(results)
    return 0


def run(problems: list[Problem], how: Measuring) -> Iterator[dict[str, Any]]:
    """What is found of each problem that every program of ours survives."""
    from rich.progress import track

    batches = itertools.groupby(sorted(problems, key=lambda p: p.devices), lambda p: p.devices)
    for devices, batch in batches:
        shardy, runner = (Child(task, devices, how) for task in ("shardy", "measure"))
        for problem in track(list(batch), f"{devices} devices"):
            made = shardy.ask(problem)
            result = runner.ask(problem, made.get("text", ""))
            if "error" in result and "text" in made:  # perhaps only that program ends the process
                made = {"error": "XLA did not survive its program"}
                result = runner.ask(problem)
            if "error" in result:
                print(f"{problem.name}: {result['error']}", file=sys.stderr)
                continue
            if "error" in made:
                result["failed"]["shardy"] = made["error"]
            yield {**result, "mesh": list(problem.mesh)}
        shardy.close()
        runner.close()


if __name__ == "__main__":
    raise SystemExit(main())
