"""A script run again with other texts: its own and those of modules that it imports; files stay as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shardpass.advise.find.rerun import texts_of
from tools.processes import environment

SCRIPT = "import lib\nprint('old', lib.NAME, __name__)\n"
NEW_SCRIPT = "import lib\nprint('new', lib.NAME, __name__)\n"
CODE = """
import runpy, sys
from pathlib import Path
from shardpass.advise.find.rerun import overlay
import json
overlay(json.loads(Path(sys.argv[1]).read_text()))
sys.path.insert(0, "")
runpy.run_path("train.py", run_name="__main__")
print(open("train.py").read() == Path("train.py").read_text(), Path("lib.py").read_text().strip())
"""


def ran(*command: str) -> list[str]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, env=environment())
    return done.stdout.splitlines()


@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("changed", "printed"),
    [
        ({}, "old of disk __main__"),
        ({"train.py": NEW_SCRIPT}, "new of disk __main__"),
        ({"lib.py": "NAME = 'of memory'\n"}, "old of memory __main__"),
        ({"train.py": NEW_SCRIPT, "lib.py": "NAME = 'of memory'\n"}, "new of memory __main__"),
    ],
    ids=["nothing", "script", "module", "both"],
)
def test_python_reads_the_new_texts(
    changed: dict[str, str], printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module was compiled before, so that its code of the old text is at hand."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    Path("lib.py").write_text("NAME = 'of disk'\n")
    assert ran("-c", "import sys; sys.path.insert(0, ''); import lib; print(lib.__cached__)") != []
    Path("texts.json").write_text(texts_of({path: text.encode() for path, text in changed.items()}))
    assert ran("-c", CODE, "texts.json") == [printed, "True NAME = 'of disk'"]


def test_texts_have_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(texts_of({"train.py": "é\n".encode()})) == {str(tmp_path / "train.py"): "é\n"}
