"""Define lit's format for this suite: commands of shardpass and FileCheck run in children forked from lit's worker.

A worker imports what its commands import once. Each command is then a fork of it that starts with those modules loaded,
in a process of its own: its files, working directory, environment, devices and MLIR context end with it. Any other
command, and any with variables of its own (``env NAME=...``), is started as usual. lit's own shell reads the lines,
joins the pipes and prints what failed.

``lit --param processes=all`` starts every command as usual, and so does a file that says ``PROCESSES: real``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import lit.formats
import lit.TestRunner

SUPPORT = Path(__file__).parents[1] / "lit" / "support"
COMMAND, EXITS = str(SUPPORT / "command.py"), str(SUPPORT / "exits.py")
FILECHECK = ("-m", "filecheck")
REAL = re.compile(r"^\W*PROCESSES: real$", re.MULTILINE)
REPORT = 1000  # the descriptor on which a child names the modules that it imported
LINE = 4000  # bytes of one report, which the pipe takes whole


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
        if not _is_forked(arguments) or any(env.get(name) != value for name, value in self.environment.items()):
            return subprocess.Popen(arguments, env=env, **options)
        _parent.prepare(env)
        return _parent.fork(arguments, env=env, **options)


def _is_forked(arguments: Sequence[str]) -> bool:
    """Returns whether ``arguments`` start a command of shardpass or FileCheck in this Python."""
    if len(arguments) < 3 or arguments[0] != sys.executable:
        return False
    if arguments[1] == EXITS:
        return _is_forked(arguments[3:])
    return arguments[1] == COMMAND or tuple(arguments[1:3]) == FILECHECK


class _Parent:
    """This process as the one that commands are forked from."""

    def __init__(self) -> None:
        self.reader, self.writer = -1, -1
        self.met: set[str] = set()  # modules that children reported

    def prepare(self, env: Mapping[str, str]) -> None:
        """Imports what earlier children had to import."""
        if self.reader < 0:
            os.environ.clear()
            os.environ.update(env)  # JAX reads it when it is imported
            self.reader, self.writer = os.pipe()
            os.set_blocking(self.reader, False)
            os.set_blocking(self.writer, False)
        with contextlib.suppress(BlockingIOError):
            while report := os.read(self.reader, 1 << 20):
                for name in set(report.decode().split()) - self.met:
                    self.met.add(name)
                    with contextlib.suppress(Exception):  # a module that its package makes, and no file
                        importlib.import_module(name)
                gc.freeze()  # a collection in a child would copy what it visits

    def fork(self, arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Starts a child that runs a script or a module of Python as ``arguments`` say."""

        def child() -> None:
            os.dup2(self.writer, REPORT)
            os.closerange(3, REPORT)  # also the pipe on which Popen waits for the start of a program
            self.writer = REPORT
            if "env" in options:
                os.environ.clear()
                os.environ.update(options["env"])
            before = set(sys.modules)
            status = _run(arguments[1:])
            self._report(name for name in list(sys.modules) if name not in before)
            os._exit(status)

        return subprocess.Popen(arguments, preexec_fn=child, **options)

    def _report(self, names: Iterable[str]) -> None:
        text = " ".join(names)
        while text:
            end = len(text) if len(text) < LINE else text.rindex(" ", 0, LINE)
            with contextlib.suppress(BlockingIOError):  # nobody has read for long: the next child reports it
                os.write(REPORT, text[:end].encode() + b" ")
            text = text[end:].lstrip()


_parent = _Parent()
_subprocess_run = subprocess.run


def _run(arguments: Sequence[str]) -> int:
    """Runs a script or a module as Python does that has just started, and returns its exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w", "backslashreplace")
    sys.stderr.reconfigure(line_buffering=True)
    subprocess.run = _run_forked if arguments[0] == EXITS else _subprocess_run
    try:
        sys.argv = list(arguments)
        if arguments[0] == "-m":
            del sys.argv[0]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
        status = 0
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    return status & 255 if _flushed(sys.stdout) and _flushed(sys.stderr) else 120


def _stream(descriptor: int, mode: str, errors: str = "surrogateescape") -> io.TextIOWrapper:
    return io.TextIOWrapper(open(descriptor, mode + "b", closefd=False), "utf-8", errors)


def _flushed(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _run_forked(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Stands for ``subprocess.run`` in exits.py."""
    process = _parent.fork(command, **options)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
