"""The pinned program of the gap is compiled for the devices of the report that it stands beside."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from shardpass.advise import gap
from shardpass.report.findings import Figures
from shardpass.targets.target import parse_target

MODULE = b"module attributes {mhlo.num_partitions = 8 : i32} { func.func @main() { return } }"


@pytest.mark.parametrize("name", ["v5e:2x4", "h100:2x4", ""])
def test_pins_are_compiled_for_the_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def pin_module(module: Any, **options: Any) -> Any:
        asked.append(options["target"])
        return module, SimpleNamespace(after=Figures(1, 2, 0, 3.0))

    class Child:
        """Runs the child's function here."""

        def __init__(self, words: list[str], **_: Any) -> None:
            self.words = words

        def communicate(self, data: bytes, timeout: float) -> tuple[bytes, None]:
            out = io.StringIO()
            monkeypatch.setattr(gap.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
            monkeypatch.setattr(gap.sys, "stdout", out)
            gap.serve(*self.words)
            return out.getvalue().encode(), None

    monkeypatch.setattr("shardpass.pinning.pin.pin_module", pin_module)
    monkeypatch.setattr(gap, "_decided", lambda data, machine: Figures(0, 0, 0, 0.0))
    monkeypatch.setattr(gap, "command", lambda module, function, words: words)
    monkeypatch.setattr(gap.subprocess, "Popen", Child)
    target = parse_target(name) if name else None
    rows = gap.others(MODULE, SimpleNamespace(name="h100"), 10.0, target)  # type: ignore[arg-type]
    assert (rows[gap.PINNED].bytes, rows[gap.PINNED].seconds) == (1, 3.0)
    assert asked == [target]
