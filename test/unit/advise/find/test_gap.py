"""The other programs of the gap are made for the machine and the devices of the report that it stands beside."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from shardpass.advise.find import gap
from shardpass.cost.chosen import chosen
from shardpass.report.findings import Figures
from shardpass.targets.machine import machine_of
from shardpass.targets.target import parse_target

MODULE = b"module attributes {mhlo.num_partitions = 8 : i32} { func.func @main() { return } }"


@pytest.mark.parametrize("name", ["v5e:2x4", "h100:2x4", "cpu:8"])
def test_programs_are_made_for_the_machine_and_the_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def pin_module(module: Any, **options: Any) -> Any:
        asked.append(options)
        return module, SimpleNamespace(after=Figures(1, 2, 0, 3.0))

    class Child:
        """Runs the child's function here."""

        def __init__(self, words: tuple[str, ...], **_: Any) -> None:
            self.words = words

        def communicate(self, data: bytes, timeout: float) -> tuple[bytes, None]:
            out = io.StringIO()
            monkeypatch.setattr(gap.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
            monkeypatch.setattr(gap.sys, "stdout", out)
            gap.serve(*self.words)
            return out.getvalue().encode(), None

    def decided(*given: Any) -> Any:
        asked.append({"machine": given[1], "target": given[2]})
        return Figures(0, 0, 0, 0.0)

    monkeypatch.setattr("shardpass.advise.pin.pin.pin_module", pin_module)
    monkeypatch.setattr(gap, "_decided", decided)
    monkeypatch.setattr(gap, "command", lambda module, function, words: words)
    monkeypatch.setattr(gap.subprocess, "Popen", Child)
    target = parse_target(name)
    machine = machine_of(target)
    rows = gap.others(MODULE, machine, 10.0, target)
    assert (rows[gap.PINNED].bytes, rows[gap.PINNED].seconds) == (1, 3.0)
    assert [(chosen(one["machine"]), one["target"]) for one in asked] == [(machine, target)] * 2
