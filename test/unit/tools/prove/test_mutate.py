"""The faults of a text, which are drawn, and what the tests of a small package notice of them."""

import ast
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support import daily

from tools.prove.mutate import Room, draw
from tools.prove.mutation.faults import Fault, faults, is_other
from tools.prove.mutation.traced_lines import Outcome
from tools.prove.mutation.trials import Trial

ROOT = Path(__file__).parents[4]
KINDS = {"operator", "constant", "word", "arguments", "condition", "statement"}


def changed(text: str) -> list[str]:
    """Each faulty text of one line, without the head that gives its names a meaning."""
    head = "low = high = x = y = source = target = 0\n"
    return [
        fault.apply((head + text).encode()).decode().removeprefix(head).strip()
        for fault in faults("m.py", (head + text).encode())
        if fault.line > 1 and is_other(fault, (head + text).encode())
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "if low <= x and x < high: x",
            [
                "if True: x",
                "if False: x",
                "if True and x < high: x",
                "if low <= x and True: x",
                "if high <= x and x < high: x",
                "if low < x and x < high: x",
                "if low <= x and x <= high: x",
                "if low <= x and x < low: x",
            ],
        ),
        ("y = x % 4", ["y = x // 4", "y = x % 5", "y = x % 3"]),
        ("y = x & ~low", ["y = (x)", "y = (~low)", "y = x | ~low", "y = x & low", "y = x & ~high"]),
        ("y = f(x, y)", ["y = f(y, x)"]),
        ("y = mask(x, y)", ["y = mask(y, x)", "y = (x)"]),
        ("y = groups(x)", ["y = groups(x[1:])"]),
        ("y = min(x, low)", ["y = max(x, low)", "y = min(x, high)"]),
        ("y = x.source", ["y = x.target"]),
        ("y = 'LT'", ["y = 'LE'"]),
        ("y[0] = x", ["pass", "y[1] = x"]),
        ("raise ValueError", ["pass"]),
        ("y = [x for x in y if x]", ["y = [x for x in y if True]"]),
        ("y = not x", ["y = x"]),
        ("y = x in y", ["y = x not in y"]),
        ("f(zip(x, y, strict=True))", ["pass", "f(zip(y, x, strict=True))"]),
        # what changes nothing that a program does
        ("'''low < high'''", []),
        ("assert x < y", []),
        ("y: int | None = None", []),
        ("y = f'{x + 1}'", []),
        ("@lru_cache(maxsize=64)\ndef f(x: int | str = None) -> int | None: return x", []),
        ("y = 'rows of ' + x", []),
    ],
)
def test_the_faults_of_a_line(text, expected):
    assert Counter(changed(text)) == Counter(expected)


def test_faults_of_a_real_file_can_be_parsed_and_are_one_change():
    text = (ROOT / "shardpass/redistribute/program/simulate.py").read_bytes()
    assert {fault.kind for fault in faults("simulate.py", text)} >= KINDS
    right = ast.dump(ast.parse(text))
    for fault in draw({"simulate.py": text}, 400 if daily.is_whole() else 40, daily.seed()):
        assert ast.dump(ast.parse(fault.apply(text))) != right
        assert fault.lines[0] <= fault.line
        assert {row[:1] for row in fault.diff(text).splitlines()} == {"-", "+"}


def test_the_seed_draws_the_faults():
    sources = {"a.py": b"x = 1 + 2\ny = 3 * 4\nz = 5 < 6\n", "b.py": b"x = 7\n"}
    assert draw(sources, 3, 0) == draw(dict(reversed(sources.items())), 3, 0)
    assert len({tuple(draw(sources, 3, seed)) for seed in range(10)}) > 1
    assert sorted((fault.file, fault.line) for fault in draw(sources, 9, 0)) == [
        ("a.py", 1),
        ("a.py", 2),
        ("a.py", 3),
        ("b.py", 1),
    ]


