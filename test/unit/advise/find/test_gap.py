"""The other programs of the gap are made for the machine and the devices of the report that it stands beside."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from shardpass.advise.find import gap
from shardpass.cost.chosen import chosen
from shardpass.report.findings import DECIDED, PINNED, PINNED_SO_FAR, Figures
from shardpass.targets.machine import machine_of
from shardpass.targets.target import parse_target

MODULE = b"module attributes {mhlo.num_partitions = 8 : i32} { func.func @main() { return } }"


class Child:
    """Runs the child's function here. ``lines``: how many of its lines are there when the time is over."""

    def __init__(self, patch: pytest.MonkeyPatch, lines: int | None = None) -> None:
        self.patch, self.lines, self.late = patch, lines, lines is not None

    def __call__(self, words: tuple[str, ...], **_: Any) -> Child:
        self.words = words
        return self

    def communicate(self, data: bytes = b"", timeout: float = 0.0) -> tuple[bytes, None]:
        if data:
            self.out = io.StringIO()
            self.patch.setattr(gap.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
            self.patch.setattr(gap.sys, "stdout", self.out)
            gap.serve(*self.words)
            if self.late:
                raise gap.subprocess.TimeoutExpired("", timeout)
        return "".join(self.out.getvalue().splitlines(True)[: self.lines]).encode(), None

    def kill(self) -> None:
        pass


def pinned(asked: list[Any]) -> Callable[..., Any]:
    def pin_module(module: Any, **options: Any) -> Any:
        asked.append(options)
        for seconds in (9.0, 3.0):
            options["improved"](Figures(1, 2, 0, seconds))
        return module, SimpleNamespace(after=Figures(1, 2, 0, 3.0))

    return pin_module


@pytest.mark.parametrize("name", ["v5e:2x4", "h100:2x4", "cpu:8"])
def test_programs_are_made_for_the_machine_and_the_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def decided(*given: Any) -> Any:
        asked.append({"machine": given[1], "target": given[2]})
        return Figures(0, 0, 0, 0.0)

    monkeypatch.setattr("shardpass.advise.pin.pin.pin_module", pinned(asked))
    monkeypatch.setattr(gap, "_decided", decided)
    monkeypatch.setattr(gap, "command", lambda module, function, words: words)
    monkeypatch.setattr(gap.subprocess, "Popen", Child(monkeypatch))
    target = parse_target(name)
    machine = machine_of(target)
    rows = gap.others(MODULE, machine, 10.0, target)
    assert list(rows) == [DECIDED, PINNED]
    assert (rows[PINNED].bytes, rows[PINNED].seconds) == (1, 3.0)
    assert [(chosen(one["machine"]), one["target"]) for one in asked] == [(machine, target)] * 2
    assert all("most" not in one for one in asked), "pin compiles as many variants for a report as for a user"


@pytest.mark.parametrize(("lines", "seconds"), [(1, None), (2, 9.0), (3, 3.0)])
def test_a_pin_that_takes_too_long_has_the_best_variant_until_then(
    lines: int, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardpass.advise.pin.pin.pin_module", pinned([]))
    monkeypatch.setattr(gap, "_decided", lambda *given: Figures(0, 0, 0, 0.0))
    monkeypatch.setattr(gap, "command", lambda module, function, words: words)
    monkeypatch.setattr(gap.subprocess, "Popen", Child(monkeypatch, lines))
    target = parse_target("cpu:8")
    rows = gap.others(MODULE, machine_of(target), 10.0, target)
    assert list(rows) == ([DECIDED] if seconds is None else [DECIDED, PINNED_SO_FAR])
    assert seconds is None or rows[PINNED_SO_FAR].seconds == seconds
