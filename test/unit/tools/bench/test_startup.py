"""The startup benchmark: import times read by hand, and one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.bench import startup
from tools.bench.startup import Startup, main, package_of, read_import_times


def test_import_times_are_those_of_each_module_itself() -> None:
    text = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       120 |        120 |   numpy.linalg\n"
        "import time:        30 |        150 | numpy\n"
        "a warning\n"
        "import time:         7 |          7 |     json.decoder\n"
    )
    modules = read_import_times(text)
    assert modules == {"numpy.linalg": 120, "numpy": 30, "json.decoder": 7}
    found = Startup("c", [3.0, 1.0, 2.0], modules)
    assert found.packages() == {"numpy": 150, "the standard library": 7}
    assert found.median == 2.0
    assert package_of("shardpass.cli.opt") == "shardpass"


def test_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("python", "shardpass-opt --help")
    monkeypatch.setattr(startup, "COMMANDS", {name: startup.COMMANDS[name] for name in names})
    file = tmp_path / "startup.json"
    assert main(["--repeat", "1", "--json", str(file)]) == 0
    rows = {row["command"]: row for row in json.loads(file.read_text())}
    assert tuple(rows) == names
    assert "shardpass.cli.opt" in rows["shardpass-opt --help"]["modules"]
    shown = capsys.readouterr().out
    assert "imports of shardpass-opt --help" in shown
