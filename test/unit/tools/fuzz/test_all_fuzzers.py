"""The rotation of all fuzzers: seeds, failures, and two fuzzers of the table."""

from __future__ import annotations

import subprocess

import pytest

from tools.fuzz import all as rotation
from tools.fuzz.all import SEED, STEP, TURNS, main


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are asked for; those of the module ``bad`` fail."""
    found: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        found.append(command[command.index("-m") + 1 :])
        if len(found) == 4:
            raise KeyboardInterrupt
        return subprocess.CompletedProcess(command, int("bad" in command), "one case\nit differs", "")

    monkeypatch.setattr(rotation.subprocess, "run", run)
    return found


def test_turns_have_fresh_seeds_and_failures_are_named(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rotation, "TURNS", {"good": ("good", "--seed", SEED), "bad": ("bad", SEED)})
    assert main(["--minutes", "1", "--seed", "7"]) == 1
    seeds = [str(7 + number * STEP) for number in range(4)]
    assert commands == [
        ["good", "--seed", seeds[0]],
        ["bad", seeds[1]],
        ["good", "--seed", seeds[2]],
        ["bad", seeds[3]],
    ]
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "seed 7"
    assert out[-2:] == ["stopped", f"python -m bad {seeds[1]}"]
    assert "it differs" in out


@pytest.mark.parametrize("name", ["sharding", "redistribute-reference"])
def test_the_command_of_a_fuzzer(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With few cases, in a process of its own."""
    few = {"--count": "3", "--seconds": "1", "--problems": "2"}
    words = list(TURNS[name])
    for at, word in enumerate(words):
        if word in few:
            words[at + 1] = few[word]
    monkeypatch.setattr(rotation, "TURNS", {name: words})
    assert main(["--minutes", "0.0001", "--seed", "9000000"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 turns, 0 failed"
