"""Work that jaxlib may end its process over is done in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import BinaryIO


def served_by(module: str, function: str, *arguments: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Calls ``function`` of ``module`` on texts in a fresh Python, with ``data`` on stdin; what comes on stdout."""
    return subprocess.run(_command(module, function, arguments), input=data, capture_output=True, check=False)


def served_by_files(
    module: str, function: str, *arguments: str, given: BinaryIO, taken: BinaryIO
) -> subprocess.CompletedProcess[bytes]:
    """As ``served_by``, of files: nothing that is read or written passes through this process."""
    command = _command(module, function, arguments)
    return subprocess.run(command, stdin=given, stdout=taken, stderr=subprocess.PIPE, check=False)


def _command(module: str, function: str, arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-c", f"from {module} import {function}; {function}(*{arguments!r})"]


def said_last(child: subprocess.CompletedProcess[bytes]) -> str:
    """Why the child failed: the last line that names an error, or the last, or else how it ended."""
    rows = [row.strip() for row in child.stderr.decode("utf-8", "replace").splitlines() if row.strip()]
    told = [row for row in rows if "error" in row.lower() and not row.startswith("File ")]
    said = " ".join((told or rows or [""])[-1].split())[:400]
    return said or f"its process ended with {child.returncode}"
