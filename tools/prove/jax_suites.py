#!/usr/bin/env python
"""JAX's own tests with the hook, and those that do not pass without it: the same tests pass, partitioned by shardpass.

    python -m tools.prove.jax_suites --tests ~/jax/tests                                all that concern many devices
    python -m tools.prove.jax_suites --tests ~/jax/tests shard_map_test.py layout_test.py

JAX's tests are in no package: ``--tests`` is the folder of a checkout of JAX, at the version that is installed. Each
file runs in a process of its own, with 8 devices, under ``shardpass.jax.install()``; its tests that do not pass run
again without the hook. A test that ends the process, or hangs, counts as failed, and the next process continues after
it.

The table has for each file the tests that ran, those that passed with the hook, those that pass without the hook alone,
and the programs for several devices: partitioned by shardpass, or left to XLA. Below it are the tests that pass without
the hook alone, and the reasons of programs that were left to XLA. The status is 1 where a test passes without the hook
alone, where less than ``--share`` of the programs are partitioned, or where a file cannot be imported. A test that
looks at XLA's own partitioner is named in ``OF_XLA``, with what it looks at.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tools.processes import environment
from tools.prove.jax_suites_plugin import HOOK, RECORD

SUITES = (  # of many devices
    "aot", "array", "async_collectives", "custom_partitioning",
    "custom_partitioning_sharding_rule", "debugging_primitives", "export", "layout",
    "linalg_sharding", "memories", "multi_device", "mutable_array", "pjit",
    "pmap", "python_callback", "ragged_collective", "shard_alike", "shard_map",
)  # fmt: skip
DIED = "ended the process"
ENDINGS = 20  # processes for one file: each goes on behind the test that ended the one before
# tests that look at XLA's partitioner, with what they look at
OF_XLA: dict[str, str] = {}


@dataclass
class Outcome:
    """What one file of tests gave, in one of the two ways. ``counts``: those of ``stats()``, with reasons.

    ``imported``: whether pytest could import the file.
    """

    tests: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    by_test: dict[str, list[str]] = field(default_factory=dict)  # reasons of what a test left to XLA
    imported: bool = True

    def having(self, *outcomes: str) -> set[str]:
        return {name for name, outcome in self.tests.items() if outcome in outcomes}


@dataclass(frozen=True)
class Compared:
    """A file of tests: all of them with the hook, and those that did not pass without it (``plain``)."""

    name: str
    hooked: Outcome
    plain: Outcome

    @property
    def lost(self) -> list[str]:
        return sorted(self.plain.having("passed") - self.hooked.having("passed"))


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 where the hook loses a test or partitions too few programs."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "jax_suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=Path, required=True, metavar="FOLDER", help="the folder of JAX's tests")
    parser.add_argument("--devices", type=int, default=8, metavar="N")
    parser.add_argument("--seconds", type=float, default=1800, metavar="S", help="for one file, in one way")
    parser.add_argument("--share", type=float, default=0.995, help="of programs that must be partitioned (0.995)")
    parser.add_argument("--match", default="", metavar="EXPR", help="tests alone that match, as pytest's -k")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all outcomes")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of the folder (default: those of many devices)")
    args = parser.parse_args(argv)
    files = [args.tests / name for name in args.files] or found_in(args.tests)
    if missing := [str(path) for path in files if not path.is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    if not files:
        parser.error(f"{args.tests} has none of JAX's tests of many devices")
    compared = run_all(files, args)
    if args.json:
        args.json.write_text(json.dumps([as_json(each) for each in compared], indent=1))
    return report(compared, args.share)


def found_in(folder: Path) -> list[Path]:
    paths = (folder / f"{name}_test.py" for name in SUITES)
    return [path for path in paths if path.is_file()]


def run_all(files: Sequence[Path], args: argparse.Namespace) -> list[Compared]:
    from rich.console import Console
    from rich.progress import track

    compared = []
    for path in track(files, "JAX's tests", console=Console(stderr=True)):
        hooked = run_file(path, True, args.devices, args.seconds, args.match)
        fine = hooked.having("passed", "skipped")
        again = hooked.imported and len(fine) < len(hooked.tests)
        plain = run_file(path, False, args.devices, args.seconds, args.match, fine) if again else Outcome()
        compared.append(Compared(path.name, hooked, plain))
    return compared


def run_file(
    path: Path, hooked: bool, devices: int, seconds: float, match: str, known: Collection[str] = ()
) -> Outcome:
    """Run the tests of one file but the ``known`` ones, in as many processes as it takes, and at most ``ENDINGS``."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record.jsonl")
        record.write_text("".join(json.dumps({"begun": name}) + "\n" for name in known))  # so no child runs them
        env = environment(**{RECORD: str(record), HOOK: str(int(hooked)), "JAX_NUM_CPU_DEVICES": str(devices)})
        for _ in range(ENDINGS):
            before = record.read_text()
            if not child(path, env, seconds, match):
                return Outcome(imported=False)
            lines = record.read_text().splitlines()
            if record.read_text() == before or json.loads(lines[-1]).get("ended"):
                break
        return read_record(lines[len(known) :])


