"""What the README tells a newcomer to run does run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_python_example(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "(2, 6)"  # 8 rows over 4
    assert lines[1] == "[2 0]"  # devices 2 and 3 hold the second pair of rows


COMMANDS = [
    line.strip() for line in README.splitlines() if line.startswith("    shardpass-") and "module.mlir" not in line
]


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str) -> None:
    words = shlex.split(command, comments=True)
    program = Path(sys.executable).parent / words[0]
    done = subprocess.run([program, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", re.findall(r"\]\((docs/[^)]+)\)", README))
def test_links(target: str) -> None:
    assert (ROOT / target).exists()
