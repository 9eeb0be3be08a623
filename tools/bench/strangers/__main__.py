"""Runs the table of the package on a folder of checkouts and prints a row for each program and each mistake."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.strangers.compiled import compile_seconds
from tools.processes import environment, module_command

HERE = Path(__file__).parent
DEVICES = "--xla_force_host_platform_device_count=8"
MIB = 2**20
FAKE = """
from unittest import mock
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return mock.MagicMock()
"""


@dataclass(frozen=True)
class Outcome:
    """What the report of a program tells; ``seconds``: processor time of all its processes.

    ``findings``: the sentence of each with the bytes received and memory held with it, in MiB.
    """

    received: float
    memory: float
    findings: tuple[tuple[str, float, float], ...]
    seconds: float


def copied(source: Path, folder: Path, paths: Sequence[str], mistake: Mapping[str, str] | None) -> Path:
    """Copy the parts of a checkout that a program needs, with ``mistake`` planted. Raises ValueError where the file is
    another than the table has.
    """
    target = folder / source.name
    for path in paths:
        shutil.copytree(source / path, target / path, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    if mistake is not None:
        file = target / mistake["file"]
        text = file.read_text()
        if text.count(mistake["old"]) != 1:
            raise ValueError(f"{mistake['file']}: {mistake['old']!r} stands there {text.count(mistake['old'])} times")
        file.write_text(text.replace(mistake["old"], mistake["new"]))
    return target


def faked(folder: Path, names: Sequence[str]) -> Path:
    """Make modules with ``names`` of which every attribute is a mock."""
    for name in names:
        path = folder / name.replace(".", "/")
        path.mkdir(parents=True)
        (path / "__init__.py").write_text(FAKE)
    return folder


def outcome(script: Path, function: str, machine: str, env: Mapping[str, str]) -> Outcome:
    """Explain one program. Raises CalledProcessError where the report fails."""
    asked = [f"{script}:{function}", "--partitioner", "xla", "--machine", machine, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(
        module_command("shardpass", "explain", *asked), env=env, capture_output=True, text=True, check=True
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(told[told.index("{") :])
    return Outcome(
        report["total_bytes_received"] / MIB,
        report["memory"]["total"] / MIB,
        tuple(_finding(one) for one in report["findings"]["found"]),
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def _finding(one: Mapping[str, Any]) -> tuple[str, float, float]:
    return one["sentence"], one["after"]["bytes"] / MIB, one["after"]["memory"] / MIB


def rows(name: str, one: Mapping[str, Any], args: argparse.Namespace) -> Iterator[tuple[str, Outcome, float]]:
    """Yield the program as it is and with each mistake: its outcome, and the seconds of XLA's compile."""
    for mistake in [None, *one["mistakes"]]:
        with tempfile.TemporaryDirectory() as made:
            checkout = copied(Path(args.checkouts, one["checkout"]), Path(made), one["paths"], mistake)
            script = Path(made, f"{name}.py")
            shutil.copy(HERE / "scripts" / script.name, script)
            folders = [faked(Path(made, "fakes"), one["fakes"]), *(checkout / path for path in one["paths"])]
            env = environment(XLA_FLAGS=DEVICES, JAX_PLATFORMS="cpu")
            paths = [env["PYTHONPATH"], *map(str, folders), *filter(None, [args.packages])]
            env["PYTHONPATH"] = os.pathsep.join(paths)
            seconds = compile_seconds(f"{script}:{one['function']}", env)
            made_of = outcome(script, one["function"], args.machine, env)
            yield "" if mistake is None else mistake["name"], made_of, seconds


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tools.bench.strangers", description=sys.modules[__package__].__doc__)
    parser.add_argument("checkouts", metavar="CHECKOUTS", help="the folder of the checkouts")
    parser.add_argument("--only", default="", help="programs with this in their names")
    parser.add_argument("--packages", default="", metavar="FOLDER", help="where their libraries are installed")
    parser.add_argument("--machine", default="h100", help="for which time is modelled (default: h100)")
    args = parser.parse_args(argv)
    for name, one in tomllib.loads((HERE / "table.toml").read_text()).items():
        if args.only not in name:
            continue
        print(f"{name}, {one['checkout']} at {one['commit'][:12]}", flush=True)
        for mistake, made, compiled in rows(name, one, args):
            spent = f"{made.seconds:.0f} s, {made.seconds / compiled:.1f} times XLA's {compiled:.1f}"
            print(f"  {mistake or 'as it is':32}{made.received:10.1f} {made.memory:10.1f} MiB  {spent}")
            for words, received, memory in made.findings:
                print(f"    {received:38.1f} {memory:10.1f} MiB  {words[:150]}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
