#!/usr/bin/env python
"""Measures what collectives and copies take on this machine, and writes the profile that fits best.

    python -m tools.bench.calibrate -o mine.json                 8 virtual CPU devices, a minute or two
    python -m tools.bench.calibrate --devices 4 --sizes 64KiB,1MiB --repeats 5
    shardpass-plan ... --profile mine.json

Every sample is a small program, run by shardpass's runtime: a plan of one step for each kind, group and size, one and
several permutes in a row, a local transpose, and all_to_alls whose pieces are joined in runs of several lengths, or one
by one. The samples run in turn, each call waited for, in a process that keeps the memory it frees (``tools.memory``); a
time is the median of its repeats. Of each it is known how many collectives there are, what the busiest device receives
and its local work (``program.local_work``: bytes copied, runs, elements and places), so

    time = call + latency * collectives + received / bandwidth
         + bytes / copies + runs / (runs a second) + elements / (elements a second) + places / (places a second)

is fitted by least squares in relative error, no term below zero. Three more comparisons make the profile's flags:
columns gathered by pieces or by an all_gather, rows exchanged for columns by slices or not, and bf16 beside integers of
its bits. The call itself (Python, dispatch) is no part of the profile. The error is printed for each sample and for the
whole: of a machine whose kinds of collectives differ much, no single line fits well, and that is to be seen.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from shardpass.cost.machine import Machine, switched
from shardpass.redistribute.program.local_work import LocalWork, local_work
from tools.memory import keep_freed_memory

CHAIN = 8  # permutes in a row
RUNS = (12, 252, 4092)  # bytes, of joined pieces; no powers of two, by which division is a shift
IN_RUNS = switched("in runs", 0.0, 1e9, math.inf, elements=1.0, places=1.0)
ONE_BY_ONE = switched("one by one", 0.0, 1e9, math.inf, runs=1.0)
PIECES = switched("by pieces", 0.0, 1e9, math.inf, elements=1.0, places=1.0, gathers_by_pieces=True)
IN_LOOPS = switched("in loops", 0.0, 1e9, math.inf)
SLICES = switched("by slices", 0.0, 1e9, math.inf, elements=1.0, places=1.0, cuts_by_slices=True)
NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "ui16": np.uint16}
NO_FLAGS: Mapping[str, bool] = MappingProxyType({})
AS_FAST = 1.1  # times what is compared with


@dataclass(frozen=True)
class Sample:
    """A program, and what is known of it: collectives, bytes that a device receives, and its local work."""

    name: str
    module: str
    shape: tuple[int, ...]  # of the whole argument
    collectives: int
    received: int
    work: LocalWork
    element: str = "f32"

    @property
    def row(self) -> tuple[float, ...]:
        return (1.0, self.collectives, self.received, *self.work)


@dataclass(frozen=True)
class Fit:
    """Seconds for a call and for a collective; seconds for each byte received, and for each unit of local work."""

    call: float
    latency: float
    received: float
    copied: float
    runs: float = 0.0
    elements: float = 0.0
    places: float = 0.0

    def seconds(self, sample: Sample) -> float:
        return float(np.dot(sample.row, astuple(self)))


# ---------------------------------------------------------------- samples


def samples(devices: int, sizes: Sequence[int]) -> Iterator[Sample]:
    """Tiles of ``sizes`` bytes; groups of all devices, and of two."""
    for size in sizes:
        yield _transpose(devices, size)
        for group in sorted({2, devices}):
            mesh = f"mesh['g'={group},'rest'={devices // group}]" if group < devices else f"mesh['g'={devices}]"
            rows = max(1, math.isqrt(size // 4) // devices) * devices
            shape = (max(1, size // 4 // rows) * group, rows)  # tiles of whole rows, and rows that divide
            split = f"{{{mesh}, [{{'g'}}, {{}}]}}"
            yield _planned("all_gather", shape, split, f"{{{mesh}, [{{}}, {{}}]}}", group)
            yield _planned("all_to_all", shape, split, f"{{{mesh}, [{{}}, {{'g'}}]}}", group)
        yield from _joined(devices, size)
        for count in (1, CHAIN):
            yield _permutes(devices, size, count)


def _joined(devices: int, size: int) -> Iterator[Sample]:
    """Columns to rows: the pieces are joined in runs of so many bytes, or one by one where the profile says so."""
    mesh = f"mesh['g'={devices}]"
    columns, rows = f"{{{mesh}, [{{}}, {{'g'}}]}}", f"{{{mesh}, [{{'g'}}, {{}}]}}"
    for form, machine in (("in runs", IN_RUNS), ("one by one", ONE_BY_ONE)):
        for run in RUNS:
            shape = (max(1, size // run // devices) * devices, run // 4 * devices)
            yield _planned("all_to_all", shape, columns, rows, devices, machine, f"joined {form} of {run} bytes")


def _planned(
    kind: str,
    shape: tuple[int, ...],
    source: str,
    target: str,
    group: int,
    profile: str | Machine = "paper",
    name: str = "",
    element: str = "f32",
) -> Sample:
    """The plan of one step of that kind."""
    from shardpass.redistribute import plan_redistribution

    plan = plan_redistribution(shape, element, source, target, machine=profile)
    kinds = [step.kind for step in plan.steps]
    if kinds != [kind]:
        sys.exit(f"calibrate.py: {source} to {target} should take one {kind}, but is planned as {', '.join(kinds)}")
    work = local_work(plan.program, plan.source_tile, plan.element_type)
    return Sample(name or f"{kind} of {group}", plan.to_module(), shape, 1, plan.bytes_received, work, element)


def _transpose(devices: int, size: int) -> Sample:
    """A copy alone: each device transposes its tile."""
    rows = max(1, math.isqrt(size // 4))
    columns = max(1, size // 4 // rows)
    kinds = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{rows}xf32>"
    body = f"%r = stablehlo.transpose %x, dims = [1, 0] : ({kinds[0]}) -> {kinds[1]}"
    ends = (
        _end(kinds[0], (rows * devices, columns), 0, devices),
        _end(kinds[1], (columns, rows * devices), 1, devices),
    )
    elements = rows * columns
    work = LocalWork(4 * elements, 0, elements, 0)
    return Sample("transpose", _module(devices, kinds, ends, body), (rows * devices, columns), 0, 0, work)


def _permutes(devices: int, size: int, count: int) -> Sample:
    """The tile goes to the next device, ``count`` times: several collectives in one call tell its latency apart."""
    kind, shape = f"tensor<{size // 4}xf32>", (size // 4 * devices,)
    pairs = ", ".join(f"[{d}, {(d + 1) % devices}]" for d in range(devices))
    attributes = f"source_target_pairs = dense<[{pairs}]> : tensor<{devices}x2xi64>"
    body = "\n".join(
        f"%{'r' if n == count else n} = "
        f'"stablehlo.collective_permute"(%{n - 1 if n > 1 else "x"}) <{{{attributes}, channel_handle = '
        f"#stablehlo.channel_handle<handle = {n}, type = 1>}}> : ({kind}) -> {kind}"
        for n in range(1, count + 1)
    )
    end = _end(kind, shape, 0, devices)
    received = count * (size // 4) * 4
    return Sample(
        f"{count} collective_permute",
        _module(devices, (kind, kind), (end, end), body),
        shape,
        count,
        received,
        LocalWork(),
    )


def _end(kind: str, shape: tuple[int, ...], dim: int, devices: int) -> str:
    """The attributes of an argument or a result of type ``kind``: a tile of ``shape``, split along ``dim``."""
    split = ", ".join("{'g'}" if i == dim else "{}" for i in range(len(shape)))
    return (
        f'{{mhlo.sharding = "{{manual}}", shardpass.sharding = "{{mesh[\'g\'={devices}], [{split}]}}", '
        f"shardpass.global_type = tensor<{'x'.join(map(str, shape))}xf32>}}"
    )


def _module(devices: int, kinds: tuple[str, str], ends: tuple[str, str], body: str) -> str:
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func public @main(%x: {kinds[0]} {ends[0]}) -> ({kinds[1]} {ends[1]}) {{
        {body}
        return %r : {kinds[1]}
      }}
    }}"""


