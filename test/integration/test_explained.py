"""Reports of real programs held to what XLA compiles: bytes of the optimised HLO, memory of its statistics, lines.

The whole table is slow; a part of it runs with every change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from support import daily

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.context import parse_module
from shardpass.ir.frames import is_library
from shardpass.report.build import explain_module
from tools.bench.hlo_traffic import traffic
from tools.bench.real_programs import real_programs

FEW = (
    "mlp_sgd", "transformer_fsdp", "transformer_scanned", "attention_linear", "decode_cached", "experts_dispatch",
    "resnet_spatial", "lstm", "power_iteration", "kmeans", "cumulative", "equinox_mlp_train",
)  # fmt: skip
TODAY = daily.drawn(FEW, 6)  # any six have a mean within the bounds
EVERY = tuple(real_programs())


@dataclass(frozen=True)
class Measured:
    """One program. ``of_user``, ``named``: rows that name a line of the user's, and an array."""

    rows: int
    of_user: int
    named: int
    bytes: int
    hlo_bytes: int
    hlo_collectives: int
    memory_ratio: float


def measure(name: str) -> Measured:
    """The report of one program and what XLA compiles of it."""
    program = real_programs()[name]
    module = parse_module(program.lower().text, f"{name}.mlir")
    with collect():
        found = explain_module(module, f"{name}.mlir", machine="cpu")
    executable = shardpass.compile(module)
    counted, stats = traffic(executable.hlo_text(), program.devices), executable.memory_stats()
    files = [row.place.file for row in found.rows]
    assert found.memory is not None
    return Measured(
        len(found.rows),
        sum(bool(file) and not is_library(file) and not file.endswith(".mlir") for file in files),
        sum(bool(row.array) for row in found.rows),
        found.total_bytes_received,
        counted.bytes,
        counted.collectives,
        found.memory.total
        / (
            stats.argument_size_in_bytes
            + stats.output_size_in_bytes
            + stats.temp_size_in_bytes
            - stats.alias_size_in_bytes
        ),
    )


@pytest.fixture(scope="module")
def table() -> dict[str, Measured]:
    return {}


def measured(name: str, table: dict[str, Measured]) -> Measured:
    program = real_programs()[name]
    if not program.available:
        pytest.skip(f"needs {program.needs}")
    if name not in table:
        table[name] = measure(name)
    return table[name]


@pytest.mark.parametrize("name", TODAY)
def test_bytes_are_those_of_the_compiled_program(name: str, table: dict[str, Measured]) -> None:
    """Loops multiplied. Each collective is rounded by itself, to a byte."""
    found = measured(name, table)
    assert abs(found.bytes - found.hlo_bytes) <= found.hlo_collectives


@pytest.mark.parametrize("name", TODAY)
def test_rows_name_a_line_of_the_program(name: str, table: dict[str, Measured]) -> None:
    found = measured(name, table)
    assert found.of_user == found.rows
    assert found.named == found.rows


def test_memory_is_near_xlas_statistics(table: dict[str, Measured]) -> None:
    ratios = [measured(name, table).memory_ratio for name in TODAY if real_programs()[name].available]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    assert 0.85 <= mean <= 1.15, ratios


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if name not in FEW])
def test_every_program(name: str, table: dict[str, Measured]) -> None:
    found = measured(name, table)
    assert abs(found.bytes - found.hlo_bytes) <= max(found.rows, found.hlo_collectives)
    assert found.of_user == found.rows
