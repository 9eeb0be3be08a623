"""The collectives of programs for ``budget`` and ``diff``: modules, scripts, reports, earlier revisions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardpass.cli.common import module_at, read_axes, read_input
from shardpass.cli.progress import progress

if TYPE_CHECKING:
    from argparse import Namespace

    from shardpass.report.collectives import Collectives
    from shardpass.targets.target import Target

_REVISION = re.compile(r"(?P<revision>[^:]+):(?P<program>[^:]+\.py:[^\W\d].*)", re.DOTALL)
GIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of ``add_program``, which determine the program of a module or script."""

    partitioner: str
    machine: str | None = None
    mesh: str | None = None
    target: Target | None = None
    timeout: float | None = None

    @staticmethod
    def of(args: Namespace) -> Asked:
        """Return the options in the arguments, after ``use_program``."""
        return Asked(args.partitioner, args.machine, args.mesh, args.target, args.timeout)

    def words(self) -> list[str]:
        """Return the options as words of a command line."""
        given = {name: getattr(self, name) for name in ("partitioner", "machine", "mesh", "target", "timeout")}
        return [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]


def program_at(path: str, asked: Asked) -> Collectives:
    """Return the collectives of a program: a module or ``FILE.py:FUNCTION``.

    Raises:
        ShardpassError: as ``shardpass explain``.
    """
    from shardpass.cli.explain import explain
    from shardpass.cli.script import script_folder
    from shardpass.report.collectives import collectives_of
    from shardpass.report.hlo.programs import is_compiled
    from shardpass.testing.annotations import annotations_of

    data, file = module_at(path, asked.timeout, asked.target)
    folders = [Path.cwd(), *map(Path, script_folder(path))]
    mesh = None if asked.mesh is None else read_axes(asked.mesh)
    made: dict[str, Any] = {"partitioner": asked.partitioner, "machine": asked.machine, "target": asked.target}
    with progress(f"compiling {file} by {asked.partitioner}"):
        program = collectives_of(explain(data, file, folders=folders, mesh=mesh, **made))
    return program if is_compiled(data) else replace(program, annotations=annotations_of(data, file, folders))


def collectives_at(path: str, asked: Asked) -> Collectives:
    """Return the collectives of a program, of JSON that ``explain`` or ``budget`` wrote, or of an earlier revision.

    ``path``: what ``program_at`` takes, a file of JSON, or ``REVISION:FILE.py:FUNCTION``.

    Raises:
        ShardpassError: as ``program_at``; SP120 for JSON of another form; SP643 for a revision that git does not have.
    """
    if path.endswith(".json") or (os.path.isfile(path) and _is_json(path)):
        return _of_json(path)
    match = _REVISION.fullmatch(path)
    if match is not None and not os.path.exists(path.partition(".py:")[0] + ".py"):
        return _of_revision(match["revision"], match["program"], asked)
    return program_at(path, asked)


def _is_json(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(1) == b"{"


def _of_json(path: str) -> Collectives:
    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import CANNOT_READ
    from shardpass.report.collectives import Collectives, collectives_of_json

    raw, file = read_input(path)
    try:
        given = json.loads(raw)
        if "collectives" in given:
            return collectives_of_json(given)
        (program,) = given.values()
        return Collectives.from_dict(program)
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = "give what `shardpass explain --json` or `shardpass budget FILE:FUNCTION --format json` printed"
        raise CANNOT_READ.error(Place(file), reason="it is no report of one program", hint=hint) from None


def _of_revision(revision: str, program: str, asked: Asked) -> Collectives:
    """Run ``shardpass budget`` on the program, in a checkout of the revision."""
    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_testing import OLD_REVISION
    from shardpass.report.collectives import Collectives

    command = [sys.executable, "-m", "shardpass", "budget", program, "--format", "json", *asked.words()]
    with checkout(revision) as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"its process ended with {done.returncode}"])[-1]
        raise OLD_REVISION.error(Place(program), revision=revision, reason=reason)
    (given,) = json.loads(done.stdout).values()
    return Collectives.from_dict(given)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Check out a revision in a separate folder; yield the folder that corresponds to the current one.

    Raises:
        ShardpassError: SP643.
    """
    from shardpass.ir.child import making_files

    top = _git(revision, "rev-parse", "--show-toplevel")
    inside = os.path.relpath(os.path.realpath("."), os.path.realpath(top))
    with making_files():
        folder = tempfile.TemporaryDirectory(prefix="shardpass-")
    with folder as name:
        tree = os.path.join(name, "tree")
        _git(revision, "worktree", "add", "--detach", "--quiet", tree, revision)
        try:
            yield Path(tree, inside)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], capture_output=True, check=False)


def _git(revision: str, *words: str) -> str:
    from shardpass.diagnostics.table_testing import OLD_REVISION

    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OLD_REVISION.error(revision=revision, reason=str(error)) from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[-1]
        raise OLD_REVISION.error(revision=revision, reason=reason)
    return done.stdout.strip()
