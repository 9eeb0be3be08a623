#!/usr/bin/env python
"""Reports of the real programs, held to what XLA compiles: bytes, lines of the user, memory.

    python -m tools.bench.explain                        every program of test/integration/models
    python -m tools.bench.explain mlp transformer        those whose name or family begins so
    python -m tools.bench.explain --partitioner xla      reports of what XLA's own partitioner makes of them
    python -m tools.bench.explain --layers 24            how long a report takes beside partitioning

Bytes are counted in the compiled HLO by tools/bench/hlo_traffic.py, loops multiplied. A line is the user's where it is
of no library. Memory is arguments, results and temporaries of XLA's statistics; the report's is by profile "cpu", whose
order of ops is that of XLA's CPU client.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardpass.ir.frames import is_library
from tools.bench.hlo_traffic import traffic
from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs

if TYPE_CHECKING:
    from shardpass.report.report import Report


@dataclass(frozen=True)
class Measured:
    """One program. ``of_user``, ``named``: rows that name a line of the user's, and an array."""

    name: str
    rows: int
    of_user: int
    named: int
    bytes: int
    hlo_bytes: int
    hlo_collectives: int
    memory: int
    xla_memory: int
    seconds: float

    @property
    def memory_ratio(self) -> float:
        return self.memory / self.xla_memory

    @property
    def is_exact(self) -> bool:
        """Each collective is rounded by itself, to a byte: each row, though XLA may join some, or each one in HLO."""
        return abs(self.bytes - self.hlo_bytes) <= max(self.rows, self.hlo_collectives)

    def __str__(self) -> str:
        exact = "" if self.is_exact else f" (HLO {self.hlo_bytes:,})"
        lines = f"{self.of_user} of {self.rows} lines"
        return f"{self.name:32} {self.bytes:>10,} bytes{exact}, {lines}, memory {self.memory_ratio:.2f}"


def measure_xla(name: str) -> Measured:
    """The report of XLA's own program, and what its HLO has; memory is XLA's on both sides."""
    from shardpass.report.hlo.programs import explain_compiled

    program = real_programs()[name]
    compiled = program.lower().lowered.compile()
    start = time.perf_counter()
    found = explain_compiled(compiled, None, "cpu")
    return _measured(name, found, compiled.as_text(), compiled.memory_analysis(), time.perf_counter() - start)


def measure(name: str) -> Measured:
    """The report of one program and what XLA compiles of it."""
    import shardpass
    from shardpass.diagnostics import collect
    from shardpass.ir.context import parse_module
    from shardpass.report.build import explain_module

    program = real_programs()[name]
    module = parse_module(program.lower().text, f"{name}.mlir")
    start = time.perf_counter()
    with collect():
        found = explain_module(module, f"{name}.mlir", machine="cpu")
    seconds = time.perf_counter() - start
    executable = shardpass.compile(module)
    return _measured(name, found, executable.hlo_text(), executable.memory_stats(), seconds)


def _measured(name: str, found: Report, hlo: str, stats: Any, seconds: float) -> Measured:
    counted = traffic(hlo, real_programs()[name].devices)
    files = [row.place.file for row in found.rows]
    return Measured(
        name,
        len(found.rows),
        sum(bool(file) and not is_library(file) and not file.endswith(".mlir") for file in files),
        sum(bool(row.array) for row in found.rows),
        found.total_bytes_received,
        counted.bytes,
        counted.collectives,
        0 if found.memory is None else found.memory.total,
        stats.argument_size_in_bytes
        + stats.output_size_in_bytes
        + stats.temp_size_in_bytes
        - stats.alias_size_in_bytes,
        seconds,
    )


def speed(layers: int) -> str:
    """The time of partitioning a transformer's training step, and of its report, each the best of three."""
    from shardpass.diagnostics import collect
    from shardpass.ir.context import parse_module
    from shardpass.pipeline.run import run_in_place
    from shardpass.report.build import explain_module
    from tools.bench.compile_programs import MeshSize, transformer

    text = transformer(MeshSize(4, 2), layers).lower(MeshSize(4, 2), debug_info=True)
    partition, report, lines = math.inf, math.inf, 0
    for _ in range(3):
        module = parse_module(text, "step.mlir")
        start = time.perf_counter()
        with collect():
            run_in_place(module, "partition")
        partition = min(partition, time.perf_counter() - start)
        module = parse_module(text, "step.mlir")
        start = time.perf_counter()
        with collect():
            lines = len(str(explain_module(module, "step.mlir")).splitlines())
        report = min(report, time.perf_counter() - start)
    ratio = report / partition
    return (
        f"{layers} layers: partitioned in {partition:.2f} s, reported in {report:.2f} s ({ratio:.2f}x), {lines} lines"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names or families; default: all")
    parser.add_argument("--layers", type=int, help="measure time alone, of a transformer of so many layers")
    parser.add_argument("--partitioner", choices=("shardpass", "xla"), default="shardpass", help="whose programs")
    arguments = parser.parse_args()
    if arguments.layers:
        print(speed(arguments.layers))
        return 0
    wanted = tuple(arguments.programs)
    chosen = [
        p for p in real_programs().values() if not wanted or p.name.startswith(wanted) or p.family.startswith(wanted)
    ]
    if not chosen:
        parser.error(f"no program is named {' or '.join(wanted)}")
    set_devices()
    table = []
    for program in chosen:
        if program.available:
            measured = measure_xla if arguments.partitioner == "xla" else measure
            table.append(measured(program.name))
            print(table[-1], flush=True)
    rows, lines = sum(one.rows for one in table), sum(one.of_user for one in table)
    logs = [math.log(one.memory_ratio) for one in table]
    mean, spread = math.exp(sum(logs) / len(logs)), math.exp(sum(map(abs, logs)) / len(logs))
    print(f"bytes equal those of the HLO in {sum(one.is_exact for one in table)} of {len(table)} programs")
    print(f"rows that name a line of the user's: {lines} of {rows}; an array: {sum(one.named for one in table)}")
    print(f"memory over XLA's: geometric mean {mean:.3f}, off by a factor of {spread:.2f} in the mean")
    return 0 if all(one.is_exact for one in table) else 1


if __name__ == "__main__":
    raise SystemExit(main())
