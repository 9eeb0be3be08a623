"""The notebooks of examples/: every cell runs, and what a cell ends with shows itself as HTML where it has a form."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.processes import ROOT, environment

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def run_cells(path: str) -> None:
    """The child: runs the code cells as a kernel does, and prints the type and the HTML of what each cell shows."""
    names: dict[str, object] = {}
    for cell in json.loads(Path(path).read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path, "eval"), names)
            shown = value._repr_html_() if hasattr(value, "_repr_html_") else ""
            print(json.dumps([type(value).__name__, len(repr(value)), shown[:20]]))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_runs_and_shows_itself(path: Path) -> None:
    code = f"import runpy; runpy.run_path({__file__!r})['run_cells']({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    shown = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    forms = {kind: html for kind, _, html in shown}
    wanted = {
        "explain_a_step.ipynb": {"Explanation": "<iframe", "Difference": "<div", "ProgramPlan": "<div"},
        "redistribute.ipynb": {"Sharding": "<div", "Plan": "<div", "Machine": "<div"},
    }[path.name]
    assert all(forms[kind].startswith(start) for kind, start in wanted.items())
    assert max(length for _, length, _ in shown) < 300


def test_notebooks_keep_no_outputs() -> None:
    """Stored outputs would be those of an earlier version."""
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
