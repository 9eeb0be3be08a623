"""What the README tells a newcomer to run does run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from support import fork_server

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
    program = Path(fork_server.server.commands(), words[0])
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


def shown(start: str) -> list[str]:
    """The lines of the report in the README that begins so, without those that stand for others."""
    block = re.search(rf"```text\n({re.escape(start)}.*?)```", README, re.DOTALL)
    assert block is not None
    return [line for line in block[1].splitlines() if line != "..."]


def test_the_report_is_that_of_the_tutorial() -> None:
    """docs/tutorial.md is run by a test of its own, and shows more of the report."""
    whole = (ROOT / "docs" / "tutorial.md").read_text().splitlines()
    assert [line for line in shown("train.py:step") if line not in whole] == []


LLAMA = "shardpass explain examples/llama_70b.py:step --partitioner xla --machine h100"


def test_the_home_page_has_the_same_report_of_a_large_model() -> None:
    home = (ROOT / "docs" / "index.md").read_text().splitlines()
    assert f"    {LLAMA}" in home
    assert f"    {LLAMA}" in README.splitlines()
    assert [line for line in shown("examples/llama_70b.py") if f"    {line}".rstrip() not in home] == []


@pytest.mark.slow
@pytest.mark.skipif(not jax.__version__.startswith("0.10."), reason="another XLA compiles another program")
def test_the_report_of_a_large_model_is_what_the_command_prints(tmp_path: Path) -> None:
    """Two minutes. The edit is applied, as a reader would, by ``git apply``, and makes the step fit."""
    program = Path(sys.executable).parent / "shardpass"
    words = [*shlex.split(LLAMA)[1:], "--patch", str(tmp_path / "fixes.diff")]
    done = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert [line for line in shown("examples/llama_70b.py") if line not in done.stdout.splitlines()] == []
    subprocess.run(["git", "apply", "--check", tmp_path / "fixes.diff"], cwd=ROOT, check=True)


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
