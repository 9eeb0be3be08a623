"""The rotation of all fuzzers, with fuzzers that are made up; and one short turn of a true one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.fuzz import all as rotation
from tools.fuzz.all import FUZZERS, Account, Found, rotate, table
from tools.processes import environment, module_command


def well(seed: int) -> Iterator[Found]:
    while True:
        yield Found("ok")


def run(turns: dict[str, rotation.Turn], seconds: float = 0.3) -> tuple[dict[str, Account], list[str]]:
    accounts = {name: Account(100) for name in turns}
    told: list[str] = []
    rotate(turns, accounts, seconds, 0.01, lambda name, found: told.append(f"{name}: {found.detail}"), told.append)
    return accounts, told


def test_each_gets_its_turns_and_no_seed_twice() -> None:
    seeds: list[int] = []

    def counting(seed: int) -> Iterator[Found]:
        for number in range(seed, seed + 5):
            seeds.append(number)
            yield Found("ok" if number % 2 else "error")

    accounts, told = run({"counting": counting, "well": well})
    assert seeds == list(range(100, 100 + len(seeds)))
    assert len(seeds) > 10
    assert accounts["well"].cases
    assert told.count("well") > 2, "it is said at the end of each turn"
    assert not accounts["counting"].failures


def test_a_fuzzer_that_fails_goes_on() -> None:
    def failing(seed: int) -> Iterator[Found]:
        yield Found("broken", f"seed {seed}", "python -m again")
        raise ValueError("torn")

    accounts, told = run({"failing": failing, "well": well})
    assert told[:3] == ["failing: seed 100", "failing: 101: ValueError: torn", "failing"]
    assert "failing: seed 102" in told
    assert {f.kind for f in accounts["failing"].failures} == {"broken", "raised"}
    assert accounts["well"].cases
    rows = [line.split() for line in table(accounts).splitlines()]
    count = accounts["failing"].cases
    assert rows[1][:5] == ["failing", str(count), "0", "0", str(count)]
    assert rows[-1][0] == "all"


def test_the_end_of_a_turn_closes_the_fuzzer() -> None:
    closed = []

    def held(seed: int) -> Iterator[Found]:
        try:
            yield from well(seed)
        finally:
            closed.append(seed)

    run({"held": held}, 0.05)
    assert len(closed) > 1


@pytest.mark.parametrize(("kind", "status"), [("ok", 0), ("error", 0), ("wrong", 1)])
def test_the_command(
    kind: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def turn(seed: int) -> Iterator[Found]:
        yield Found(kind, f"seed {seed}", "python -m again")

    monkeypatch.setattr(rotation, "FUZZERS", {"one": lambda stack: turn})
    monkeypatch.setattr(
        sys, "argv", ["all", "--minutes", "0.001", "--seed", "7", "--out", str(tmp_path / "found.json")]
    )
    assert rotation.main() == status
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["seed"] == 7
    assert found["fuzzers"]["one"]["kinds"][kind] >= 1
    assert bool(found["fuzzers"]["one"]["failures"]) == bool(status)
    out = capsys.readouterr().out
    assert ("python -m again" in out) == bool(status)
    assert out.splitlines()[-1].startswith("all")


def test_an_interrupt_prints_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def turn(seed: int) -> Iterator[Found]:
        yield Found("wrong", "it differs", "again")
        raise KeyboardInterrupt

    monkeypatch.setattr(rotation, "FUZZERS", {"one": lambda stack: turn})
    monkeypatch.setattr(sys, "argv", ["all", "--minutes", "1"])
    assert rotation.main() == 1
    assert "stopped" in (out := capsys.readouterr().out)
    assert out.splitlines()[-2].split()[:5] == ["one", "1", "0", "0", "1"]


def test_true_ones(tmp_path: Path) -> None:
    """In a process of its own: the comparison with XLA forks, which JAX's threads do not bear."""
    names, out = ("sharding", "redistribute-reference"), tmp_path / "found.json"
    words = ["--minutes", "0.1", "--seed", "9000000", "--out", str(out), "--only", *names]
    done = subprocess.run(
        module_command("tools.fuzz.all", *words), capture_output=True, text=True, timeout=300, env=environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())["fuzzers"]
    assert set(found) == set(names) <= FUZZERS.keys()
    assert all(one["first"] == 9_000_000 and one["cases"] for one in found.values())
