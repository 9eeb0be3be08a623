#!/usr/bin/env python
"""The hook into JAX beside plain JAX: time of a step and time to compile, on real programs and two training loops.

    python -m tools.bench.hook                                  every program of test/integration/models, both loops
    python -m tools.bench.hook mlp nnx_loop                     those whose name or family begins so
    python -m tools.bench.hook --json out.json --markdown docs/jax_times.md
    python -m tools.bench.hook --profile transformer_megatron   where compiling through the hook takes its time

Each program is measured in a process of its own, on 8 virtual CPU devices. Plain and hooked take turns, call by call,
and every second turn the other is first, so that both see the same machine; figures are medians. *compile* is
``Lowered.compile()`` of a program that was just lowered (of a loop its first step, tracing included). *step* is a call
that is waited for. A ratio below 1 says that the hook is faster. Only a quiet machine gives figures worth keeping:
``spread`` is the interquartile range of plain steps over their median.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tools.bench.hook_loops import LOOPS, NEEDS
from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs
from tools.bench.report import geometric_mean, markdown_table, ratio_cell, show_table, worst_first, write_between
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

MARKS = ("<!-- table: tools/bench/hook.py -->", "<!-- end of the table -->")
HEADS = ("program", "compile, ms", "hook", "ratio", "step, ms", "hook", "ratio")
STEP_BOUND, COMPILE_BOUND = 1.0, 1.15
PLAIN, HOOK = "plain", "hook"
WAYS = (PLAIN, HOOK)

Times = dict[str, list[float]]  # by way, in seconds


@dataclass(frozen=True, slots=True)
class Row:
    """One program: medians in seconds, by way; ``left``: it was left to XLA; ``reason``: why nothing was measured."""

    name: str
    compile: dict[str, float]
    step: dict[str, float]
    spread: float = 0.0
    left: bool = False
    reason: str = ""

    def ratio(self, what: str) -> float | None:
        """Of "compile" or "step": hooked over plain."""
        times: dict[str, float] = getattr(self, what)
        return times[HOOK] / times[PLAIN] if times and not self.left else None


# ---------------------------------------------------------------- measuring, in a child


@contextlib.contextmanager
def inside(way: str) -> Iterator[None]:
    """The hook, or nothing."""
    import shardpass.jax as spj

    with spj.use() if way == HOOK else contextlib.nullcontext():
        yield


def in_turn(rounds: int, once: Callable[[str], float]) -> Times:
    """``once`` for each way, in turns; the first round, which warms up, is not counted."""
    found: Times = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way in WAYS if number % 2 else reversed(WAYS):
            with inside(way):
                seconds = once(way)
            if number:
                found[way].append(seconds)
    return found


def measure(name: str, compiles: int, steps: int) -> dict[str, Any]:
    """The answer of a child."""
    import shardpass.jax as spj

    compiled, stepped = (_loop if name in LOOPS else _program)(name, compiles, steps)
    cuts = quantiles(stepped[PLAIN], n=4) if len(stepped[PLAIN]) > 1 else (0.0, 0.0, 0.0)
    return asdict(
        Row(
            name,
            {way: median(times) for way, times in compiled.items()},
            {way: median(times) for way, times in stepped.items()},
            spread=(cuts[2] - cuts[0]) / median(stepped[PLAIN]),
            left=spj.stats()["fallback"] > 0,
        )
    )


def _program(name: str, compiles: int, steps: int) -> tuple[Times, Times]:
    import jax

    program = real_programs()[name]
    kept: dict[str, Any] = {}

    def compiled(way: str) -> float:
        jax.clear_caches()  # of a function that was lowered before, JAX would hand out what it compiled then
        lowered = program.lower()
        begun = time.perf_counter()
        found = lowered.lowered.compile()
        seconds = time.perf_counter() - begun
        kept[way] = found, jax.tree.map(jax.device_put, lowered.case.arguments, found.input_shardings[0])
        return seconds

    def step(way: str) -> float:
        run, arguments = kept[way]
        begun = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        return time.perf_counter() - begun

    return in_turn(compiles, compiled), in_turn(steps, step)


def _loop(name: str, compiles: int, steps: int) -> tuple[Times, Times]:
    kept: dict[str, Any] = {}

    def timed(way: str) -> float:
        begun = time.perf_counter()
        loss = kept[way]()
        if not math.isfinite(loss):
            raise ValueError(f"the loss is {loss}")
        return time.perf_counter() - begun

    def compiled(way: str) -> float:
        kept[way] = LOOPS[name]()
        return timed(way)

    return in_turn(compiles, compiled), in_turn(steps, timed)


def serve() -> None:
    """Answers each JSON line ``[name, compiles, steps]`` on stdin with one line on stdout."""
    set_devices()
    for line in sys.stdin:
        name, compiles, steps = json.loads(line)
        try:
            answer(measure(name, compiles, steps))
        except Exception as error:
            answer(asdict(Row(name, {}, {}, reason=f"{type(error).__name__}: {str(error).splitlines()[0]}"[:300])))


def profile(name: str) -> None:
    """Prints where the time of one compile through the hook goes, after one that warms up."""
    import cProfile
    import pstats

    set_devices()
    for number in range(2):
        lowered = real_programs()[name].lower()
        watch = cProfile.Profile()
        with inside(HOOK):
            watch.enable()
            lowered.lowered.compile()
            watch.disable()
        if number:
            pstats.Stats(watch).sort_stats("cumulative").print_stats(45)


# ---------------------------------------------------------------- report


def cells(row: Row) -> list[str]:
    """A line of the table."""
    found = [row.name]
    for what in ("compile", "step"):
        times = getattr(row, what)
        found += [f"{times[way] * 1e3:.2f}" if times else "-" for way in WAYS] + [ratio_cell(row.ratio(what))]
    return found


def summary(rows: Sequence[Row]) -> list[str]:
    """Means, the worst programs, and what was not measured."""
    lines = []
    for what, bound in (("compile", COMPILE_BOUND), ("step", STEP_BOUND)):
        ratios = [(row.name, row.ratio(what)) for row in rows]
        known = [ratio for _, ratio in ratios if ratio is not None]
        mean = (
            f"{what}: geometric mean of the hook over plain JAX {geometric_mean(known):.3f} over {len(known)} programs"
        )
        lines.append(f"{mean}; above {bound}x: {worst_first(ratios, bound)}")
    for told, names in (
        ("left to XLA", [row.name for row in rows if row.left]),
        ("not measured", [f"{row.name} ({row.reason})" for row in rows if row.reason]),
    ):
        if names:
            lines.append(f"{told}: {', '.join(names)}")
    measured = [row.spread for row in rows if row.step]
    if measured:
        lines.append(f"spread of plain steps: {median(measured):.0%} in the median over programs")
    return lines


def chosen(wanted: tuple[str, ...]) -> list[str]:
    """Names of programs and loops that begin as ``wanted`` (all, where nothing is) and whose libraries are there."""
    found = []
    for name, family, needs in (
        *((p.name, p.family, p.needs) for p in real_programs().values()),
        *((name, name, NEEDS[name]) for name in LOOPS),
    ):
        if wanted and not name.startswith(wanted) and not family.startswith(wanted):
            continue
        if needs is not None and find_spec(needs) is None:
            print(f"{name}: left out, {needs} is not installed", file=sys.stderr)
            continue
        found.append(name)
    return found


def ask(names: Sequence[str], compiles: int, steps: int) -> list[Row]:
    """A fresh child for each program. Ctrl-C ends with what there is."""
    from rich.progress import track

    rows: list[Row] = []
    try:
        for name in track(names, "programs", disable=not sys.stderr.isatty()):
            child = JsonChild(module_command("tools.bench.hook", "--serve"), environment(), 600)
            try:
                rows.append(Row(**child.ask([name, compiles, steps])))
            except ChildFailed as failure:
                rows.append(Row(name, {}, {}, reason=str(failure)))
            finally:
                child.close()
            if not sys.stderr.isatty():
                print(" ".join(cells(rows[-1])), rows[-1].reason, file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(names)} programs", file=sys.stderr)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 where a program was not measured, or was left to XLA."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names or families; default: all")
    parser.add_argument("--compiles", type=int, default=5, metavar="N", help="compiles of each way (default 5)")
    parser.add_argument("--steps", type=int, default=50, metavar="N", help="steps of each way (default 50)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table into this page, between its marks")
    parser.add_argument("--profile", metavar="PROGRAM", help="profile one compile through the hook, and end")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.serve:
        serve()
        return 0
    if arguments.profile:
        if arguments.profile not in real_programs():
            parser.error(f"no program is named {arguments.profile}")
        profile(arguments.profile)
        return 0
    names = chosen(tuple(arguments.programs))
    if not names:
        parser.error(f"no program is named {' or '.join(arguments.programs)}")
    rows = ask(names, max(arguments.compiles, 1), max(arguments.steps, 1))
    table = [cells(row) for row in rows]
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if rows and arguments.markdown:
        write_between(arguments.markdown, MARKS, markdown_table(HEADS, table, summary(rows)))
    if rows:
        show_table("plain JAX and the hook, medians", HEADS, table, summary(rows))
    return 0 if all(not row.reason and not row.left for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