def test_the_tests_of_a_fault_are_those_that_run_its_statement():
    lines = {"": {"m.py": {1}}, "slow": {"m.py": {2, 3}}, "fast": {"m.py": {3}}, "other": {"n.py": {3}}}
    room = Room(Outcome(seconds={"slow": 5.0, "fast": 1.0, "other": 1.0}, lines=lines))

    def tests(first, last, seconds=60.0):
        return room.tests(Fault("m.py", 0, 1, "", "word", first, (first, last)), seconds)

    assert tests(2, 2) == ["slow", "fast"]  # fast may have what slow computed, from a cache
    assert tests(2, 4) == ["fast", "slow"]
    assert tests(3, 3, seconds=2.0) == ["fast"]
    assert tests(2, 2, seconds=2.0) == ["slow"]
    assert tests(1, 1) == ["fast", "slow"]  # what runs at import is noticed by a test of the file, if by any
    assert tests(4, 4) == []
    room.outcome.seconds |= {"test/test_m.py::starts_another": 3.0, "test/test_mm.py::of_another_file": 1.0}
    assert tests(4, 4) == ["test/test_m.py::starts_another"]  # it may start a process that runs the line
    assert tests(3, 3, seconds=2.0) == ["fast"]


TOY = {
    "pyproject.toml": """[tool.pytest.ini_options]
pythonpath = ["."]
addopts = "--disable-plugin-autoload -p _hypothesis_pytestplugin"
""",
    "toy/__init__.py": "",
    "toy/sums/__init__.py": "",
    "toy/sums/clamp.py": """def clamp(x, low, high):
    if x < low:
        return low
    while x > high:
        x -= 1
    return x


def nobody_runs(x):
    return x + 1


def nobody_looks(x):
    return x * 2
""",
    "test/unit/sums/test_clamp.py": """from toy.sums.clamp import clamp, nobody_looks

def test_clamp():
    assert [clamp(x, 2, 4) for x in range(7)] == [2, 2, 2, 3, 4, 4, 4]

def test_double():
    nobody_looks(3)
""",
}


def test_a_small_package(tmp_path):
    """The copy has the faults, the package has none; what no test looks at survives; an endless loop can be stopped."""
    for name, text in TOY.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    answer = tmp_path / "answer.json"
    command = [sys.executable, "-m", "tools.prove.mutate", "--root", tmp_path, "--package", "toy", "--rooms", "sums"]
    command += ["--count", "9", "--seed", "6", "--limit", "1000", "--jobs", "2", "--json", answer]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        printed = ""
        while len(re.findall("^toy/", printed, re.MULTILINE)) < 5:
            printed += running.stdout.readline()
        running.terminate()
        printed += running.stdout.read()
    assert running.returncode == 0
    found = {row["line"]: row for row in json.loads(answer.read_text())}
    assert sorted(found) == [2, 3, 4, 10, 14]
    clamp = "test/unit/sums/test_clamp.py::test_clamp"
    assert {line: row["test"] for line, row in found.items() if row["test"]} == {3: clamp, 4: clamp}
    # x <= low changes nothing; a line that no test runs, so that all of test_clamp.py do; one at which no test looks
    assert {line: (row["new"], row["tests"]) for line, row in found.items() if not row["test"]} == {
        2: ("<=", 2),
        10: ("-", 2),
        14: ("3", 2),
    }
    assert "-    return x * 2\n+    return x * 3" in printed
    assert (tmp_path / "toy/sums/clamp.py").read_text() == TOY["toy/sums/clamp.py"]
    assert "sums: 2 of 5 noticed (40%), and was stopped" in printed


def test_a_run_that_does_not_end_is_ended(tmp_path):
    process = os.posix_spawnp("sleep", ["sleep", "100"], os.environ)
    trial = Trial(process, tmp_path / "answer", tmp_path / "log", time.monotonic() + 0.05)
    assert trial.result() is None
    time.sleep(0.05)
    assert trial.result() == Outcome("(all)", "the tests did not end in time")
    with pytest.raises(ChildProcessError):
        os.waitpid(process, 0)


def test_an_unknown_room_is_refused():
    command = [sys.executable, "-m", "tools.prove.mutate", "--rooms", "cellar"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'cellar' is no folder of shardpass/ that has tests" in done.stderr
