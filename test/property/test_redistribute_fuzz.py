"""Random redistributions held to the laws of ``tools/prove/redistribution_laws.py``: a fixed share of each campaign."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import daily

from tools.fuzz import random_redistribution as samples
from tools.fuzz import redistribute as fuzz
from tools.prove import redistribution_laws as laws
from tools.prove.law import Broken, hold
from tools.prove.redistribution_arrays import expect
from tools.prove.redistribution_problems import Problem, Side

FIRST_SEED = 9_000_000  # none of those that the long runs begin with


# ---------------------------------------------------------------- the campaigns

SHARES = {"simulator": 600, "exhaustive-2x4": 242, "xla": 30, "reference": 25}


@pytest.mark.parametrize("campaign", SHARES)
def test_campaign(campaign: str) -> None:
    count = daily.scaled(SHARES[campaign], 3)
    first = 0 if campaign.startswith("exhaustive") else FIRST_SEED
    first += daily.seed() % (SHARES[campaign] // count) * count  # a third each day, all in three days
    outcomes = list(fuzz.run(campaign, first, count, xla=False))
    failed = [f"{o.number}: {o.kind}: {o.detail}" for o in outcomes if o.kind != "ok"]
    assert not failed, "\n".join(failed)
    assert [o.number for o in outcomes] == list(range(first, first + count))
    assert sum("moves" in o.tags for o in outcomes) > count / 5


def test_shardy_is_beaten_or_met_where_it_is_right() -> None:
    outcomes = list(fuzz.run("shardy", FIRST_SEED, 12))
    assert [o.detail for o in outcomes if o.kind != "ok"] == []
    tags = Counter(tag for o in outcomes for tag in o.tags)
    assert tags["as many bytes as Shardy"] + tags["fewer bytes than Shardy"] >= 6


# ---------------------------------------------------------------- what problems are made of


def test_every_kind_of_problem_is_there() -> None:
    """The laws would prove little if all problems were alike."""
    made = [samples.random_problem(seed) for seed in range(1000)]
    tags = Counter(tag for problem in made for tag in laws.kinds(problem))
    for kind in ("uneven", "devices in another order", "sub-axes", "partial sums", "one device"):
        assert tags[kind] > 30, kind
    for kind in ("no elements", "scalar", "partial sums kept", "partial maxima or minima"):
        assert tags[kind] > 5, kind
    assert {problem.devices for problem in made} >= {1, 5, 6, 7, 8, 15, 16, 24}
    assert {len(problem.shape) for problem in made} == set(range(7))
    assert sum(problem.communicates for problem in made) > 500


def test_problems_are_the_same_for_the_same_seed() -> None:
    assert samples.random_problem(3) == samples.random_problem(3)
    assert samples.random_problem(3) != samples.random_problem(4)


def test_tiles_by_the_arithmetic_of_the_mesh_are_those_of_the_sharding() -> None:
    for seed in range(400):
        problem = samples.random_problem(seed)
        for side in (problem.source, problem.target):
            if side.kind != "tiled":
                continue
            sharding, shape = side.sharding(), problem.shape
            assert side.tile(shape) == sharding.tile_shape(shape)
            places = side.held(shape, problem.devices)
            starts = [[min(s.start, n) for s, n in zip(where, shape, strict=True)] for where in places]
            assert starts == sharding.tile_offsets(shape, problem.devices).tolist()
            again = Side.of(str(sharding))
            if again.kind == "tiled":
                assert again.held(shape, problem.devices) == places
                pairs = set(zip(again.summands(problem.devices), side.summands(problem.devices), strict=True))
                assert len(pairs) == len(set(side.summands(problem.devices)))


def test_every_placement_is_enumerated_once() -> None:
    """Each of k axes stands on one of two dimensions or on none, at any place: counted by its own formula."""
    for mesh, sizes in samples.SMALL_MESHES.items():
        k = len(sizes)
        # choose how many are placed, in which order, and where the order is cut in two
        count = sum((n + 1) * int(np.prod(range(k - n + 1, k + 1))) for n in range(k + 1))
        assert len(set(samples.placements(mesh))) == len(samples.placements(mesh)) == count
        assert samples.exhaustive(mesh) == 2 * count**2
        made = [samples.exhaustive_problem(mesh, number) for number in range(samples.exhaustive(mesh))]
        assert len({(p.shape, p.source.dims, p.target.dims) for p in made}) == len(made)


# ---------------------------------------------------------------- what the laws see


@pytest.fixture(scope="module")
def moving() -> Any:
    return Problem(0, (8, 6), "i32", Side.of("{devices=[4,1]<=[4]}"), Side.of("{devices=[2,2]<=[4]}"), 4)


def test_a_wrong_target_is_seen(moving: Any) -> None:
    plans, _ = laws.planned(moving)
    laws.evaluated(moving, plans)
    other = replace(moving, target=Side.of("{devices=[2,2]<=[2,2]T(1,0)}"))
    with pytest.raises(Broken, match="NumPy, best: device 1 ends with"):
        laws.evaluated(other, plans)


def test_a_false_account_is_seen(moving: Any) -> None:
    plans, _ = laws.planned(moving)
    best = plans["best"]
    less = replace(best, received=best.received - 4)
    with pytest.raises(Broken, match="its ops move"):
        laws.evaluated(moving, {"best": less})
    with pytest.raises(Broken, match="less than the bound"):
        laws.obeys(moving, "best", replace(best, lower_bound_bytes=best.bytes_received + 1))
    with pytest.raises(Broken, match="operand and result of an op take"):
        laws.evaluated(moving, {"best": replace(best, peak_live_bytes=0)})
    with pytest.raises(Broken, match="more than the greater tile"):
        laws.obeys(moving, "best", replace(best, source_tile=(8, 6)))


def test_wrong_elements_are_seen(moving: Any) -> None:
    whole = np.arange(48, dtype=np.int32).reshape(8, 6)
    tiles = [whole[where].copy() for where in moving.target.held(moving.shape, 4)]
    expect(moving, whole, tiles, "somebody")
    tiles[2][1, 2] = -1
    with pytest.raises(Broken, match=r"somebody: device 2 ends with -1 at \[1, 2\] of its tile, not 32"):
        expect(moving, whole, tiles, "somebody")


def test_a_process_that_ends_is_one_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A child that dies at its second problem, and another that goes on behind it."""
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    if (n := json.loads(line)) == 1: os.abort()\n"
        "    print('@' + json.dumps(dict(number=n, kind='ok', detail='', tags=[])), flush=True)\n"
    )
    monkeypatch.setattr(fuzz, "CHILD", [sys.executable, str(child)])
    outcomes = list(fuzz.run("simulator", 0, 4))
    assert [(o.number, o.kind) for o in outcomes] == [(0, "ok"), (1, "abort"), (2, "ok"), (3, "ok")]
    assert "status -6" in outcomes[1].detail


