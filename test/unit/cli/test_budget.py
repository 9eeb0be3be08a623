"""``shardpass budget`` and ``shardpass diff`` of a module, in all formats.

The product gathers w: 7/8 of 512 B. With a replicated result it gathers that, too: 7/8 of 8 KiB.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardpass.cli import budget, diff

SPLIT, WHOLE = '[{"data"}, {}]', "[{}, {}]"
MODULE = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<256x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>})
      -> (tensor<256x8xf32> {sdy.sharding = #sdy.sharding<@mesh, RESULT>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<256x16xf32>, tensor<16x8xf32>) -> tensor<256x8xf32>
    return %0 : tensor<256x8xf32>
  }
}
"""
SPLIT_BYTES = 512 * 7 // 8
WHOLE_BYTES = SPLIT_BYTES + 256 * 8 * 4 * 7 // 8


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "step.mlir"
    path.write_text(MODULE.replace("RESULT", SPLIT))
    return path


def test_a_budget_is_checked_for_the_target_that_it_names(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget.main(["step.mlir", "--target", "cpu:8", "-o", "budget.toml"]) == 0
    text = Path("budget.toml").read_text()
    assert 'target = "cpu:8"' in text
    assert f"received = {SPLIT_BYTES}" in text
    assert budget.main(["--check"]) == 0
    assert "step.mlir: within the budget" in capsys.readouterr().out
    Path("budget.toml").write_text(text.replace("cpu:8", "abacus:8"))
    assert budget.main(["--check"]) == 1
    assert "SP908" in capsys.readouterr().err


def test_growth_is_over_the_budget_in_all_formats(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget.main(["step.mlir", "-o", "budget.toml"]) == 0
    assert budget.main(["step.mlir", "--format", "json", "-o", "old.json"]) == 0
    step.write_text(MODULE.replace("RESULT", WHOLE))
    shown = {}
    for form in ("text", "markdown", "json", "sarif", "gitlab"):
        assert budget.main(["--check", "--format", form, "-o", "report", "--sarif", "report.sarif"]) == 1
        shown[form] = Path("report").read_text()
    assert "all_gather over data: expected 1 array, 448 B, got 2 arrays, 7.4 KiB" in shown["text"]
    assert "| step.mlir | all_gather over data | 1 array, 448 B | 2 arrays, 7.4 KiB |" in shown["markdown"]
    assert not json.loads(shown["json"])["step.mlir"]["within"]
    (run,) = json.loads(shown["sarif"])["runs"]
    assert {one["ruleId"] for one in run["results"]} == {one["check_name"] for one in json.loads(shown["gitlab"])}
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "budget.toml"

    assert Path("report.sarif").read_text() == shown["sarif"]

    capsys.readouterr()
    assert diff.main(["old.json", "step.mlir", "--fail"]) == 1
    assert "appeared: 1 x all_gather over data" in " ".join(capsys.readouterr().out.split())
    assert diff.main(["old.json", "old.json", "--fail"]) == 0


def test_a_program_without_a_budget_is_shown_in_markdown(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget.main(["step.mlir", "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("### Collectives of step.mlir\n\n**448 B received**")
    assert "| 448 B | 1 | all_gather | data |" in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "PROGRAM"),
        (["step.mlir", "--format", "sarif"], "--check"),
        (["step.mlir", "--sarif", "a.sarif"], "--check"),
        (["--check", "--partitioner", "xla"], "from the budget"),
        (["--check", "--target", "cpu:8"], "from the budget"),
    ],
)
def test_bad_usage(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget.main(words) == 2
    assert why in capsys.readouterr().err
