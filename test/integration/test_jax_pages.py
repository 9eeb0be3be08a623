"""The two tutorials of JAX and docs/coming_from.md: their Python runs, and prints what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def printed(page: str, folder: Path) -> str:
    """What the blocks of Python of ``page`` print, as one program of a user."""
    (folder / "tutorial.py").write_text("\n\n".join(blocks(page, "python")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "tutorial.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "FallbackWarning" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["tutorial_jax.md", "tutorial_explicit.md", "coming_from.md"])
def test_the_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    out = printed(page, tmp_path)
    told = blocks(page, "text")
    assert told
    place = 0
    for text in told:  # in this order; what lies between is tables that are not on the page
        place = out.index(text, place) + len(text)
    if page == "tutorial_jax.md":
        assert re.search(r"each device receives .* KiB in \d+ collectives", out)
        kinds, lines = set(re.findall(r"\d+ x (\w+)", out)), re.findall(r"tutorial\.py:(\d+)", out)
        assert {"reduce_scatter", "all_reduce"} & kinds
        source = (tmp_path / "tutorial.py").read_text().splitlines()
        named = {source[int(line) - 1].strip() for line in lines}
        assert 'return jnp.mean((hidden @ params["down"] - y) ** 2)' in named
