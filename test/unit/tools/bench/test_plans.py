"""tools/bench/plans.py: what is planned, and how two runs compare."""

from __future__ import annotations

import json

import pytest

from tools.bench import plans
from tools.bench.plans import Plan


def test_what_became_dearer_comes_first_and_is_named() -> None:
    """Prices are seconds, as all prices of plans are, and are shown in microseconds."""
    before = {"a": Plan(1e-4, 10, 5, 0.1), "b": Plan(2e-4, 20, 5, 0.1), "c": Plan(0.0, 0, 0, 0.0)}
    now = {"a": Plan(0.9e-4, 9, 4, 0.1), "b": Plan(2.06e-4, 21, 4, 0.1), "c": Plan(0.0, 0, 0, 0.0), "d": before["a"]}
    rows, lines = plans.compared(now, before)
    assert [row[0] for row in rows] == ["b", "a"]  # c did not change, and d was not there
    assert rows[0][1:4] == ["206.000", "200.000", "1.0300"]
    assert "price in us of 3 programs: 296, before 300 (0.9867)" in lines
    assert lines[-1] == "dearer by more than 1%: b"
    assert plans.worse(now, before)  # b by 3%
    assert not plans.worse({"a": now["a"]}, before)
    assert plans.worse({"b": Plan(2.01e-4, 20, 5, 0.1)}, before)  # by less than 1%, but nothing outweighs it


def test_examples_are_planned(tmp_path, capsys, monkeypatch) -> None:
    """``x @ w`` of a shard_map leaves nothing to decide, so its plan costs the same in two runs."""
    monkeypatch.setattr(plans, "set_devices", lambda: None)  # the tests have theirs
    out = tmp_path / "plans.json"
    assert plans.main(["examples.shard_map_matmul", "--json", str(out)]) == 0
    assert set(json.loads(out.read_text())) >= {"examples.shard_map_matmul", "examples.shard_map_matmul.sdy"}
    assert plans.main(["examples.shard_map_matmul", "--against", str(out)]) == 0
    assert "dearer by more than 1%: none" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        plans.main(["nothing"])
