"""The redistribution benchmark: its problems by hand, and a tiny run of all four programs."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tools.bench.redistribute import main
from tools.bench.redistribute_samples import MESHES, Problem, named, paper, sample

ROWS = Problem("rows", (2, 4), (8, 6), ("ab", ""), ("", "a"))


def test_a_problem_survives_json() -> None:
    assert Problem.from_json(json.loads(json.dumps(asdict(ROWS)))) == ROWS
    assert ROWS.devices == 8


@pytest.mark.parametrize(("shape", "uneven"), [((8, 6), False), ((12, 6), True), ((8, 5), True)])
def test_a_problem_is_uneven_where_a_dimension_does_not_divide(shape: tuple[int, ...], uneven: bool) -> None:
    """Rows over 2 * 4 devices, then columns over 2."""
    assert Problem("", (2, 4), shape, ("ab", ""), ("", "a")).uneven == uneven


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("uneven", [False, True])
def test_samples_are_of_the_size_and_kind_asked_for(mesh: str, uneven: bool) -> None:
    low, high = 1e6, 2e6
    for index in range(4):
        problem = sample(mesh, 3, index, low, high, uneven)
        assert problem == named(problem.name, low, high)
        assert problem.mesh == MESHES[mesh]
        assert problem.uneven == uneven
        assert problem.source != problem.target
        assert 0.7 * low <= 4 * math.prod(problem.shape) <= 1.4 * high


def test_the_problems_of_the_paper_divide() -> None:
    assert [(p.name, p.devices, p.uneven) for p in paper()] == [(f"P{n}", 8, False) for n in (1, 2, 3, 4)]


def test_a_tiny_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    sizes = ["--mesh", "2x4", "--problems", "1", "--uneven", "0", "--min-mb", "0.05", "--max-mb", "0.1"]
    monkeypatch.setattr(sys, "argv", ["redistribute", *sizes, "--repeats", "1", "--out", str(file)])
    assert main() == 0
    (row,) = json.loads(file.read_text())
    assert row["mesh"] == [2, 4]
    assert {"rink", "best", "xla"} <= set(row["ways"])
    assert row["ways"]["best"]["wire"] <= row["ways"]["rink"]["wire"]
