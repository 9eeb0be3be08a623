"""What holds for all tools: each says with --help what it takes, and none edits the path of imports."""

from __future__ import annotations

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
        "tools.bench.explicit_corpus",
        "tools.bench.explicit_errors",
        "tools.bench.explicit_reshards",
        "tools.bench.mistakes",
        "tools.docs",
        "tools.fuzz",
        "tools.package",
        "tools.prove",
    }


@pytest.mark.parametrize("path", COMMANDS, ids=module)
def test_help(path: Path, tmp_path: Path) -> None:
    """From any folder: a child finds the checkout by itself."""
    done = subprocess.run(
        module_command(module(path), "--help"), capture_output=True, text=True, env=environment(), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_a_tool_runs_as_a_file_too() -> None:
    """As long as the checkout is on the path, as an editable install puts it there."""
    command = [sys.executable, str(ROOT / "tools" / "bench" / "simulate_scale.py"), "--help"]
    assert subprocess.run(command, capture_output=True, env=environment()).returncode == 0


def test_no_tool_edits_the_path_of_imports() -> None:
    assert [module(path) for path in FILES if "sys.path" in path.read_text()] == []
