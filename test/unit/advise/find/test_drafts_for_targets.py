"""Edits of a program for a target compete as drafts of XLA:CPU; what is shown is compiled for the target."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shardpass.advise.find import findings
from shardpass.diagnostics.table_runtime import PEER_FAILED
from shardpass.report.findings import Findings
from shardpass.targets.compiled import Compiled
from shardpass.targets.target import parse_target


class Fake:
    """A compiler that answers with its target. ``refuses``: raises for all modules."""

    def __init__(self, target: Any, refuses: bool = False) -> None:
        self.target, self.refuses = target, refuses
        self.spent, self.compiled = 0.0, 0

    def __enter__(self) -> Fake:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def compile(self, module: bytes, *, draft: bool = False) -> str:
        self.compiled += 1
        self.spent += 2.0
        if self.refuses:
            raise PEER_FAILED.error(way="xla", reason="no such call")
        return f"{self.target}{' draft' if draft else ''}"


@pytest.mark.parametrize(
    ("name", "refuses", "answers", "seconds"),
    [
        ("v5e:2x4", False, ["cpu:8 draft", "cpu:8 draft", "v5e:2x4"], 6.0),
        ("v5e:2x4", True, ["v5e:2x4", "v5e:2x4 draft", "v5e:2x4"], 8.0),
        ("cpu:8", False, ["cpu:8 draft", "cpu:8 draft", "cpu:8"], 6.0),
    ],
)
def test_a_draft_is_of_the_quickest_compiler_that_takes_the_program(
    name: str, refuses: bool, answers: list[str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = parse_target(name)
    asked: list[Any] = []
    monkeypatch.setattr(findings, "shared", Fake)
    monkeypatch.setattr(findings, "Compiler", lambda target: Fake(target, refuses))
    monkeypatch.setattr(findings, "explain_built", lambda program, *_: program)
    monkeypatch.setattr(findings, "find_edits", lambda given: asked.append(given) or compile_all(given))
    made: list[str] = []

    def compile_all(given: Any) -> Findings:
        made.extend(given.compiler(b"", draft)() for draft in (True, True, False))
        return Findings()

    built = Compiled("", target, 0, 0, 0, 0, spent=30.0)
    first = SimpleNamespace(
        partitioner="xla", built=built, devices=8, mesh=(("data", 8),), given=b"", file="step", compiler=""
    )
    findings._findings(first, "step", None, None, findings.Wanted())  # type: ignore[arg-type]
    assert made == answers
    assert asked[0].budget.elsewhere == seconds
    assert asked[0].whole == (0.0 if name == "cpu:8" else 30.0)
