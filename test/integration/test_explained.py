"""Reports of real programs held to what XLA compiles: bytes of the optimised HLO, memory of its statistics, lines.

The whole table is slow; a part of it runs with every change. ``python -m tools.bench.explain`` prints it.
"""

from __future__ import annotations

import math

import pytest

from tools.bench.explain import Measured, measure
from tools.bench.real_programs import real_programs

FEW = (
    "mlp_sgd", "transformer_fsdp", "transformer_scanned", "attention_linear", "decode_cached", "experts_dispatch",
    "resnet_spatial", "lstm", "power_iteration", "kmeans", "cumulative", "equinox_mlp_train",
)  # fmt: skip
EVERY = tuple(real_programs())


@pytest.fixture(scope="module")
def table() -> dict[str, Measured]:
    return {}


def measured(name: str, table: dict[str, Measured]) -> Measured:
    program = real_programs()[name]
    if not program.available:
        pytest.skip(f"needs {program.needs}")
    return table.setdefault(name, measure(name))


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", FEW)
def test_bytes_are_those_of_the_compiled_program(name: str, table: dict[str, Measured]) -> None:
    """Loops multiplied. Each collective is rounded by itself, to a byte."""
    found = measured(name, table)
    assert abs(found.bytes - found.hlo_bytes) <= found.hlo_collectives


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", FEW)
def test_rows_name_a_line_of_the_program(name: str, table: dict[str, Measured]) -> None:
    found = measured(name, table)
    assert found.of_user == found.rows
    assert found.named == found.rows


def test_memory_is_near_xlas_statistics(table: dict[str, Measured]) -> None:
    ratios = [measured(name, table).memory_ratio for name in FEW if real_programs()[name].available]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    assert 0.85 <= mean <= 1.15, ratios


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if name not in FEW])
def test_every_program(name: str, table: dict[str, Measured]) -> None:
    found = measured(name, table)
    assert found.is_exact
    assert found.of_user == found.rows