# ---------------------------------------------------------------- measuring


def measure(found: Sequence[Sample], repeats: int, show: Any) -> list[float]:
    """Median seconds of each sample, in turn. ``show(text)`` is told of each piece of work done."""
    import jax

    import shardpass

    ready = []
    for sample in found:
        program = shardpass.compile(sample.module)
        placed = program.place(np.zeros(sample.shape, NUMPY[sample.element]))
        jax.block_until_ready(program.run(*placed))
        ready.append((program, placed))
        show(f"compiled {sample.name}")
    times: list[list[float]] = [[] for _ in found]
    for turn in range(repeats):
        for (program, placed), known in zip(ready, times, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(program.run(*placed))
            known.append(time.perf_counter() - start)
        show(f"turn {turn + 1} of {repeats}")
    return [statistics.median(known) for known in times]


def flags(devices: int, size: int, repeats: int) -> dict[str, bool]:
    """The profile's flags, by gathers and exchanges of an array of ``size`` bytes."""
    mesh = f"mesh['g'={devices}]"
    split, whole = f"{{{mesh}, [{{'g'}}, {{}}]}}", f"{{{mesh}, [{{}}, {{}}]}}"
    columns = f"{{{mesh}, [{{}}, {{'g'}}]}}"
    side = max(1, math.isqrt(size // 4) // devices) * devices
    shape = (side, side - devices if side > devices else side)
    found = [
        _planned("all_gather", shape, columns, whole, devices),
        _planned("all_to_all", shape, columns, whole, devices, PIECES),
        _planned("all_gather", shape, split, whole, devices, element="bf16"),
        _planned("all_gather", shape, split, whole, devices, element="ui16"),
        _planned("all_to_all", (side, side), split, columns, devices, IN_LOOPS),
        _planned("all_to_all", (side, side), split, columns, devices, SLICES),
    ]
    gathered, by_pieces, floats, bits, in_loops, by_slices = measure(found, repeats, lambda text: None)
    return {
        "gathers_by_pieces": by_pieces < gathered,
        "cuts_by_slices": by_slices < in_loops,
        "floats_as_bits": floats > AS_FAST * bits,
    }


# ---------------------------------------------------------------- fitting


def fit(found: Sequence[Sample], seconds: Sequence[float]) -> Fit:
    """Least squares of the relative error, no coefficient below zero: those that would be are zero."""
    wanted = np.array(seconds)
    rows = np.array([sample.row for sample in found]) / wanted[:, None]
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1
    free = list(range(rows.shape[1]))
    while True:
        part, *_ = np.linalg.lstsq(rows[:, free] / scale[free], np.ones(len(wanted)), rcond=None)
        if not free or (part >= 0).all():
            break
        free.pop(int(part.argmin()))
    values = np.zeros(rows.shape[1])
    values[free] = part / scale[free]
    return Fit(*values.tolist())


def errors(fitted: Fit, found: Sequence[Sample], seconds: Sequence[float]) -> list[float]:
    """How many times too high or too low each sample is modelled, from 1 up."""
    out = []
    for sample, measured in zip(found, seconds, strict=True):
        ratio = max(fitted.seconds(sample), 1e-12) / measured
        out.append(max(ratio, 1 / ratio))
    return out


def profile_json(
    fitted: Fit, name: str, about: str, off: Sequence[float], flags: Mapping[str, bool] = NO_FLAGS
) -> dict[str, Any]:
    """What ``profile=`` reads, with a note of how well it fits. A term that was not seen costs next to nothing."""
    from shardpass.cost.profiles import to_json

    units = (fitted.received, fitted.copied, fitted.runs, fitted.elements, fitted.places)
    bandwidth, copies, runs, elements, places = (1 / max(unit, 1e-15) for unit in units)
    profile = switched(
        name, fitted.latency, bandwidth, copies, about=about, runs=runs, elements=elements, places=places
    )
    made = to_json(profile) | dict(flags)
    made["fit"] = {
        "samples": len(off),
        "call_seconds": fitted.call,
        "error_geometric_mean": math.exp(statistics.fmean(map(math.log, off))),
        "error_worst": max(off),
    }
    return made


# ---------------------------------------------------------------- the command


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=8, metavar="N", help="virtual CPU devices (default: 8)")
    parser.add_argument("--sizes", default="64KiB,1MiB,8MiB", help="bytes of a tile (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=15, help="calls of each sample (default: 15)")
    parser.add_argument("--name", default="calibrated", help="of the profile")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the profile goes; without it, to stdout")
    arguments = parser.parse_args(argv)
    if arguments.devices < 2 or arguments.devices % 2:
        parser.error("--devices must be even and at least 2: groups of two are measured")
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    from shardpass.diagnostics import ShardpassError
    from shardpass.redistribute.terms.limit import read_limit

    try:
        sizes = [read_limit(text) for text in arguments.sizes.split(",")]
    except ShardpassError as error:
        parser.error(str(error))
    if any(not isinstance(size, int) or size < 64 for size in sizes):
        parser.error("--sizes must be bytes from 64 up, such as 64KiB,1MiB")
    import jax

    keep_freed_memory()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", arguments.devices)
    made = calibrate(arguments.devices, [int(size) for size in sizes if size], arguments.repeats, arguments.name)
    text = json.dumps(made, indent=2)
    if arguments.output:
        Path(arguments.output).write_text(text + "\n")
    else:
        print(text)
    return 0


def calibrate(devices: int, sizes: Sequence[int], repeats: int, name: str) -> dict[str, Any]:
    """Samples, measures, fits, and says on stderr how well. What ``profile=`` reads."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, highlight=False)
    found = list(samples(devices, sizes))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(found) + repeats)
        seconds = measure(found, repeats, lambda text: progress.update(task, advance=1, description=text))
    fitted = fit(found, seconds)
    off = errors(fitted, found, seconds)
    about = f"measured by tools/bench/calibrate.py on {devices} virtual CPU devices"
    made = profile_json(fitted, name, about, off, flags(devices, max(sizes), repeats))
    _print(console, found, seconds, fitted, off, made)
    return made


def _print(
    console: Any, found: Sequence[Sample], seconds: Sequence[float], fitted: Fit, off: Sequence[float], made: Any
) -> None:
    from rich.table import Table

    from shardpass.redistribute.terms.limit import show_bytes

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("sample", "received", "copied", "measured", "modelled", "off by"):
        table.add_column(column, justify="left" if column == "sample" else "right")
    for sample, measured, error in zip(found, seconds, off, strict=True):
        table.add_row(
            sample.name,
            show_bytes(sample.received),
            show_bytes(sample.work.bytes),
            f"{1e3 * measured:.3f} ms",
            f"{1e3 * fitted.seconds(sample):.3f} ms",
            f"{error:.2f}x",
        )
    console.print(table)
    note = made["fit"]
    console.print(
        f"latency {1e6 * made['latency']:.4g} us, bandwidth {made['bandwidth'] / 1e9:.4g} GB/s, "
        f"copies {made['copies'] / 1e9:.4g} GB/s, beside {1e6 * fitted.call:.4g} us for each call; "
        f"off by {note['error_geometric_mean']:.2f}x (geometric mean), at worst {note['error_worst']:.2f}x",
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())
