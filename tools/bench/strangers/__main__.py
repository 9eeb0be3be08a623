"""Runs the table of the package on a folder of checkouts and prints a row for each program and each mistake."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.processes import MARK, environment, module_command

HERE = Path(__file__).parent
DEVICES = "--xla_force_host_platform_device_count=8"
MIB = 2**20
RIGHT = "as it is"
NEAR = 1.1  # of what the right program receives and holds, that a finding may leave
FAKE = """
from unittest import mock
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return mock.MagicMock()
"""


def copied(checkout: Path, folder: Path, one: Mapping[str, Any], mistake: Mapping[str, str] | None = None) -> Path:
    """Copy the parts of ``checkout`` that a program needs beside its script in ``folder``, with the table's changes and
    ``mistake`` planted. A notebook is copied as a script of its cells of code.

    Raises ValueError where a file is another than the table has.
    """
    target = folder / checkout.name
    for path in one["paths"]:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".ipynb"):
            (target / Path(path).name).with_suffix(".py").write_text(cells(checkout / path, one["cells"]))
        elif path.endswith(".py"):
            shutil.copy(checkout / path, target / path)
        else:
            shutil.copytree(checkout / path, target / path, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    for change in (*one.get("changes", ()), *filter(None, [mistake])):
        file = next(file for file in (target / change["file"], folder / change["file"]) if file.exists())
        text = file.read_text()
        if text.count(change["old"]) != 1:
            raise ValueError(f"{change['file']}: {change['old']!r} stands there {text.count(change['old'])} times")
        file.write_text(text.replace(change["old"], change["new"]))
    return target


def cells(notebook: Path, numbers: Sequence[int]) -> str:
    """Return the text of the cells of code ``numbers`` of a notebook, without commands of the notebook's own."""
    every = [one["source"] for one in json.loads(notebook.read_text())["cells"] if one["cell_type"] == "code"]
    lines = "\n\n".join("".join(every[number]) for number in numbers).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("!", "%"))) + "\n"


def faked(folder: Path, names: Sequence[str]) -> Path:
    """Make modules with ``names`` of which every attribute is a mock."""
    for name in names:
        path = folder / name.replace(".", "/")
        path.mkdir(parents=True)
        (path / "__init__.py").write_text(FAKE)
    return folder


def rows(name: str, one: Mapping[str, Any], args: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the program as it is and with each mistake, and what ``asked`` tells of it or the end of its errors."""
    for mistake in [None, *one["mistakes"]]:
        label = RIGHT if mistake is None else mistake["name"]
        if args.row not in label:
            continue
        with tempfile.TemporaryDirectory() as made:
            script = Path(made, f"{name}_step.py")  # a name that no package has
            shutil.copy(HERE / "scripts" / f"{name}.py", script)
            checkout = copied(Path(args.checkouts, one["checkout"]), Path(made), one, mistake)
            inside = [checkout / path for path in one["paths"] if (checkout / path).is_dir()]
            folders = [faked(Path(made, "fakes"), one["fakes"]), checkout, *inside]
            env = environment(XLA_FLAGS=DEVICES, JAX_PLATFORMS="cpu")
            paths = [env["PYTHONPATH"], *map(str, folders), *filter(None, [args.packages])]
            env["PYTHONPATH"] = os.pathsep.join(paths)
            command = module_command("tools.bench.strangers.asked", f"{script}:{one['function']}", args.machine)
            told = subprocess.run(command, env=env, capture_output=True, text=True)
            answer = told.stdout.rpartition(MARK)[2] if told.returncode == 0 else ""
            yield label, json.loads(answer) if answer else {"failed": told.stderr[-2000:]}


def lines(row: Mapping[str, Any], right: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what a row says: the program, and each finding with its place, its edit, and whether it reaches
    ``right``, the program as it is.
    """
    if "failed" in row:
        yield f"no answer: {row['failed']}"
        return
    seconds = row["seconds"]
    times = seconds["search"] / seconds["compile"]
    spent = f"search {seconds['search']:.0f} s, {times:.1f} of XLA's {seconds['compile']:.1f}"
    others = f"script {seconds['script']:.0f} s, table {seconds['table']:.0f} s"
    yield f"{row['bytes'] / MIB:10.1f} {row['memory'] / MIB:10.1f} MiB  {spent}; {others} {row['stopped']}"
    for found in row["found"]:
        after = found["after"]
        near = right is not None and all(after[key] <= NEAR * right[key] for key in ("bytes", "memory"))
        yield f"{after['bytes'] / MIB:10.1f} {after['memory'] / MIB:10.1f} MiB  {'as right' if near else ''}"
        yield f"    {found['place']}: {found['sentence']}"
        yield from (f"      {line}" for line in (found["diff"].splitlines() or found["code"]))


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tools.bench.strangers", description=sys.modules[__package__].__doc__)
    parser.add_argument("checkouts", metavar="CHECKOUTS", help="the folder of the checkouts")
    parser.add_argument("--only", default="", help="programs with this in their names")
    parser.add_argument("--row", default="", help=f"rows with this in their names ({RIGHT!r}: no mistake)")
    parser.add_argument("--packages", default="", metavar="FOLDER", help="where their libraries are installed")
    parser.add_argument("--machine", default="h100", help="for which time is modelled (default: h100)")
    parser.add_argument("--json", metavar="FILE", help="append each row to FILE, a line of JSON")
    args = parser.parse_args(argv)
    for name, one in tomllib.loads((HERE / "table.toml").read_text()).items():
        if args.only not in name:
            continue
        print(f"{name}, {one['checkout']} at {one['commit'][:12]}", flush=True)
        right = None
        for label, row in rows(name, one, args):
            right = row if label == RIGHT else right
            print(f"  {label}", *lines(row, right), sep="\n    ", flush=True)
            if args.json:
                with Path(args.json).open("a") as file:
                    file.write(f"{json.dumps({'program': name, 'row': label, **row})}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
