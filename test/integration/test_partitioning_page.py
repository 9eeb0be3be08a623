"""docs/partitioning.md: its programs are planned as the page says, and the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shardpass.diagnostics import collect
from shardpass.pipeline.plan import plan_module

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "partitioning.md").read_text()
PLANS = re.findall(r"```mlir\n(.*?)```.*?```text\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("program", "told"), PLANS, ids=["dot_general", "gather"])
def test_a_plan_reads_as_on_the_page(program: str, told: str) -> None:
    with collect():
        assert str(plan_module(program)) == told.strip()


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = PYTHON
    with collect():
        exec(compile(example, "docs/partitioning.md", "exec"), {})
    assert "received by a device" in capsys.readouterr().out


def test_the_files_on_the_way_exist_and_are_fifteen() -> None:
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`", PAGE, re.MULTILINE)
    assert len(steps) == len(set(steps)) == 15
    assert [name for name in steps if not (ROOT / "shardpass" / name).exists()] == []
