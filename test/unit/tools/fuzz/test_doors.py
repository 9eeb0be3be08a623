"""A sample of each door, and the laws: each is broken by a command that was made to. All: ``make fuzz-doors``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from support import daily

from tools.fuzz.door_case import GIVEN, OUT, Case
from tools.fuzz.door_cases import DOORS, make
from tools.fuzz.door_laws import Ended, broken
from tools.fuzz.doors import Doors
from tools.fuzz.mutations import changed_bytes, changed_text
from tools.fuzz.smaller_bytes import smallest
from tools.processes import environment

SAMPLE, TODAY = 25, 2  # cases of each door, in all and each day
FIRST_SEED = 9_000_000  # none of those that the long runs begin with


def test_no_law_is_broken() -> None:
    with Doors() as doors:
        seeds = daily.drawn(range(FIRST_SEED, FIRST_SEED + SAMPLE), TODAY)
        found = [one for seed in seeds for one in doors.outcomes(doors.doors, seed, len(doors.doors))]
        again = doors.ask("text", seeds[0], whole=True)
    assert [f"{o.name}: {o.detail}" for o in found if o.kind == "broken"] == []
    kinds = Counter(o.kind for o in found)
    assert {o.door for o in found} == set(DOORS)
    if daily.is_whole():  # a day has too few cases for shares
        assert min(kinds["ok"], kinds["error"]) > len(found) / 10, kinds
        assert kinds["usage"], "arguments alone can end in it"
    assert again["kind"] == next(o.kind for o in found if o.door == "text"), "a seed makes one case"


# ---------------------------------------------------------------- the laws

ASKED = Case("text", 0, "opt", (GIVEN, "-o", OUT), {GIVEN: b"x"}, "stablehlo")
JSON = Case("machine", 0, "plan", ("--json",))
FILES = frozenset({GIVEN})
WELL = "m:1:1: error: no [SP101]"


@pytest.mark.parametrize(
    ("case", "ended", "law"),
    [
        (ASKED, Ended(-6, files=FILES), "ended by SIGABRT"),
        (ASKED, Ended(0, hung="it took more than 40 s", files=FILES), "more than 40 s"),
        (ASKED, Ended(1, raised="KeyError: 1", err=WELL, files=FILES), "an exception leaves"),
        (ASKED, Ended(2, err="usage: x\nx: error: y", files=FILES), "status 2"),
        (JSON, Ended(7), "status 7"),
        (ASKED, Ended(1, err="error: no", files=FILES), "without a code"),
        (ASKED, Ended(1, err="error: no [SP998]", files=FILES), "codes that no table has: SP998"),
        (ASKED, Ended(1, err="error: internal error in x [SP199]", files=FILES), "an internal error"),
        (ASKED, Ended(0, err=WELL, files=FILES | {OUT}), "and yet an error"),
        (ASKED, Ended(1, err=f"{WELL}\nTraceback (most recent call last)", files=FILES), "a traceback"),
        (ASKED, Ended(1, err=f"{WELL} \x1b[31m", files=FILES), "an escape sequence"),
        (JSON, Ended(0, out=b'{"a": "\x1b[31m"}'), "an escape sequence"),
        (ASKED, Ended(0, err="E0722 10:00:00.1 1 a.cc:1] no", files=FILES | {OUT}), "noise"),
        (ASKED, Ended(0, err="/a/b.py:12: UserWarning: no", files=FILES | {OUT}), "noise"),
        (ASKED, Ended(1, err=WELL + "x" * 2_000_000, files=FILES), "characters of complaint"),
        (ASKED, Ended(1, err=WELL, files=FILES | {OUT}), "and yet an output"),
        (ASKED, Ended(0, files=FILES), "no output"),
        (ASKED, Ended(0, files=FILES | {OUT, ".out.x1"}), "left behind: .out.x1"),
        (ASKED, Ended(0, files=FILES | {OUT, "other"}), "nobody asked for: other"),
        (ASKED, Ended(1, err=WELL), "the input is gone"),
        (ASKED, Ended(0, faulty="no module", files=FILES | {OUT}), "the output is faulty"),
        (JSON, Ended(0, out=b'{"a": 1'), "no JSON"),
        (JSON, Ended(0, out=b'{"a": NaN}'), "NaN is no number"),
    ],
)
def test_a_broken_law_is_seen(case: Case, ended: Ended, law: str) -> None:
    assert any(law in found for found in broken(case, ended))


@pytest.mark.parametrize(
    ("case", "ended"),
    [
        (ASKED, Ended(0, files=FILES | {OUT})),
        (ASKED, Ended(1, err=WELL, files=FILES)),
        (JSON, Ended(0, out=b"{}")),
        (Case("arguments", 0, "opt", (GIVEN,)), Ended(0, out=b"ML\xefR\x1b")),
        (JSON, Ended(1, err=WELL)),
    ],
)
def test_what_is_well(case: Case, ended: Ended) -> None:
    assert broken(case, ended) == []


PLANTED = """
import json, os, sys, tempfile
from pathlib import Path
from shardpass.cli import opt
from tools.fuzz import forked
from tools.fuzz.door_case import Case
from tools.fuzz.door_laws import broken

