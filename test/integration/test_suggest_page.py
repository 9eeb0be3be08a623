"""The examples of docs/suggest.md print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "suggest.md").read_text()


def test_the_examples_print_what_the_page_says() -> None:
    codes = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(codes) == len(printed) == 2
    done = subprocess.run([sys.executable, "-c", "".join(codes)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(printed)
