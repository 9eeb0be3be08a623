#!/usr/bin/env python
"""Redistribution on paper: plans for 64 to 65,536 devices, priced on a network fast inside a host and slow between.

    python -m tools.bench.simulate_scale                         a table: 12 random problems for each number of devices
    python -m tools.bench.simulate_scale --devices 64,4096 --problems 50 --profile pod --json scale.json

Nothing runs: seconds, bytes and memory are those of the cost model and of the plans (each plan is followed and checked
as ever); planning times are processor time, measured on this machine. Three ways to do the same problems are compared:

    best     the default planner, told of the network
    rink     the method of Rink et al.
    gather   all_gather what source and target do not split alike, then slice: whole tiles on every device

Problems are sampled as in section 8 of Rink et al.: a mesh of hosts (two axes) and of the 8 devices of each; on either
side at random every axis is replicated or splits one of up to four dimensions. Sizes are such that the greater of the
two tiles has 4 to 64 MiB; problems without communication are left out. The sample depends on --seed alone.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import planner
from shardpass.redistribute.candidates.gather import meet
from shardpass.redistribute.candidates.rink_search import shortest_paths
from shardpass.redistribute.candidates.search import gather_then_slice
from shardpass.redistribute.plan import Plan
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.terms.choice import Terms, show_seconds
from shardpass.redistribute.terms.limit import show_bytes
from shardpass.sharding import Mesh, Sharding

WAYS = ("best", "rink", "gather")
HOST = 8
TILE = (4 << 20, 64 << 20)


@dataclass(frozen=True)
class Way:
    """One plan. ``seconds``, ``received``, ``peak`` (bytes live together) are modelled, ``planning`` is measured."""

    seconds: float
    received: int
    peak: int
    collectives: int
    planning: float


@dataclass(frozen=True)
class Row:
    devices: int
    problem: str
    bound: int
    ways: dict[str, Way]


# ---------------------------------------------------------------- problems


def sample(devices: int, seed: int, count: int) -> list[Problem]:
    """``count`` problems on ``devices`` devices that communicate."""
    rng = random.Random(f"{devices}/{seed}")
    found: list[Problem] = []
    while len(found) < count:
        problem = random_problem(devices, rng)
        if problem.lower_bound_bytes:
            found.append(problem)
    return found


def random_problem(devices: int, rng: random.Random) -> Problem:
    """Axes y, x and chip: hosts in a grid, devices of a host next to each other."""
    hosts = devices // HOST
    rows = 1 << (hosts.bit_length() - 1) // 2
    mesh = Mesh((("y", rows), ("x", hosts // rows), ("chip", HOST)))
    rank = rng.randint(1, 4)
    source, target = _placed(mesh, rank, rng), _placed(mesh, rank, rng)
    counts = [side.tile_counts(rank) for side in (source, target)]
    need = [math.lcm(*pair) for pair in zip(*counts, strict=True)]
    tiles = [math.prod(n // k for n, k in zip(need, side, strict=True)) for side in counts]
    free = rng.uniform(*map(math.log2, TILE)) - 2 - math.log2(max(tiles))  # f32
    weights = [rng.uniform(0.3, 1.7) for _ in need]
    shape = tuple(n << max(0, round(free * w / sum(weights))) for n, w in zip(need, weights, strict=True))
    return make_problem(shape, "f32", source, target, devices)


def _placed(mesh: Mesh, rank: int, rng: random.Random) -> Sharding:
    dims: list[list[str]] = [[] for _ in range(rank)]
    for axis in rng.sample([name for name, _ in mesh.axes], len(mesh.axes)):
        place = rng.randint(-1, rank - 1)
        if place >= 0:
            dims[place].append(axis)
    return Sharding.tiled(mesh, dims)


# ---------------------------------------------------------------- plans


def plan_by(way: str, problem: Problem, profile: Machine) -> Plan:
    """A checked plan, from nothing known."""
    if way != "gather":
        return planner.solve(problem, way, Terms(profile, "max"))
    terms = Terms(profile, None)
    middle = meet(problem)
    if middle is None:  # source and target are a gather or a slice apart
        return planner.solve(problem, "best", terms)
    return planner.finished(problem, gather_then_slice(problem, middle, terms), "gather", terms)


def priced(problem: Problem, profile: Machine, devices: int) -> Row:
    ways = {}
    for way in WAYS:
        sides = problem.source.sharding, problem.target.sharding
        shortest_paths.cache_clear()  # what another way has searched
        start = time.process_time()
        plan = plan_by(way, make_problem(problem.shape, "f32", *sides, devices), profile)
        taken = time.process_time() - start
        moves = sum(step.kind != "dynamic_slice" for step in plan.steps)
        ways[way] = Way(plan.seconds, plan.bytes_received, plan.peak_live_bytes, moves, taken)
    return Row(devices, str(problem), problem.lower_bound_bytes, ways)


def summary(rows: Sequence[Row], way: str) -> dict[str, float]:
    """Medians over ``rows``; ratios to the bound, and to ``best``, as geometric means."""
    found = [row.ways[way] for row in rows]
    return {
        "seconds": statistics.median(w.seconds for w in found),
        "seconds_to_best": _mean([row.ways[way].seconds / row.ways["best"].seconds for row in rows]),
        "received": statistics.median(w.received for w in found),
        "received_to_bound": _mean([row.ways[way].received / row.bound for row in rows]),
        "peak": statistics.median(w.peak for w in found),
        "collectives": statistics.fmean(w.collectives for w in found),
        "planning": statistics.median(w.planning for w in found),
        "planning_worst": max(w.planning for w in found),
    }


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


# ---------------------------------------------------------------- the command


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="64,512,4096,65536", help="how many, in turn (default: %(default)s)")
    parser.add_argument("--problems", type=int, default=12, help="for each number of devices (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", default="pod", help="a network: a name, or a JSON file (default: pod)")
    parser.add_argument("--json", metavar="FILE", help="all rows and their summary")
    arguments = parser.parse_args(argv)
    try:
        sizes = [int(text) for text in arguments.devices.split(",")]
    except ValueError:
        parser.error(f"--devices must be numbers, such as 64,512; not {arguments.devices!r}")
    if any(n < 2 * HOST or n & (n - 1) for n in sizes):
        parser.error(f"--devices must be powers of two from {2 * HOST} up: hosts of {HOST} devices")
    if arguments.problems < 1:
        parser.error("--problems must be at least 1")
    try:
        profile = chosen(arguments.profile)
    except ShardpassError as error:
        parser.error(str(error))
    rows = simulate(sizes, arguments.problems, arguments.seed, profile)
    _print(rows, arguments.profile)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(as_json(rows, arguments), indent=1) + "\n")
    return 0


def simulate(sizes: Sequence[int], problems: int, seed: int, profile: Machine) -> dict[int, list[Row]]:
    from rich.console import Console
    from rich.progress import Progress

    rows: dict[int, list[Row]] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(sizes) * problems)
        for devices in sizes:
            rows[devices] = []
            for problem in sample(devices, seed, problems):
                progress.update(task, description=f"{devices} devices")
                rows[devices].append(priced(problem, profile, devices))
                progress.advance(task)
    return rows


def as_json(rows: dict[int, list[Row]], arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "profile": arguments.profile,
        "seed": arguments.seed,
        "modelled": ["seconds", "received", "peak", "collectives"],
        "measured": ["planning"],
        "summary": {str(n): {way: summary(found, way) for way in WAYS} for n, found in rows.items()},
        "rows": [asdict(row) for found in rows.values() for row in found],
    }


def _print(rows: dict[int, list[Row]], profile: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("devices", "way", "time", "/ best", "received", "/ bound", "live", "collectives", "planning", "worst")
    for column in columns:
        table.add_column(column, justify="left" if column == "way" else "right", no_wrap=True)
    for devices, found in rows.items():
        for way in WAYS:
            s = summary(found, way)
            table.add_row(
                f"{devices:,}" if way == WAYS[0] else "",
                way,
                show_seconds(s["seconds"]),
                f"{s['seconds_to_best']:.2f}x",
                show_bytes(round(s["received"])),
                f"{s['received_to_bound']:.2f}x",
                show_bytes(round(s["peak"])),
                f"{s['collectives']:.1f}",
                show_seconds(s["planning"]),
                show_seconds(s["planning_worst"]),
            )
    console = Console(highlight=False)
    console.width = max(console.width, 112)
    console.print(table)
    console.print(
        f"modelled on profile {profile}: medians of time, received and live, geometric means of ratios; planning: "
        "processor time measured here, each problem once and unknown before, its check included",
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())
