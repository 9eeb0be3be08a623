"""Run the notebooks of examples/ and save their outputs, which a test compares with new ones.

    python -m tools.docs.make_notebooks

Saved is the text of each output, as sites that show notebooks leave pages and scripts out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from tools.processes import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def executed(path: Path) -> list[dict[str, Any]]:
    """Run the code cells as a kernel does; return of each its ``outputs``, and the last ``value`` that it shows."""
    names: dict[str, object] = {}
    found: list[dict[str, Any]] = []
    for number, cell in enumerate(cells(json.loads(path.read_text())), 1):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        value: object = None
        outputs: list[dict[str, Any]] = []
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, path.name, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
        if printed.getvalue():
            outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
        if value is not None:
            shown = {"text/plain": lines(str(value))}
            result = {"data": shown, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
            outputs.append(result)
        found.append({"outputs": outputs, "value": value})
    return found


def cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def lines(text: str) -> list[str]:
    """As a notebook stores text."""
    return text.splitlines(keepends=True)


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        for number, (cell, run) in enumerate(zip(cells(notebook), executed(path), strict=True), 1):
            cell["outputs"], cell["execution_count"] = run["outputs"], number
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
