"""The notebooks of examples/: every cell runs, shows itself as HTML where it has a form, and saved its output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import daily

from tools.docs.make_notebooks import NOTEBOOKS, cells
from tools.processes import environment

RUN = """
import json, sys
from pathlib import Path
from tools.docs.make_notebooks import executed
for cell in executed(Path(sys.argv[1])):
    value = cell.pop("value")
    html = value._repr_html_()[:20] if hasattr(value, "_repr_html_") else ""
    print(json.dumps(cell | {"kind": type(value).__name__, "repr": len(repr(value)), "html": html}))
"""
FORMS = {
    "explain_a_step.ipynb": {"Explanation": "<iframe", "Difference": "<div", "ProgramPlan": "<div"},
    "redistribute.ipynb": {"Sharding": "<div", "Plan": "<div", "Machine": "<div"},
}


def test_there_are_two() -> None:
    assert [path.name for path in NOTEBOOKS] == list(FORMS)


@pytest.mark.parametrize("path", daily.drawn(NOTEBOOKS, 1), ids=lambda path: path.name)
def test_every_cell_runs_and_shows_itself(path: Path) -> None:
    """``python -m tools.docs.make_notebooks`` saves outputs that changed."""
    command = [sys.executable, "-P", "-c", RUN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    run = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"outputs"')]
    forms = {cell["kind"]: cell["html"] for cell in run}
    assert all(forms[kind].startswith(start) for kind, start in FORMS[path.name].items())
    assert max(cell["repr"] for cell in run) < 300
    saved = cells(json.loads(path.read_text()))
    assert [cell["outputs"] for cell in saved] == [cell["outputs"] for cell in run]
