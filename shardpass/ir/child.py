"""Work that jaxlib may end its process over is done in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def served_by(module: str, function: str, *arguments: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Calls ``function`` of ``module`` on texts in a fresh Python, with ``data`` on stdin; what comes on stdout."""
    code = f"from {module} import {function}; {function}(*{arguments!r})"
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=False)


def said_last(child: subprocess.CompletedProcess[bytes]) -> str:
    """Why the child failed: the last line that names an error, or the last, or else how it ended."""
    rows = [row.strip() for row in child.stderr.decode("utf-8", "replace").splitlines() if row.strip()]
    told = [row for row in rows if "error" in row.lower() and not row.startswith("File ")]
    said = " ".join((told or rows or [""])[-1].split())[:400]
    return said or f"its process ended with {child.returncode}"