def endless(argv):
    while True: pass

def half(argv):
    Path("out").write_text("module {")
    return 0

def said(argv):
    print("usage", file=sys.stderr)
    return 2

def raising(argv):
    raise KeyError(argv[0])

forked.CPU = 1
forked.prepare()
case = Case("text", 0, "opt", ("given",), {"given": b"x"}, "stablehlo")
with tempfile.TemporaryDirectory() as root:
    for fault in (endless, half, said, raising, lambda argv: os.abort(), lambda argv: os.unlink("given") or 0):
        opt.main = fault
        print("@" + json.dumps(broken(case, forked.run(case, Path(root)))))
    print("@" + json.dumps(os.listdir(root)))
"""


def test_planted_faults_are_found() -> None:
    """Each in a fork of its own: the one that aborts and the one that never ends leave the others as they were."""
    done = subprocess.run(
        [sys.executable, "-c", PLANTED], capture_output=True, text=True, env=environment(JAX_PLATFORMS="cpu")
    )
    found = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("@")]
    assert len(found) == 7, done.stderr
    endless, half, said, raising, aborting, without, left = found
    assert endless == ["it took more than 1 s of processor time"]
    assert half[0].startswith("the output is faulty: MLIRError")
    assert [law[:8] for law in said] == ["status 2"]
    assert "an exception leaves the command" in raising[0]
    assert "KeyError: 'given'" in raising[0]
    assert aborting[0].startswith("ended by SIGABRT")
    assert "the input is gone" in without
    assert left == []


# ---------------------------------------------------------------- cases


def test_a_seed_makes_one_case_and_seeds_differ() -> None:
    texts, others = (b"func.func @f() { return }\n", b"module {}\n"), (bytes(range(200)), b"ML\xefR" * 20)
    inputs = {
        **dict.fromkeys(("text", "hlo"), texts),
        **dict.fromkeys(("bytecode", "portable", "export", "proto"), others),
        "machine": (b"memory = 1",),
    }
    for door in sorted(DOORS.keys() - {"onnx"}):
        assert make(door, 5, inputs) == make(door, 5, inputs)
        assert len({str(make(door, seed, inputs)) + str(make(door, seed, inputs).files) for seed in range(40)}) > 15


def test_mutations_change_what_they_are_given() -> None:
    from random import Random

    text = 'func.func @f(%x: tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) {\n  return\n}\n'
    texts = {changed_text(Random(seed), text, "module {}") for seed in range(200)}
    assert len(texts) > 120
    assert any('"{devices=' in found for found in texts), "shardings are replaced by others"
    assert any("tensor<8x4xf32>" not in found and "x4xf32>" in found for found in texts), "sizes are"
    assert len({changed_bytes(Random(seed), b"abcdefgh" * 9, b"xyz" * 9) for seed in range(200)}) > 150


def test_the_smallest_that_fails() -> None:
    assert smallest(b"aaaaXbbbbYccc", lambda data: b"X" in data and b"Y" in data, 200) == b"XY"
    assert smallest(["a", "b", "c"], lambda words: "b" in words, 50) == ["b"]
    asked: list[bytes] = []
    assert smallest(b"abcd" * 50, lambda data: bool(asked.append(data)), 10) == b"abcd" * 50
    assert len(asked) == 10
