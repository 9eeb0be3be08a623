"""Programs that were once wrong, refused or fatal, most of them found by ``tools/fuzz/partition.py`` and made small.

Each is partitioned at the usual prices and with ops split wherever they can be, and gives what one device gives. To
keep a new one, put its text into test/data/found, with a first line that says what went wrong; beside one with a
manual region stands what it means for whole arrays, ``name.whole``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.differential import assert_same, draw

import shardpass
from shardpass.diagnostics import collect
from shardpass.runtime import compile_single
from tools.fuzz.examine import prices

PROGRAMS = sorted((Path(__file__).resolve().parents[1] / "data" / "found").glob("*.mlir"))


def test_there_are_programs() -> None:
    assert PROGRAMS


@pytest.mark.parametrize("eager", [False, True], ids=["usual", "eager"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_that_failed_give_what_one_device_gives(path: Path, eager: bool) -> None:
    text, whole = path.read_text(), path.with_suffix(".whole")
    assert text.startswith("// "), "its first line says what went wrong"
    with prices(eager), collect():
        executable = shardpass.compile(shardpass.run_pipeline(text, "partition"))
    rng = np.random.default_rng(0)
    arguments = [draw(rng, b.shape, b.dtype) for b in executable.signature.arguments]
    expected = compile_single(whole.read_text() if whole.exists() else text)(*arguments)
    for index, (found, wanted) in enumerate(zip(executable(*arguments), expected, strict=True)):
        assert_same(found, wanted, f"result {index}")
