"""Mistakes in programs that XLA partitions: the first finding is the mistake, and its diff saves what the finding says.

Witness: the program with the diff applied to its source, lowered and compiled anew.
"""

from __future__ import annotations

import dataclasses
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import daily

import shardpass
from shardpass.advise.find import search
from shardpass.cli.check import main
from shardpass.report.text import text
from tools.bench.unified_diff import applied

TRANSFORMER = (Path(__file__).parent / "transformer.txt").read_text()
CONSTRAINT = 'u = jax.lax.with_sharding_constraint(u, NamedSharding(mesh, P("data")))'


def explained(folder: Path, source: str) -> Any:
    """The report of ``jitted`` in a file of that source."""
    file = folder / f"train{len(list(folder.iterdir()))}.py"
    file.write_text(source)
    module = runpy.run_path(str(file))
    return shardpass.explain(module["jitted"], *module["arguments"], partitioner="xla")


def transformer(layers: int, leftover: str = "pass", tokens: str = 'P("data")') -> str:
    return TRANSFORMER.replace("#LAYERS", str(layers)).replace("#LEFTOVER", leftover).replace("#TOKENS", tokens)


@pytest.fixture(scope="module", autouse=True)
def _drafts() -> Iterator[None]:
    """Searches draft fewer edits, of which a third suffices here; all of them in a whole session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MOST_DRAFTED", 48 if daily.is_whole() else 16)
        yield


def check_diff(folder: Path, source: str, report: Any) -> None:
    """The diff of the first finding, applied, leads to the figures that the finding says, and these are less."""
    first = report.findings[0]
    edited = explained(folder, applied(source, first.diff))
    assert first.before.bytes == report.total_bytes_received
    assert first.before.memory == report.memory.total
    assert first.after.bytes == edited.total_bytes_received
    assert first.after.memory == edited.memory.total


@pytest.fixture(scope="module")
def leftover(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return explained(tmp_path_factory.mktemp("leftover"), transformer(1, leftover=CONSTRAINT))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return explained(tmp_path_factory.mktemp("whole"), transformer(1, tokens="P()"))


@pytest.mark.long  # a search takes 20 seconds of the processor
def test_a_leftover_constraint_in_a_transformer(tmp_path: Path, leftover: Any) -> None:
    source, report = transformer(1, leftover=CONSTRAINT), leftover
    first = report.findings[0]
    assert first.action == "drop"
    assert first.place.line == source.splitlines().index(f"    {CONSTRAINT}") + 1
    assert applied(source, first.diff) == source.replace(f"    {CONSTRAINT}\n", "")
    check_diff(tmp_path, source, report)
    assert first.after.bytes < first.before.bytes
    assert first.after.flops < first.before.flops


@pytest.mark.long  # a search takes 20 seconds of the processor
def test_tokens_that_nothing_splits_in_a_transformer(tmp_path: Path, whole: Any) -> None:
    """Each of 4 groups of devices computes the whole batch: with the batch split, a quarter of all products."""
    source, report = transformer(1, tokens="P()"), whole
    first = report.findings[0]
    assert [one.code for one in report.findings][:1] == [("in_shardings: tokens = P('data')",)]
    assert applied(source, first.diff) == transformer(1)
    check_diff(tmp_path, source, report)
    assert first.after.flops * 4 == first.before.flops
    assert first.after.memory < first.before.memory


def test_findings_follow_the_table_and_are_in_json(leftover: Any) -> None:
    report = leftover
    lines = text(report, 200).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("findings, compiled by XLA"))
    assert lines[head + 1].startswith("1. train0.py:23: the constraint of `u` to P('data') costs ")
    assert head > next(place for place, line in enumerate(lines) if "all_reduce" in line)
    first, *others = json.loads(report.json())["findings"]["found"]
    assert all(one["after"]["memory"] < one["before"]["memory"] for one in others)  # of memory, at no cost
    assert first["annotations"][0]["kind"] == "constraint"
    assert first["after"]["bytes"] < first["before"]["bytes"]


def test_findings_are_looked_for_once(whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = whole.findings
    monkeypatch.setattr("shardpass.advise.find.findings.shared", None)
    assert dataclasses.replace(whole, trips=3).findings is first


MODULE = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%x: tensor<256x128xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"},
      %up: tensor<128x512xf32> {mhlo.sharding = "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"},
      %down: tensor<512x128xf32> {mhlo.sharding = "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"})
      -> (tensor<256x128xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}) {
    %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<256x128xf32>, tensor<128x512xf32>) -> tensor<256x512xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"} : (tensor<256x512xf32>) -> tensor<256x512xf32>
    %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x128xf32>) -> tensor<256x128xf32>
    return %2 : tensor<256x128xf32>
  }
}
"""  # noqa: E501  IR is not wrapped


def test_check_reports_edits_of_a_module_in_gspmds_notation(tmp_path: Path, capsys: Any) -> None:
    """XLA gathers `up`, of which a device lacks half, 128 KiB; without, it adds up 64 x 128 over two, 32 KiB."""
    file = tmp_path / "step.mlir"
    file.write_text(MODULE)
    assert main([str(file), "--perf", "--partitioner", "xla"]) == 0
    said = capsys.readouterr().err
    line = MODULE.splitlines().index(next(row for row in MODULE.splitlines() if "@Sharding" in row)) + 1
    assert f"{file}:{line}:" in said
    assert "[SP810]" in said
    assert "costs 128.0 KiB of 160.0 KiB received" in said
    assert "with the edit 32.0 KiB are received" in said


def test_shardpasss_own_program_has_none() -> None:
    assert shardpass.explain(MODULE).findings is None
