"""The compile benchmark: a run from end to end, counts by hand, and what is said of a peer that refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import daily

from tools.bench import compile as bench
from tools.bench.compile import Result, count_ops, main, short
from tools.bench.compile_programs import PROGRAMS, MeshSize


def test_ops_are_counted_in_loops_and_not_in_reducers() -> None:
    """Two constants, a reduce (its region's two ops do not count), a loop of 2 + 2 ops, and the return."""
    text = """func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %last = stablehlo.while(%i = %n) : tensor<i32>
        cond { %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %k = stablehlo.add %i, %one : tensor<i32>
             stablehlo.return %k : tensor<i32> }
      return %sum, %last : tensor<f32>, tensor<i32> }"""
    assert count_ops(text) == 2 + 1 + 1 + 4 + 1


def test_a_program_for_4096_devices_needs_none_of_them() -> None:
    text = PROGRAMS["transformer-2"](MeshSize(64, 64)).lower(MeshSize(64, 64))
    assert "mhlo.num_partitions = 4096" in text
    assert '<["data"=64, "model"=64]>' in text


def test_every_program_lowers_and_unrolled_ones_grow_with_their_layers() -> None:
    size = MeshSize(4, 2)
    small = [name for name in PROGRAMS if not name.endswith(("24", "48", "96"))]
    ops = {name: PROGRAMS[name](size).lower(size).count("stablehlo.") for name in small}
    assert ops["transformer-12"] > 5 * ops["transformer-2"]
    assert ops["scan-12"] < ops["transformer-12"] / 3


def test_a_pass_is_named_without_its_anchor_and_options() -> None:
    assert short("func.func(sdy-insert-explicit-reshards{enable-full-version=true})") == "sdy-insert-explicit-reshards"


@pytest.mark.parametrize("program", daily.drawn(["transformer-2", "scan-12"], 1))
def test_a_run(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that Shardy takes or one that it refuses, measured in a child."""
    file = tmp_path / "found.json"
    assert main(["--programs", program, "--repeat", "1", "--mesh", "2x2", "--json", str(file)]) == 0
    (found,) = (Result(**row) for row in json.loads(file.read_text()))
    assert (found.program, found.mesh) == (program, "2x2")
    assert list(found.passes) == list(dict.fromkeys(bench.OURS))
    assert 0 < found.total < found.first * 2
    shown = capsys.readouterr().out
    assert "shardpass-propagate" in shown
    if found.refused:
        assert program != "transformer-2"
        assert (found.shardy, found.ratio) == ({}, None)
        assert f"Shardy does not take scan-12: {found.refused}" in shown
    else:
        assert set(found.shardy) == set(map(short, bench.SHARDY))
        assert found.ratio == pytest.approx(found.total / sum(found.shardy.values()))


@pytest.mark.parametrize("bad", [["--mesh", "8"], ["--mesh", "0x2"], ["--repeat", "0"], ["--programs", "none"]])
def test_bad_usage_is_said(bad: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(bad)
    assert "error: " in capsys.readouterr().err
