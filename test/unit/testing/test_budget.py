"""Budgets: files that read back, and programs that are over them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.report.collectives import Collective, Collectives
from shardpass.testing.budget import budget_of, diagnostics, excesses, read_budgets, write_budgets
from shardpass.testing.checking import check_budget, update_budget
from shardpass.testing.expectation import CollectivesError

GATHER = Collective("all_gather", ("data", "model"), 2, 4096, "w", file="model.py", line=41, function="f")
SUM = Collective("all_reduce", ("data",), 3, 100_000, file="train.py", line=7, text="x = y")
ONE = Collectives("step", 8, (("data", 4), ("model", 2)), "xla", (GATHER, SUM), 104_096, 2048)
OTHER = Collectives("s", 1, (), "shardpass", (), 0)


def test_a_file_reads_back_and_is_stable(tmp_path: Path) -> None:
    budgets = {'b.py:"q"\x7f': budget_of(OTHER), "a.py:step": budget_of(ONE, "v5e:2x4", tolerance=0.1)}
    path = tmp_path / "budget.toml"
    path.write_text(write_budgets(budgets))
    assert read_budgets(path) == budgets
    assert write_budgets(dict(reversed(budgets.items()))) == path.read_text()


def test_moved_and_renamed_lines_are_within_the_budget() -> None:
    moved = replace(ONE, rows=(replace(SUM, line=90, text="z = y"), replace(GATHER, file="b.py", function="g")))
    assert excesses(moved, budget_of(ONE)) == ()


def test_versions_of_xla_may_differ_by_a_hundredth() -> None:
    assert excesses(replace(ONE, rows=(GATHER, replace(SUM, bytes=101_000)), memory=2068), budget_of(ONE)) == ()
    (over,) = excesses(replace(ONE, memory=2069), budget_of(ONE))
    assert over.what == "memory of a device"
    assert (over.expected, over.got) == ("2,048 B", "2,069 B")  # both are 2.0 KiB


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ((GATHER, replace(SUM, count=4)), "all_reduce over data"),
        ((GATHER, replace(SUM, bytes=101_001)), "all_reduce over data"),
        ((GATHER, SUM, replace(SUM, axes=("model",), bytes=4)), "all_reduce over model"),
        ((replace(GATHER, kind="all_to_all"), SUM), "all_to_all over data, model"),
    ],
)
def test_more_is_over_the_budget(rows: tuple[Collective, ...], what: str) -> None:
    (over,) = excesses(replace(ONE, rows=rows), budget_of(ONE))
    assert over.what == what
    (row,) = diagnostics("train.py:step", [over], "budget.toml")
    assert (row.code, row.place.file) == ("SP641", over.rows[0].file)
    assert "shardpass budget train.py:step -o budget.toml" in row.remedy


def test_less_is_within_the_budget() -> None:
    assert excesses(replace(ONE, rows=(replace(SUM, count=1, bytes=5),), bytes_received=5), budget_of(ONE)) == ()


def test_files_are_updated_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    with pytest.raises(ShardpassError, match="SP642"):
        check_budget(path, "step", ONE)
    update_budget(path, "step", ONE)
    path.write_text(path.read_text().replace("memory = 2048", "memory = 2048\ntolerance = 0.5"))
    update_budget(path, "other", OTHER)
    check_budget(path, "step", ONE)
    with pytest.raises(CollectivesError, match=r"all_gather over data, model: expected 0 arrays, 0 B, got 2 arrays"):
        check_budget(path, "other", ONE)
    update_budget(path, "step", replace(ONE, memory=9))
    assert read_budgets(path)["step"].tolerance == 0.5
    assert [one.name for one in tmp_path.iterdir()] == ["b.toml"]


@pytest.mark.parametrize("text", ["= 3", "[a]\nmesh = ''", "a = 3", "[a]\npartitioner='xla'\nmesh=''\nreceived='x'"])
def test_files_of_another_form_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_text(text)
    with pytest.raises(ShardpassError, match="SP640"):
        check_budget(path, "a", ONE)