def child(path: Path, env: dict[str, str], seconds: float, match: str) -> bool:
    """Runs pytest on ``path``; False where it cannot import the file, and what it prints is shown then."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tools.prove.jax_suites_plugin", "-k", match]
    options += ["--disable-warnings", "-c", os.devnull, "--rootdir", str(path.parent), "--import-mode=importlib"]
    command = [sys.executable, "-P", "-m", "pytest", *options, str(path)]
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, env=env, timeout=seconds, capture_output=True, text=True)
        if done.returncode == pytest.ExitCode.INTERRUPTED:
            print(done.stdout[-2000:], file=sys.stderr)
            return False
    return True


def read_record(lines: Iterable[str]) -> Outcome:
    """The outcomes that a child wrote; a test that begun and did not end has ended the process."""
    outcome = Outcome()
    for line in map(json.loads, lines):
        if "ended" in line:
            continue
        if "begun" in line:
            outcome.tests[line["begun"]] = DIED
            continue
        outcome.tests[line["test"]] = line["outcome"]
        outcome.counts.update(line["stats"])
        if reasons := [name for name in line["stats"] if " " in name]:
            outcome.by_test[line["test"]] = reasons
    return outcome


def report(compared: Sequence[Compared], least: float) -> int:
    """Prints the table, and what differs; returns the exit status."""
    from rich.console import Console
    from rich.table import Table

    table = Table("file", *(("tests", "passed", "without the hook alone", "partitioned", "left to XLA")))
    total: Counter[str] = Counter()
    for each in compared:
        row = {
            "tests": len(each.hooked.tests) - len(each.hooked.having("skipped")),
            "passed": len(each.hooked.having("passed")),
            "lost": len(each.lost),
            "partitioned": each.hooked.counts["partitioned"],
            "fallback": each.hooked.counts["fallback"],
        }
        total.update(row)
        table.add_row(each.name, *map(str, row.values()))
    table.add_row("all", *(str(total[name]) for name in ("tests", "passed", "lost", "partitioned", "fallback")))
    console = Console()
    console.print(table)
    lost = [(each.name, test) for each in compared for test in each.lost]
    print_differences(compared, lost)
    unread = [each.name for each in compared if not (each.plain.imported and each.hooked.imported)]
    for name in unread:
        print(f"cannot be imported: {name}")
    compiled = total["partitioned"] + total["fallback"]
    share = total["partitioned"] / compiled if compiled else 1.0
    console.print(f"{share:.2%} of {compiled} programs are partitioned; {len(lost)} tests pass without the hook alone")
    return int(share < least or bool(unread) or any(test not in OF_XLA for _, test in lost))


def print_differences(compared: Sequence[Compared], lost: Sequence[tuple[str, str]]) -> None:
    for file, test in lost:
        print(f"fails with the hook: {file} {test}", f"({OF_XLA[test]})" if test in OF_XLA else "")
    reasons: dict[str, list[str]] = {}
    for each in compared:
        for test, found in each.hooked.by_test.items():
            for reason in found:
                reasons.setdefault(reason.split(" ")[0], []).append(f"{test} ({reason.partition(' ')[2]})")
    for code, tests in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"left to XLA, {code}: {len(tests)}", *tests, sep="\n    ")


def as_json(each: Compared) -> dict[str, Any]:
    sides = {"hooked": each.hooked, "plain": each.plain}
    return {"file": each.name} | {name: vars(side) for name, side in sides.items()}


if __name__ == "__main__":
    sys.exit(main())
