"""docs/contributing.md, "An op": what it quotes is in the files that it names, and its package works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text()
BLOCKS = re.findall(r"^```\w+\n(?:#|//) (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)  # (file, text)
QUOTES = [(path, text) for path, text in BLOCKS if path.split("/")[0] in ("shardpass", "test", "tools")]
PACKAGE = {path: text for path, text in BLOCKS if (path, text) not in QUOTES}


def test_the_blocks_are_found() -> None:
    assert len(QUOTES) > 6
    assert set(PACKAGE) == {"rownorm/shardpass_ops.py", "pyproject.toml", "try_it.py"}


@pytest.mark.parametrize(("path", "text"), QUOTES, ids=[path for path, _ in QUOTES])
def test_a_quote_is_in_its_file(path: str, text: str) -> None:
    """Lines may be broken elsewhere."""
    assert _words(text) in _words((ROOT / path).read_text())


def _words(text: str) -> str:
    return " ".join(text.split()).replace("( ", "(").replace(", )", ")").replace(" )", ")")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:shardpass|test|tools)/[\w/.]+)`", PAGE))))
def test_a_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


def install(folder: Path, entry_points: dict[str, str]) -> dict[str, str]:
    """Writes the package and its entry points to ``folder``; the environment of a program that finds them."""
    info = folder / "rownorm-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rownorm\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[shardpass.ops]", *lines, ""]))
    (folder / "rownorm").mkdir()
    (folder / "rownorm" / "__init__.py").touch()
    (folder / "rownorm" / "shardpass_ops.py").write_text(PACKAGE["rownorm/shardpass_ops.py"])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def run(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_the_package_works(tmp_path: Path) -> None:
    """10 columns over 4 devices are tiles of 3, with padding; 6 sums of 4 bytes are joined."""
    said = tomllib.loads(PACKAGE["pyproject.toml"])["project"]["entry-points"]["shardpass.ops"]
    done = run(PACKAGE["try_it.py"], install(tmp_path, said))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("stablehlo.all_reduce") == 1
    assert "sums of split rows" in done.stdout
    assert "rownorm.normalize" not in done.stdout


def test_the_plan_of_the_package_is_what_it_builds(tmp_path: Path) -> None:
    """2 x 6 sums x 4 bytes x 3/4 are 36 bytes."""
    code = (
        PACKAGE["try_it.py"]
        + """
from shardpass.ir.collectives import collectives
from shardpass.ir.context import parse_module
from shardpass.ops.model import Split
from shardpass.ops.registry import find
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.sharding import Mesh

whole = parse_module(PROGRAM)
op = whole.body.operations[0].regions[0].blocks[0].operations[0].operation
model = find(op.name).read(op)
split = Split.of(model.rule, prime_mesh(Mesh((("x", 4),), None)), {1: (0, 1)}, ((6, 10),), ((6, 10),))
(planned,) = model.plan(split).collectives
(found,) = collectives(module)
assert (found.kind, found.bytes_received) == (planned.kind, planned.bytes) == ("all_reduce", 36), (found, planned)
"""
    )
    done = run(code, install(tmp_path, {"rownorm": "rownorm.shardpass_ops"}))
    assert done.returncode == 0, done.stderr


def test_a_broken_plugin_is_named(tmp_path: Path) -> None:
    """SP305 says which entry point, where it leads, and what is wrong there."""
    environment = install(tmp_path, {"theirs": "rownorm.missing"})
    done = run("import shardpass.ops.registry as r; r.table()", environment)
    assert done.returncode != 0
    message = done.stderr.splitlines()[-2:]
    assert "[SP305]" in message[0]
    assert "plugin theirs cannot be loaded from rownorm.missing: ModuleNotFoundError" in message[0]
    assert "shardpass.ops" in message[1]
