"""SECURITY.md says that the package evaluates no code, starts no shell and opens no connection. The sources agree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "shardpass"

MODULES = {"ctypes", "ftplib", "http", "marshal", "pickle", "shelve", "smtplib", "socket", "ssl", "telnetlib", "urllib"}
CALLS = {"eval", "exec", "__import__"}
ALLOWED = {
    ("runtime/interpreter.py", "pickle"),  # between a process and its own child, over pipes
    ("advise/find/gap.py", "pickle"),  # likewise
    ("advise/repair/alone.py", "eval"),  # an expression of the user's function, which the user runs here, with an edit
    ("advise/repair/script.py", "eval"),  # the name of the function that the user's script calls
    ("calibrating/memory.py", "ctypes"),  # mallopt of the C library, with constants
    ("ir/process_tree.py", "ctypes"),  # prctl of the C library, with constants
}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                yield f"{node.func.value.id}.{node.func.attr}"
            yield from ("shell=True" for k in node.keywords if k.arg == "shell")


def of(source: str) -> set[str]:
    """What ``source`` does that the package must not do."""
    tree = ast.parse(source)
    found = {name for name in imported(tree) if name.partition(".")[0] in MODULES}
    return found | {name for name in called(tree) if name in CALLS or name in ("shell=True", "os.system", "os.popen")}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pickle", {"pickle"}),
        ("from urllib.request import urlopen", {"urllib.request"}),
        ("eval('1')", {"eval"}),
        ("import subprocess\nsubprocess.run('ls', shell=True)", {"shell=True"}),
        ("import os\nos.system('ls')", {"os.system"}),
        ("import re\nre.compile('x')", set()),
    ],
)
def test_it_would_be_seen(source: str, found: set[str]) -> None:
    assert of(source) == found


def test_the_sources_agree() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 150
    found = {(str(path.relative_to(PACKAGE)), what) for path in files for what in of(path.read_text())}
    assert found == ALLOWED
    page = (ROOT / "SECURITY.md").read_text()
    assert all(f"shardpass/{file}" in page for file, _ in ALLOWED)
