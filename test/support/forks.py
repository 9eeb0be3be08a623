"""Run Python programs in forks of a process that has their modules loaded.

A fork is a process of its own: its streams, folder, environment, devices and MLIR context end with it. Only what it
would import is there before it starts. Each fork reports what it imported all the same, and the process that it was
forked from imports that before the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.metadata
import io
import itertools
import os
import runpy
import signal
import sys
import traceback
import types
from collections.abc import Iterable, Sequence

REPORT = 1000  # the descriptor on which a fork names the modules that it imported
LINE = 4000  # bytes of one report, which the pipe takes whole
FLAGS = ("-P", "-u", "-B")  # of Python: no folder of its own, no buffers, no files of bytecode
BINDINGS = "._mlir_libs."  # they lack names if they are loaded before the module of their dialect, which loads them


@functools.cache
def _entry_points(folder: str, changed: int) -> list[tuple[str, importlib.metadata.EntryPoints]]:
    return [(found.name, found.entry_points) for found in importlib.metadata.distributions(path=[folder])]


def entry_points(**chosen: str) -> importlib.metadata.EntryPoints:
    """Stands for the function of ``importlib.metadata``, which reads 80 files: a fork has what was read before it."""
    found: dict[str, importlib.metadata.EntryPoints] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for name, points in _entry_points(folder, os.stat(folder or ".").st_mtime_ns):
                found.setdefault(name, points)
    return importlib.metadata.EntryPoints(itertools.chain.from_iterable(found.values())).select(**chosen)


importlib.metadata.entry_points = entry_points


class Reports:
    """What forks of this process imported."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.met: set[str] = set()

    def follow(self) -> None:
        """Imports what earlier forks had to import."""
        with contextlib.suppress(BlockingIOError):
            while report := os.read(self.reader, 1 << 20):
                for name in dict.fromkeys(report.decode().split()):
                    if name in self.met or BINDINGS in name:
                        continue
                    self.met.add(name)
                    with contextlib.suppress(Exception):  # a module that its package makes, and no file
                        importlib.import_module(name)
                importlib.metadata.entry_points()
                gc.freeze()  # a collection in a fork would copy what it visits

    def run_and_leave(self, arguments: Sequence[str], numbers: Iterable[int] = ()) -> None:
        """Becomes, in a fork, the program ``arguments``, and ends the process with its status.

        Of the open files, it keeps its streams and ``numbers``.
        """
        os.dup2(self.writer, REPORT)
        for before, kept in itertools.pairwise(sorted({2, *numbers, REPORT})):
            os.closerange(before + 1, kept)
        self.writer = REPORT
        before = set(sys.modules)
        status = run(arguments)
        _report(name for name in list(sys.modules) if name not in before)
        os._exit(status)


def _report(names: Iterable[str]) -> None:
    text = " ".join(names)
    while text:
        end = len(text) if len(text) < LINE else text.rindex(" ", 0, LINE)
        with contextlib.suppress(OSError):  # nobody has read for long: the next fork reports it
            os.write(REPORT, text[:end].encode() + b" ")
        text = text[end:].lstrip()


def flags_of(arguments: Sequence[str]) -> list[str]:
    """Returns the flags of Python at the start of ``arguments``."""
    return list(itertools.takewhile(FLAGS.__contains__, arguments))


def run(arguments: Sequence[str]) -> int:
    """Runs ``SCRIPT ...``, ``-m MODULE ...`` or ``-c CODE ...`` as Python does, and returns the exit status."""
    flags = flags_of(arguments)
    sys.dont_write_bytecode |= "-B" in flags
    at_once = "-u" in flags or bool(os.environ.get("PYTHONUNBUFFERED"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.stdin, sys.stdout = _stream(0, "r", at_once), _stream(1, "w", at_once)
    sys.stderr = _stream(2, "w", at_once, "backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.stderr.reconfigure(line_buffering=True)
    status = 0
    try:
        _run(arguments[len(flags) :])
    except SystemExit as leaving:
        if leaving.code is not None and not isinstance(leaving.code, int):
            print(leaving.code, file=sys.stderr)
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    return status & 255 if _flushed(sys.stdout) and _flushed(sys.stderr) else 120


def _run(arguments: Sequence[str]) -> None:
    if arguments[0] == "-c":
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
    elif arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")


def _stream(descriptor: int, mode: str, at_once: bool, errors: str = "surrogateescape") -> io.TextIOWrapper:
    at_once = at_once and mode == "w"
    file = open(descriptor, mode + "b", 0 if at_once else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(file, "utf-8", errors, write_through=at_once)  # type: ignore[type-var]  # a raw file


def _flushed(stream: io.TextIOBase) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True
