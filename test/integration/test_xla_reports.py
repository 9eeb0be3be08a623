"""Reports of what XLA makes of real programs: bytes as counted in HLO by another counter, lines of the user's, axes."""

from __future__ import annotations

import jax
import pytest

from shardpass.ir.frames import is_library
from shardpass.report.hlo.programs import explain_compiled
from tools.bench.hlo_traffic import traffic
from tools.bench.real_programs import real_programs

PROGRAMS = ("mlp_adam", "transformer_remat_train", "resnet_spatial", "gru_units", "experts_dispatch", "kmeans")


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_lines_and_axes(name: str) -> None:
    program = real_programs()[name]
    compiled = program.lower().lowered.compile()
    found, counted = explain_compiled(compiled, None, None), traffic(compiled.as_text(), program.devices)
    assert found.runs == counted.collectives > 0
    assert found.total_bytes_received == counted.bytes
    assert {kind: runs for kind, (runs, _) in found.by_kind.items()} == {
        kind.replace("-", "_"): runs for kind, runs, _ in counted.by_kind
    }
    assert all(row.place.file and not is_library(row.place.file) for row in found.rows)
    if jax.config.jax_use_shardy_partitioner:
        assert all(row.axes for row in found.rows)
