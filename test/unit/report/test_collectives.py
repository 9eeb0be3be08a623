"""Normalized collectives: forms that compilers write differently are equal."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

import shardpass
from shardpass.diagnostics import Place
from shardpass.report.collectives import Collectives, collectives_of, collectives_of_json, function_at
from shardpass.report.report import Report
from shardpass.report.rows import Row

TILE = "tensor<8x4xf32>"


def report(*rows: Row) -> Report:
    return Report("m", 4, (("x", 2), ("y", 2)), rows, partitioner="xla")


def test_arrays_are_counted_and_loops_multiply() -> None:
    combined = report(Row("all_reduce", ("x",), 2, 256, f"{TILE}, {TILE}", times=3))
    apart = report(*[Row("all_reduce", ("x",), 2, 128, TILE, times=3)] * 2)
    for one in (combined, apart):
        (row,) = collectives_of(one).rows
        assert (row.kind, row.axes, row.count, row.bytes) == ("all_reduce", ("x",), 6, 768)


def test_a_sum_of_slices_is_a_reduce_scatter() -> None:
    """Of 128 bytes over 2 devices an all_reduce receives 128 bytes, and a reduce_scatter 64."""
    on_cpu = collectives_of(report(Row("all_reduce", ("x",), 2, 128, TILE, sliced=True)))
    on_tpu = collectives_of(report(Row("reduce_scatter", ("x",), 2, 64, TILE)))
    assert on_cpu == on_tpu
    assert on_cpu.bytes_received == 64


def test_a_branch_that_receives_less_counts_nothing() -> None:
    rows = (Row("all_gather", ("x",), 2, 64, TILE), Row("all_gather", ("y",), 2, 8, TILE, counted=False))
    assert collectives_of(report(*rows)).by_key == {("all_gather", ("x",)): (1, 64)}


def test_json_of_the_value_and_of_the_report_read_back() -> None:
    rows = (
        Row("all_gather", ("x", "y"), 4, 64, TILE, array="w[3]", place=Place("m.py", 7, 2), receivers=(0, 2)),
        Row("all_reduce", ("x",), 2, 128, TILE, sliced=True, direction="backward"),
    )
    value = collectives_of(report(*rows))
    assert Collectives.from_dict(json.loads(value.json())) == value
    assert collectives_of_json(json.loads(report(*rows).json())) == value
    assert [row.axes for row in value.rows] == [("x", "y"), ("x",)]
    assert value.count("all_gather", "y", "x") == value.count("all_gather") == 1
    assert value.count("all_gather", "x") == 0


SOURCE = """\
class Model:
    @staticmethod
    def attention(q):
        def inner(k):
            return k
        return inner(q)


async def step(x): return x
y = step
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, ""),
        (2, "Model.attention"),
        (3, "Model.attention"),
        (5, "Model.attention.inner"),
        (6, "Model.attention"),
        (9, "step"),
        (10, ""),
    ],
)
def test_functions_around_lines(line: int, name: str) -> None:
    assert function_at(SOURCE, line) == name


def test_text_that_is_no_python_has_no_functions() -> None:
    assert function_at("def (", 1) == ""


def test_a_table_of_pandas_has_a_row_for_each_collective(monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas need not be installed here: its DataFrame takes the rows as dicts."""
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=list))
    found = shardpass.explain((Path(__file__).parents[3] / "examples" / "mlp_train_step.mlir").read_text())
    rows = found.to_pandas()
    assert [row["kind"] for row in rows] == [row.kind for row in found.rows]
    assert sum(row["bytes_received"] for row in rows) == found.total_bytes_received
