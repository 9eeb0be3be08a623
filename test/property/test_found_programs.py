"""Programs that were once wrong, refused or fatal, most of them found by ``tools/fuzz_partition.py`` and made small.

Each is partitioned at the usual prices and with ops split wherever they can be, and gives what one device gives. To
keep a new one, put its text into test/data/found, with a first line that says what went wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.differential import check_text
from support.tools import tool

PROGRAMS = sorted((Path(__file__).resolve().parents[1] / "data" / "found").glob("*.mlir"))


def test_there_are_programs() -> None:
    assert PROGRAMS


@pytest.mark.parametrize("eager", [False, True], ids=["usual", "eager"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_that_failed_give_what_one_device_gives(path: Path, eager: bool) -> None:
    text = path.read_text()
    assert text.startswith("// "), "its first line says what went wrong"
    with tool("fuzz_partition").prices(eager):
        check_text(text)