def test_a_process_that_hangs_is_one_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    if (n := json.loads(line)) == 0: time.sleep(60)\n"
        "    print('@' + json.dumps(dict(number=n, kind='ok', detail='', tags=[])), flush=True)\n"
    )
    monkeypatch.setattr(fuzz, "CHILD", [sys.executable, str(child)])
    monkeypatch.setattr(fuzz, "SECONDS_PER_PROBLEM", 0.5)
    assert [(o.number, o.kind) for o in fuzz.run("simulator", 0, 2)] == [(0, "hang"), (1, "ok")]


def test_a_process_that_cannot_start_is_no_failure_of_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = tmp_path / "child.py"
    child.write_text("import no_such_module\n")
    monkeypatch.setattr(fuzz, "CHILD", [sys.executable, str(child)])
    monkeypatch.setattr(sys, "argv", ["fuzz", "simulator", "--problems", "3"])
    assert fuzz.main() == 2
    assert "no_such_module" in capsys.readouterr().err


def test_a_failure_is_made_simpler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that no problem of rank 2 or more keeps: the simplest that fails has rank 2 and no more than that."""

    def examine(problem: Any) -> list[str]:
        hold(len(problem.shape) < 2, "two dimensions")
        return []

    broken = replace(fuzz.campaigns()["simulator"], examine=examine)
    monkeypatch.setattr(fuzz, "campaigns", lambda xla=True: {"simulator": broken})
    number = next(n for n in range(100) if len(broken.problem(n).shape) > 3)
    small, outcome = fuzz.shrunk("simulator", fuzz.Outcome(number, "broken", "two dimensions"))
    assert (small.shape, small.element, outcome.detail) == ((1, 1), "i32", "two dimensions") or 0 in small.shape
    assert not any(ref for side in (small.source, small.target) for axes in side.dims for ref in axes)


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    found = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["fuzz", "simulator", "--problems", "20", "--seed", "40", "--json", str(found)])
    assert fuzz.main() == 0
    assert capsys.readouterr().out.startswith("simulator: 20 of 20 problems from 40 on: 20 ok")
    (report,) = json.loads(found.read_text())
    assert (report["done"], report["kinds"], report["failures"]) == (20, {"ok": 20}, [])
