"""The programs of the repository: the examples, and each part of the lit tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def corpus() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each program."""
    for folder in ("examples", "test/lit"):
        for path in sorted((ROOT / folder).rglob("*.mlir")):
            for number, text in enumerate(path.read_text().split("// -----")):
                yield f"{path.relative_to(ROOT)}:{number}", text
