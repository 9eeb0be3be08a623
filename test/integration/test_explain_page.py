"""The examples of docs/explain.md print what the page says, and the sums that it works out are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explain.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", PAGE, re.DOTALL)


# with jax 0.12 XLA gives the gather of a scanned weight the line of the scan
XLA = pytest.mark.skipif(jax.version.__version_info__ >= (0, 12), reason="the page shows the lines of jax 0.10")
MARKS = {"xla": XLA}


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        pytest.param(*example, id=name, marks=MARKS.get(name, ()))
        for name, example in zip(("report", "xla", "findings", "hints"), EXAMPLES, strict=True)
    ],
)
def test_the_example_prints_what_the_page_says(code: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_the_sum_by_hand() -> None:
    """Twelve rings over four devices, each of a tile of 1024 x 256 numbers that two devices share."""
    assert 12 * 2 * (1024 * 256 * 4 // 2) * 3 // 4 == 9 * 2**20
    assert "all_reduce over data 9.0 MiB" in PAGE


def test_the_sum_of_xlas_example_by_hand() -> None:
    """Twelve weights of 1024 x 256 numbers, of which a device has a quarter, and rings over model of 512 x 256."""
    gathers, sums = 12 * (1024 * 256 * 4) * 3 // 4, 12 * 2 * (512 * 256 * 4) // 2
    assert (gathers, sums) == (9 * 2**20, 6 * 2**20)
    assert "all_gather over data 9.0 MiB" in EXAMPLES[1][1]
    assert f"with P(None, 'model'): {sums + 2 * 3:,} bytes" in EXAMPLES[1][1]  # and a loss of 4 bytes


def test_the_sums_of_the_findings_by_hand() -> None:
    """A device gathers 128 x 1024 numbers, of which it has half, and adds up 128 x 256 over two devices."""
    gather, total = 128 * 1024 * 4 // 2, 2 * (128 * 256 * 4) // 2
    assert f"{gather + total:,} bytes -> {total:,} bytes" in EXAMPLES[2][1]


def test_the_report_fits_one_screen() -> None:
    lines = EXAMPLES[0][1].splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
