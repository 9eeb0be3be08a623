"""Define lit's format for this suite: commands of shardpass run in forks of lit's worker, FileCheck in the worker.

A worker imports what its commands import once. Each command is then a fork of it that starts with those modules loaded,
in a process of its own: its files, working directory, environment, devices and MLIR context end with it. What a command
starts is a fork as well, of the worker's fork server. Any other command, and any with variables of its own
(``env NAME=...``), is started as usual. lit's own shell reads the lines, joins the pipes and prints what failed.

``lit --param processes=all`` starts every command as usual, and so does a file that says ``PROCESSES: real``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import filecheck.main
import lit.formats
import lit.TestRunner

from support import fork_server
from support.forks import Reports

SUPPORT = Path(__file__).parents[1] / "lit" / "support"
COMMAND, EXITS = str(SUPPORT / "command.py"), str(SUPPORT / "exits.py")
FILECHECK = ("-m", "filecheck")
REAL = re.compile(r"^\W*PROCESSES: real$", re.MULTILINE)


class ForkedCommands(lit.formats.ShTest):
    """Runs the lines of a file with lit's own shell, whose processes are forks where they can be."""

    def execute(self, test: Any, lit_config: Any) -> Any:
        """Runs one file."""
        path = Path(test.getSourcePath())
        if lit_config.params.get("processes") == "all" or REAL.search(path.read_text(errors="replace")):
            result = super().execute(test, lit_config)
        else:
            with mock.patch.object(lit.TestRunner, "subprocess", _Processes(test.config.environment)):
                result = super().execute(test, lit_config)
        if result.code.isFailure:
            environment = {name: text for name, text in test.config.environment.items() if "/lit-tmp-" not in text}
            variables = " ".join(f"{name}={shlex.quote(text)}" for name, text in environment.items())
            result.output += f"\nTo run one of these commands by hand, put this in front of it:\n  env -i {variables}\n"
        return result


class _Processes:
    """Stands for the module ``subprocess`` where lit's shell starts processes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, arguments: Sequence[str], *, env: Mapping[str, str], **options: Any) -> subprocess.Popen[Any]:
        """Starts a process as ``subprocess.Popen`` does."""
        if any(env.get(name) != value for name, value in self.environment.items()):
            return subprocess.Popen(arguments, env=env, **options)
        if tuple(arguments[1:3]) == FILECHECK and _is_read_from(options) and arguments[0] == sys.executable:
            return Check(arguments[2:], options["stdin"], options["cwd"])
        if not _is_forked(arguments):
            return subprocess.Popen(arguments, env=env, **options)
        if not _reports:
            os.environ.clear()
            os.environ.update(env)  # JAX reads it when it is imported
            fork_server.server.start()
            _reports.append(Reports())
        _reports[0].follow()
        return _fork(arguments, env=env, **options)


class Check:
    """FileCheck at the end of a pipe: stands for its process, and runs in this one when lit asks what it printed."""

    stdin = stdout = stderr = None
    returncode: int | None = None

    def __init__(self, arguments: Sequence[str], given: Any, folder: str) -> None:
        self.arguments, self.folder = list(arguments), folder
        self.given = open(os.dup(given.fileno()))  # noqa: SIM115  # lit closes its own before it asks

    def communicate(self) -> tuple[str, str]:
        """Reads all that is given, and returns what FileCheck prints of it."""
        out, errors = io.StringIO(), io.StringIO()
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), contextlib.chdir(self.folder)
        with self.given, mock.patch.object(sys, "stdin", self.given), streams[0], streams[1], streams[2]:
            try:
                filecheck.main.main(self.arguments)
                self.returncode = 0
            except SystemExit as ended:
                self.returncode = int(ended.code or 0)
        return out.getvalue(), errors.getvalue()

    def wait(self) -> int | None:
        """Returns the status."""
        return self.returncode


def _is_read_from(options: Mapping[str, Any]) -> bool:
    """Returns whether a process reads a file or a pipe, and only lit reads what it prints."""
    return hasattr(options["stdin"], "read") and options["stdout"] == options["stderr"] == subprocess.PIPE


def _is_forked(arguments: Sequence[str]) -> bool:
    """Returns whether ``arguments`` start a command of shardpass in this Python."""
    if len(arguments) < 3 or arguments[0] != sys.executable:
        return False
    return _is_forked(arguments[3:]) if arguments[1] == EXITS else arguments[1] == COMMAND


_reports: list[Reports] = []  # of this worker
_subprocess_run = subprocess.run


def _fork(arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Starts a fork that becomes the script or module of ``arguments`` where other processes start a program."""

    def child() -> None:
        if "env" in options:
            os.environ.clear()
            os.environ.update(options["env"])
        subprocess.run = _run_forked if arguments[1] == EXITS else _subprocess_run
        fork_server.install()
        _reports[0].run_and_leave(arguments[1:])

    return subprocess.Popen(arguments, preexec_fn=child, **options)


def _run_forked(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Stands for ``subprocess.run`` in exits.py."""
    process = _fork(command, **options)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
