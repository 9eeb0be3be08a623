"""Names of values: paths, variables, expressions, and nothing from files that are none of the user's business."""

from __future__ import annotations

from pathlib import Path

import pytest

import shardpass
from shardpass.cli.explain import explain
from shardpass.diagnostics import Place
from shardpass.ir.frames import Frame
from shardpass.report.naming import Sources
from shardpass.runtime.run_report import labels_of

SOURCE = """h = jnp.tanh(x @ w)
y: Array = layer(
    h,
    scale=2,
)
return a_function_of_a_very_long_name(first_argument, second_argument, third)
z = x @ w + (é @ b)
"""


@pytest.fixture
def sources(tmp_path: Path) -> tuple[Sources, str]:
    (tmp_path / "f.py").write_text(SOURCE)
    return Sources([tmp_path]), str(tmp_path / "f.py")


@pytest.mark.parametrize(
    ("line", "column", "end_line", "end", "name"),
    [
        (1, 4, 1, 19, "h"),
        (1, 13, 1, 18, "x @ w"),
        (2, 11, 5, 1, "y"),
        (6, 7, 6, 77, "a_function_of_a_very_long_name(...)"),
        (7, 13, 7, 19, "é @ b"),  # columns count bytes
        (1, 4, 0, 0, "h"),  # no end: the longest expression that starts there
        (7, 4, 0, 0, "z"),
        (9, 0, 9, 4, ""),
        (1, 4, 1, 15, ""),  # no expression
    ],
)
def test_expressions(sources: tuple[Sources, str], line: int, column: int, end_line: int, end: int, name: str) -> None:
    read, file = sources
    assert read.expression(Frame(Place(file, line, column), end_line, end)) == name


def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(SOURCE)
    inside = tmp_path / "work"
    inside.mkdir()
    frame = Frame(Place(str(tmp_path / "f.py"), 1, 4), 1, 19)
    assert Sources([inside]).expression(frame) == ""
    assert Sources([inside]).line(frame.place) == ""
    assert Sources(None).expression(frame) == "h"


def test_arguments_of_mlir_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text("func.func @main(%weights: tensor<4xf32>) {\n  %0 = stablehlo.abs %weights\n")
    read = Sources([tmp_path])
    assert read.expression(Frame(Place(str(tmp_path / "m.mlir"), 1, 17))) == "%weights"
    assert read.expression(Frame(Place(str(tmp_path / "m.mlir"), 2, 8))) == "%0"


def test_arguments_of_one_name_are_told_apart() -> None:
    """TensorFlow calls all of them XLA_Args."""
    rows, columns = '{mhlo.sharding = "{devices=[2,1]<=[2]}"}', '{mhlo.sharding = "{devices=[1,2]<=[2]}"}'
    kinds = ["tensor<8x8xf32>", "tensor<16x16xf32>"]
    arguments = ", ".join(f'%{name}: {kind} {rows} loc("XLA_Args")' for name, kind in zip("ab", kinds, strict=True))
    results = ", ".join(f"{kind} {columns}" for kind in kinds)
    text = f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main({arguments}) -> ({results}) {{
    return %a, %b : {", ".join(kinds)}
  }}
}}"""
    found = explain(text.encode(), "two.mlir", effort=0)
    assert {row.array: row.type for row in found.rows} == {"XLA_Args 0": "f32[8,8]", "XLA_Args 1": "f32[16,16]"}
    partitioned = shardpass.run_pipeline(text, "partition")
    assert labels_of(partitioned)[:2] == ("XLA_Args 0", "XLA_Args 1")
