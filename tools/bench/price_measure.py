"""What a child of tools/bench/price.py does: one program, planned in several ways, timed and priced.

The ways are those by which users ask for different plans: efforts, constraints that hold or do not, machines. Of these
the first that differ in what they build are measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from shardpass.calibrating.memory import keep_freed_memory
from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs
from tools.bench.underspecified_programs import FORMS, PROGRAMS
from tools.processes import ROOT
from tools.quiet import ahead

MACHINE = "cpu"  # that is run, and by which all plans are priced
Lowered = tuple[str, Sequence[Any] | None]  # StableHLO, and the arguments; None: any will do


@dataclass(frozen=True, slots=True)
class Way:
    """How a program is planned: for ``machine``, at ``effort``, with ``constraints`` exact or free."""

    machine: str
    effort: int = 1
    constraints: str = "exact"

    def __str__(self) -> str:
        return f"{self.machine}, effort {self.effort}, {self.constraints}"


WAYS = (
    Way(MACHINE),
    Way("ideal"),
    Way(MACHINE, effort=0),
    Way("ideal", constraints="free"),
    Way("h100"),
    Way(MACHINE, constraints="free"),
)


@dataclass(frozen=True, slots=True)
class Timed:
    """One plan, in seconds: ``modelled``, and of that ``communication``; the least of its runs and their median.

    ``halves``: the least of the first half of the runs, and of the second.
    """

    way: str
    modelled: float
    communication: float
    collectives: int
    bytes: int
    seconds: float
    median: float
    halves: tuple[float, float]


# ---------------------------------------------------------------- programs


def programs() -> dict[str, Callable[[], Lowered]]:
    """Every small program that runs, by name: of test/integration/models, of the benchmarks, of examples/."""
    found: dict[str, Callable[[], Lowered]] = {}
    for name, real in real_programs().items():
        if real.available:
            found[f"models.{name}"] = partial(_lowered, real)
    for name, program in PROGRAMS.items():
        for form in FORMS:
            found[f"underspecified.{name}.{form}"] = partial(_lowered, program.in_form(form))
    for path in sorted((ROOT / "examples").glob("*.sdy.mlir")):
        found[f"examples.{path.name.removesuffix('.sdy.mlir')}"] = partial(_example, path)
    return found


def _lowered(program: Any) -> Lowered:
    lowered = program.lower()
    return lowered.text, lowered.arguments


def _example(path: Path) -> Lowered:
    return path.read_text(), None


# ---------------------------------------------------------------- one program


def measure(name: str, most: int, runs: int, seconds: float, alone: bool = False) -> list[Timed]:
    """At most ``most`` plans that differ. They take turns, ``runs`` rounds or until ``seconds`` have passed.

    ``alone``: ahead of all other processes (``tools.quiet``).
    """
    import jax

    text, arguments = programs()[name]()
    built = list(_different(text, most))
    calls = [_call(module, arguments) for _, module, _ in built]
    for call in calls:  # which warms up
        jax.block_until_ready(call())
    times: list[list[float]] = [[] for _ in calls]
    with ahead(alone):
        end = time.perf_counter() + seconds
        while len(times[0]) < runs or time.perf_counter() < end:
            for kept, call in zip(times, calls, strict=True):
                begun = time.perf_counter()
                jax.block_until_ready(call())
                kept.append(time.perf_counter() - begun)
    return [
        Timed(str(way), *modelled(module, plan), min(kept), median(kept), halves(kept))
        for (way, module, plan), kept in zip(built, times, strict=True)
    ]


def halves(times: Sequence[float]) -> tuple[float, float]:
    """The least of either half."""
    middle = (len(times) + 1) // 2
    return min(times[:middle]), min(times[middle:] or times)


def _different(text: str, most: int) -> Iterator[tuple[Way, Any, Any]]:
    """(way, partitioned module, plan), where no way before built the same."""
    import shardpass
    from shardpass.advise.suggest.explain import pipeline
    from shardpass.diagnostics import collect

    known: set[str] = set()
    for way in WAYS:
        with collect():
            passes = pipeline(way.effort, machine=way.machine, constraints=way.constraints)
            module = shardpass.run_pipeline(text, passes)
        told = _without_attributes(module)
        if told in known:
            continue
        known.add(told)
        report = shardpass.explain(text, machine=way.machine, effort=way.effort, constraints=way.constraints)
        yield way, module, report.plan
        if len(known) == most:
            return


def _without_attributes(module: Any) -> str:
    """The ops of a module: what its attributes say of how it was made is no difference."""
    text = str(module.operation.get_asm(enable_debug_info=False))
    return text.partition("\n")[2]


def _call(module: Any, arguments: Sequence[Any] | None) -> Callable[[], Any]:
    import shardpass
    from shardpass.runtime.inputs import random_inputs

    run = shardpass.compile(module)
    placed = run.place(*(random_inputs(run.signature.arguments) if arguments is None else arguments))
    return lambda: run.run(*placed)


# ---------------------------------------------------------------- the model: the one place that asks it


def modelled(module: Any, plan: Any) -> tuple[float, float, int, int]:
    """Of a partitioned module on ``MACHINE``: seconds of a step, of its collectives; how many, and bytes received.

    Collectives are priced as they are built. Work is that of the plan.
    """
    import shardpass

    report = shardpass.explain(module, machine=MACHINE)
    count = sum(row.times for row in report.rows if row.counted)
    whole = report.seconds + plan.compute_seconds(MACHINE)
    return whole, report.seconds, count, report.total_bytes_received


def prepare() -> None:
    """Of a child, before its first program: the devices, and memory that is kept."""
    set_devices()
    keep_freed_memory()


def right(slow: float, fast: float) -> bool:
    """Whether a model that prices the slower of two at ``slow`` has their order; of no price it has none."""
    return math.isfinite(slow) and slow > fast
