"""What holds for all tools: each says with --help what it takes, and none edits the path of imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.processes import ROOT, environment, module_command

FILES = sorted((ROOT / "tools").rglob("*.py"))
COMMANDS = [path for path in FILES if "ArgumentParser(" in path.read_text()]


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_there_are_tools_of_every_kind() -> None:
    names = {module(path).rpartition(".")[0] for path in COMMANDS}
    assert names == {
        "tools",
        "tools.bench",
        "tools.bench.mistakes",
        "tools.bench.record",
        "tools.bench.strangers",
        "tools.docs",
        "tools.fuzz",
        "tools.package",
        "tools.prove",
    }


HELP = """
import contextlib, io, json, runpy, sys, traceback
found = {}
for name in sys.argv[1:]:
    out = io.StringIO()
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
            end = "no exit"
        except SystemExit as leaving:
            end = leaving.code
        except BaseException:
            end = traceback.format_exc()
    found[name] = (end, out.getvalue()[:7])
print(json.dumps(found))
"""


@pytest.mark.long
@pytest.mark.fresh_process
def test_help(tmp_path: Path) -> None:
    """From any folder: a child finds the checkout by itself. One child asks all, so that it loads JAX once."""
    names = list(map(module, COMMANDS))
    done = subprocess.run(
        [sys.executable, "-P", "-c", HELP, *names], capture_output=True, text=True, env=environment(), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: end for name, end in found.items() if end != [0, "usage: "]} == {}
    assert list(found) == names


def test_a_tool_runs_as_a_module(tmp_path: Path) -> None:
    command = module_command("tools.bench.compile", "--help")
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_a_tool_runs_as_a_file_too() -> None:
    """As long as the checkout is on the path, as an editable install puts it there."""
    command = [sys.executable, str(ROOT / "tools" / "bench" / "compile.py"), "--help"]
    assert subprocess.run(command, capture_output=True, env=environment()).returncode == 0


def test_no_tool_edits_the_path_of_imports() -> None:
    assert [module(path) for path in FILES if "sys.path" in path.read_text()] == []
