"""Work that jaxlib may end its process over is done in a process of its own."""

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
    """Calls ``function`` of ``module`` on texts in a fresh Python, with ``data`` on stdin; what comes on stdout."""
    return subprocess.run(command(module, function, arguments), input=data, capture_output=True, check=False)


def served_by_files(
    module: str, function: str, *arguments: str, given: BinaryIO, taken: BinaryIO
) -> subprocess.CompletedProcess[bytes]:
    """As ``served_by``, of files: nothing that is read or written passes through this process."""
    words = command(module, function, arguments)
    return subprocess.run(words, stdin=given, stdout=taken, stderr=subprocess.PIPE, check=False)


@contextmanager
def making_files() -> Iterator[None]:
    """Inside, temporary files are made and written. Raises ShardpassError (SP121) where that is impossible."""
    try:
        yield
    except OSError as error:
        folder = Place(tempfile.tempdir or "the folder of temporary files")
        hint = "make room there, or name another folder in the environment variable TMPDIR"
        raise CANNOT_WRITE.error(folder, reason=error.strerror or str(error), hint=hint) from None


def temporary_file() -> BinaryIO:
    """An empty file that is gone once it is closed."""
    return cast(BinaryIO, tempfile.TemporaryFile())


def answer() -> BinaryIO:
    """In the child: stdout, to be closed. With PYTHONUNBUFFERED Python's own may write a part only, and say nothing."""
    return open(1, "wb", closefd=False)


def command(module: str, function: str, arguments: tuple[str, ...]) -> list[str]:
    """The words of a process that calls ``function`` of ``module`` on texts in a fresh Python."""
    return [sys.executable, "-c", f"from {module} import {function}; {function}(*{arguments!r})"]


def said_last(child: subprocess.CompletedProcess[bytes]) -> str:
    """Why the child failed: the last line that names an error, or the last, or else how it ended."""
    rows = [row.strip() for row in child.stderr.decode("utf-8", "replace").splitlines() if row.strip()]
    told = [row for row in rows if "error" in row.lower() and not row.startswith("File ")]
    said = " ".join((told or rows or [""])[-1].split())[:400]
    return said or f"its process ended with {child.returncode}"
