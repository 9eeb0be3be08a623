"""What a test expects of collectives, and the table that a failure prints."""

from __future__ import annotations

from typing import Any

import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.report.collectives import Collective, Collectives
from shardpass.testing.expectation import CollectivesError, is_at, read_expectation, violations

GATHER = Collective(
    "all_gather", ("data", "model"), 2, 4096, "w", file="a/model.py", line=41, function="Net.attention.f"
)
SUM = Collective("all_reduce", ("data",), 3, 1024, file="a/train.py", line=7, function="step", direction="backward")
PROGRAM = Collectives("step", 8, (("data", 4), ("model", 2)), "xla", (GATHER, SUM), 5120, 2048)


def broken(**given: Any) -> list[tuple[str, str, str]]:
    parts = {"expect": None, "never": (), "at_most": None, "memory_at_most": None, "only_at": None, **given}
    return [(one.what, one.expected, one.got) for one in violations(PROGRAM, read_expectation(**parts))]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"expect": {"all_gather": 2, ("all_reduce", "data"): 3, ("all_to_all", ("data",)): 0}},
        {"expect": {("all_gather", ("model", "data")): 2}},
        {"never": ["all_to_all", ("all_reduce", ("model",))]},
        {"never": ("all_reduce", ("model",))},  # one pair
        {"never": "all_to_all"},
        {"at_most": 5120, "memory_at_most": "2KiB"},
        {"only_at": ["model.py:attention", "train.py:7"]},
        {"only_at": ["model.py:Net.*", "a/train.py"]},
    ],
)
def test_met(given: dict[str, Any]) -> None:
    assert broken(**given) == []


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ({"expect": {"all_gather": 1}}, ("all_gather", "1", "2 (4.0 KiB)")),
        ({"expect": {("all_gather", "data"): 1}}, ("all_gather over data", "1", "0 (0 B)")),
        ({"never": [("all_gather", "model")]}, ("all_gather over model", "never", "2 (4.0 KiB)")),
        ({"at_most": 5119}, ("bytes received", "at most 5,119 B", "5,120 B")),
        ({"memory_at_most": "1KiB"}, ("memory of a device", "at most 1.0 KiB", "2.0 KiB")),
        ({"only_at": "model.py"}, ("collectives", "only at model.py", "1 other line")),
        ({"only_at": []}, ("collectives", "only at no line", "2 other lines")),
    ],
)
def test_broken(given: dict[str, Any], row: tuple[str, str, str]) -> None:
    assert broken(**given) == [row]


@pytest.mark.parametrize(
    ("place", "at"),
    [
        ("model.py", True),
        ("odel.py", False),
        ("*.py", True),
        ("model.py:41", True),
        ("model.py:4", False),
        ("model.py:attention", True),
        ("model.py:Net.attention", True),
        ("model.py:Net", True),
        ("model.py:att", False),
        ("model.py:attention.*", True),
    ],
)
def test_places(place: str, at: bool) -> None:
    assert is_at(GATHER, place) is at


def test_the_table_shows_each_collective_once() -> None:
    expectation = read_expectation({"all_gather": 0}, ["all_gather"], "1KiB", None, None)
    error = CollectivesError(PROGRAM, violations(PROGRAM, expectation), "drop the constraint")
    assert str(error).count("model.py:41") == 1
    assert "model.py:41 in Net.attention.f: 2 x all_gather over data, model, w" in " ".join(str(error).split())
    assert str(error).endswith("\n\ndrop the constraint")


@pytest.mark.parametrize(
    "given",
    [
        {"expect": ["all_gather"]},
        {"expect": {"allgather": 1}},
        {"expect": {"all_gather": -1}},
        {"expect": {"all_gather": "1"}},
        {"never": ["gather"]},
        {"never": [("all_gather", ("a",), 1)]},
        {"at_most": "many"},
    ],
)
def test_expectations_of_another_form_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ShardpassError):
        broken(**given)
