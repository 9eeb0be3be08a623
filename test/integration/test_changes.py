"""docs/contributing.md, "Make a change": each change is made on a copy of the package, in as many files as it says.

A change is a list of edits (file, text, what takes its place; no text: a new file) and a program that sees it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text()
TABLE = PAGE.partition("\n## Make a change\n")[2].partition("\n## ")[0]
FILES = {change: int(count) for change, count in re.findall(r"^\| ([^|]+) \| (\d+) \|", TABLE, re.MULTILINE)}

Edit = tuple[str, str, str]
PASS = """
from dataclasses import dataclass
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register


@register
@dataclass(frozen=True)
class Nothing(ModulePass):
    name = "shardpass-nothing"
    summary = "nothing"

    def run(self, module):
        pass
"""
COMMAND = """
from shardpass.cli.common import argument_parser, guarded


def main(argv=None):
    return guarded(lambda words: print("hello") or 0, argv)
"""
NOTATION = """
from shardpass.sharding.model import Sharding


def parse_stars(text, mesh):
    return Sharding.tiled(mesh, [() for _ in text])
"""
CHANGES: dict[str, tuple[list[Edit], str]] = {
    "a machine": (
        [("cost/machines/here.toml", "", (ROOT / "shardpass/cost/machines/h100.toml").read_text())],
        """from shardpass.cost.machine import find_machine
assert find_machine("here").flops""",
    ),
    "a message": (
        [
            (
                "diagnostics/messages.ini",
                "[SP101 ",
                "[SP198 TOO_QUIET]\nmessage = it is quiet\nremedy = speak\nexplanation = -\n\n[SP101 ",
            ),
        ],
        """from shardpass.cli.shardpass import main
from shardpass.diagnostics.table_driver import TOO_QUIET
assert TOO_QUIET.id == "SP198"
assert main(["explain", "SP198"]) == 0""",
    ),
    "an elementwise op": (
        [
            ("cost/fusion.py", '"add and ceil ', '"add sinpi and ceil '),
        ],
        """from shardpass.cost.fusion import OTHER, fusion_of
from shardpass.ops.registry import find
assert find("stablehlo.sinpi").family == "elementwise"
assert fusion_of("stablehlo.sinpi") is fusion_of("stablehlo.add") is not OTHER""",
    ),
    "a linear op": (
        [
            (
                "ops/linear.py",
                "LINEAR: Mapping[str, Linear] = {",
                'LINEAR: Mapping[str, Linear] = {"stablehlo.turn": Linear(moves=True),',
            )
        ],
        """from shardpass.importing import summands
from shardpass.passes import combine
from shardpass.planning.options import linear
assert all("stablehlo.turn" in table for table in (summands.LINEAR, linear.LINEAR, combine.MOVES))""",
    ),
    "a pass": (
        [
            ("passes/nothing.py", "", PASS),
            (
                "pipeline/registry.py",
                "_OWN: Mapping[str, str] = {",
                '_OWN: Mapping[str, str] = {"shardpass-nothing": "shardpass.passes.nothing:Nothing",',
            ),
        ],
        """import shardpass
assert "module" in str(shardpass.run_pipeline("module {}", "shardpass-nothing"))""",
    ),
    "a command": (
        [
            ("cli/hello.py", "", COMMAND),
            ("cli/shardpass.py", "COMMANDS: Mapping[str, str] = {", 'COMMANDS: Mapping[str, str] = {"hello": "greet",'),
        ],
        """from shardpass.cli.shardpass import main
assert main(["hello"]) == 0""",
    ),
    "a notation of shardings": (
        [
            ("sharding/notations/stars.py", "", NOTATION),
            (
                "sharding/notations/partition_spec.py",
                "    return parse_mhlo(text, strict=strict)\n\n\ndef _mesh_of",
                """    if text.startswith("*"):
        from shardpass.sharding.notations.stars import parse_stars

        return parse_stars(text, _given(mesh, "stars"))
    return parse_mhlo(text, strict=strict)


def _mesh_of""",
            ),
        ],
        """import shardpass
assert shardpass.parse_sharding("**", "x=2").dims == ((), ())""",
    ),
    "a kind of collective": (
        [
            (
                "cost/collective.py",
                "    RAGGED_ALL_TO_ALL: Facts",
                '    "shift": Facts(passes=0),\n    RAGGED_ALL_TO_ALL: Facts',
            ),
            (
                "ops/families/collectives.py",
                '"stablehlo.collective_broadcast"]',
                '"stablehlo.collective_broadcast", "stablehlo.shift"]',
            ),
            (
                "runtime/lockstep.py",
                '    "stablehlo.collective_broadcast": _broadcast,',
                '    "stablehlo.collective_broadcast": _broadcast,\n    "stablehlo.shift": _broadcast,',
            ),
            (
                "replication/rules.py",
                '    "stablehlo.collective_broadcast": _collective(False),',
                '    "stablehlo.collective_broadcast": _collective(False),\n    "stablehlo.shift": _collective(False),',
            ),
        ],
        """from shardpass.cost.collective import bytes_received
from shardpass.cost.fusion import OTHER, fusion_of
from shardpass.hlo import collectives as in_hlo
from shardpass.importing import groups_of_one
from shardpass.ir.effects import may_be_erased, may_be_moved
from shardpass.ops.registry import find
from shardpass.partition import equal_collectives
from shardpass.replication import rules
from shardpass.report.hlo import programs
from shardpass.runtime import hlo, lockstep
from shardpass.testing import expectation
name = "stablehlo.shift"
assert bytes_received("shift", 64, 4) == 64
assert find(name).family == "collectives" and fusion_of(name) is not OTHER and not may_be_erased(name)
assert name in groups_of_one.OPS and name in equal_collectives.OPS
assert name in rules.RULES and name in lockstep._COLLECTIVES
assert "shift" in in_hlo.KINDS and "shift" in expectation.KINDS
line = "%r = f32[8] shift(f32[8] %x)"
assert hlo._OP.search(line) and programs._COLLECTIVE.search(line)""",
    ),
}


def test_the_table_has_these_changes() -> None:
    assert {change: len({file for file, _, _ in edits}) for change, (edits, _) in CHANGES.items()} == FILES
    assert max(FILES.values()) <= 4


def made(folder: Path) -> None:
    """Makes all changes on one copy of the package."""
    copy = folder / "shardpass"
    shutil.copytree(ROOT / "shardpass", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edits, _ in CHANGES.values():
        for name, old, new in edits:
            file = copy / name
            assert file.exists() == bool(old), name
            text = file.read_text() if old else ""
            assert text.count(old) == 1 or not old, (name, old)
            file.write_text(text.replace(old, new) if old else new)


SEEN = """import contextlib, json, sys
import shardpass
assert shardpass.__file__.startswith(sys.argv[1])
for change, program in json.loads(sys.argv[2]).items():
    with contextlib.redirect_stdout(sys.stderr):
        exec(program, {})
"""


@pytest.mark.fresh_process
def test_each_change_is_seen_everywhere(tmp_path: Path) -> None:
    made(tmp_path)
    programs = json.dumps({change: program for change, (_, program) in CHANGES.items()})
    command = [sys.executable, "-P", "-c", SEEN, str(tmp_path), programs]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
