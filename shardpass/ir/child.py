"""Run work in a child process, as jaxlib may abort."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_driver import CANNOT_WRITE


def served_by(module: str, function: str, *arguments: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Call ``function`` of ``module`` on texts in a fresh Python, with ``data`` on stdin; captures stdout."""
    return subprocess.run(command(module, function, arguments), input=data, capture_output=True, check=False)


def served_by_files(
    module: str, function: str, *arguments: str, source: BinaryIO, sink: BinaryIO
) -> subprocess.CompletedProcess[bytes]:
    """Call a function as ``served_by``, with files as stdin and stdout."""
    words = command(module, function, arguments)
    return subprocess.run(words, stdin=source, stdout=sink, stderr=subprocess.PIPE, check=False)


@contextmanager
def making_files() -> Iterator[None]:
    """Convert errors of temporary files inside the block. Raises ShardpassError (SP121)."""
    try:
        yield
    except OSError as error:
        folder = Place(tempfile.tempdir or "the folder of temporary files")
        hint = "make room there, or name another folder in the environment variable TMPDIR"
        raise CANNOT_WRITE.error(folder, reason=error.strerror or str(error), hint=hint) from None


def temporary_file() -> BinaryIO:
    """Make an empty temporary file that is deleted when it is closed."""
    return cast(BinaryIO, tempfile.TemporaryFile())


def answer() -> BinaryIO:
    """Open the child's stdout. (With PYTHONUNBUFFERED, Python's own stdout may write only a part.)"""
    return open(1, "wb", closefd=False)


def command(module: str, function: str, arguments: tuple[str, ...]) -> list[str]:
    """Return the command line of a process that calls ``function`` of ``module`` on texts in a fresh Python."""
    return [sys.executable, "-c", f"from {module} import {function}; {function}(*{arguments!r})"]


def failure_of(child: subprocess.CompletedProcess[bytes]) -> str:
    """Return why the child failed: the last line that names an error, the last line, or the exit status."""
    rows = [row.strip() for row in child.stderr.decode("utf-8", "replace").splitlines() if row.strip()]
    errors = [row for row in rows if "error" in row.lower() and not row.startswith("File ")]
    message = " ".join((errors or rows or [""])[-1].split())[:400]
    return message or f"its process ended with status {child.returncode}"
