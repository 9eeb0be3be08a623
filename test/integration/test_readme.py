"""What the README tells a newcomer to run does run."""

from __future__ import annotations

import os
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
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-c", code[1]], cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")  # XLA has nothing to say either
    lines = done.stdout.splitlines()
    assert lines[0] == "(2, 6)"  # 8 rows over 4
    assert lines[1] == "[2 0]"  # devices 2 and 3 hold the second pair of rows


COMMANDS = [line.strip() for line in README.splitlines() if line.startswith("    shardpass-")]


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str) -> None:
    words = shlex.split(command, comments=True)
    program = Path(sys.executable).parent / words[0]
    done = subprocess.run([program, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_jax_in_prose() -> None:
    """``shardpass.jax`` needs no import of its own, as the README has it."""
    assert "`with shardpass.jax.use():`" in README
    code = "import shardpass\nwith shardpass.jax.use(): print('inside')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout == "inside\n", done.stderr


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_report_is_that_of_the_tutorial() -> None:
    """docs/tutorial.md is run by a test of its own, and shows more of the report."""
    shown = re.search(r"```text\n(train\.py:step.*?)```", README, re.DOTALL)
    assert shown is not None
    home = (ROOT / "docs" / "index.md").read_text()
    quoted = re.search(r"^    findings, compiled by XLA:\n(?:    .*\n)*", home, re.MULTILINE)
    assert quoted is not None
    whole = (ROOT / "docs" / "tutorial.md").read_text().splitlines()
    lines = [*shown[1].splitlines(), *(line[4:] for line in quoted[0].splitlines())]
    assert [line for line in lines if line != "..." and line not in whole] == []


def test_the_numbers_are_those_of_the_comparison() -> None:
    """docs/comparison.md quotes the pages of the measurements, as a test of the pages checks."""
    comparison = (ROOT / "docs" / "comparison.md").read_text()
    rows = {
        r.strip(): f.strip()
        for r, f, _ in re.findall(r"^\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", comparison, re.MULTILINE)
    }
    [of_bytes] = [figure for row, figure in rows.items() if row.startswith("bytes received, 90 real programs")]
    [of_time] = [figure for row, figure in rows.items() if row.startswith("redistributions: XLA's time over ours")]
    assert [f"{float(of_bytes):.2f}", of_time] == re.findall(r"\*\*([\d.]+)\*\*", README)
