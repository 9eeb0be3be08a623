"""The table of public programs: what it plants is planted once, and modules for data are replaced."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.bench.strangers.__main__ import HERE, copied, faked

TABLE = tomllib.loads((HERE / "table.toml").read_text())
MISTAKE = {"file": "a/train.py", "old": 'P("data")', "new": "P()"}


def test_each_program_has_a_script_and_two_mistakes() -> None:
    assert {path.stem for path in (HERE / "scripts").glob("*.py")} == set(TABLE)
    assert all(len(one["mistakes"]) == 2 and len(one["commit"]) == 40 for one in TABLE.values())


@pytest.mark.parametrize("text", ['s = P("data")\n', 's = P("data"), P("data")\n', "s = P()\n"], ids=["once", "2", "0"])
def test_a_mistake_is_planted_in_a_copy_where_its_text_stands_once(text: str, tmp_path: Path) -> None:
    source = tmp_path / "checkout"
    (source / "a").mkdir(parents=True)
    (source / "a" / "train.py").write_text(text)
    if text.count(MISTAKE["old"]) != 1:
        with pytest.raises(ValueError, match="stands there"):
            copied(source, tmp_path / "made", {"paths": ["a"]}, MISTAKE)
        return
    made = copied(source, tmp_path / "made", {"paths": ["a"]}, MISTAKE)
    assert (made / "a" / "train.py").read_text() == "s = P()\n"
    assert (source / "a" / "train.py").read_text() == text


def test_a_notebook_is_copied_as_a_script_of_some_cells(tmp_path: Path) -> None:
    sources = [["!pip install flax\n", "n = 4\n"], ["train()\n"], ["%matplotlib inline\n", "def f(): pass"]]
    every = [{"cell_type": "markdown", "source": ["Text"]}, *({"cell_type": "code", "source": one} for one in sources)]
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "demo.ipynb").write_text(json.dumps({"cells": every}))
    change = {"file": "demo.py", "old": "n = 4", "new": "n = 8"}
    copied(tmp_path / "checkout", tmp_path, {"paths": ["demo.ipynb"], "cells": [0, 2], "changes": [change]})
    assert (tmp_path / "checkout" / "demo.py").read_text() == "n = 8\n\n\ndef f(): pass\n"


def test_attributes_of_a_replaced_module_are_mocks(tmp_path: Path) -> None:
    folder = faked(tmp_path / "fakes", ["grain", "grain.python"])
    script = "import grain.python as grain; from grain import other; grain.DataLoader(other.x); print(grain.__name__)"
    told = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert told.stdout == "grain.python\n"
