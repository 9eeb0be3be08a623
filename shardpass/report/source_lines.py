"""Lines of the user's program, for pages that quote them.

A module may come from a stranger, and its locations may name any file: ``loc("/etc/passwd":1:1)``, a device that never
ends, or ``.env`` in the folder where the user works. So a line is quoted only from what looks like the user's source:

1. a regular file of modest size, whose name ends as the name of a source file does;
2. below a folder that the user works in or names, once links are followed, and in no folder below that whose name
   begins with a dot; its own name begins with none either;
3. with no other name in the file system: a hard link may be to a file of any other folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from shardpass.diagnostics import Place

LARGEST = 4 * 2**20  # bytes of a file
SOURCES = frozenset({".c", ".cc", ".cpp", ".hlo", ".jl", ".mlir", ".py", ".pyi", ".rs"})


def source_line(place: Place, folders: Sequence[Path], *, strip: bool = True) -> str:
    """Return the stripped text at ``place``; "" if the line does not exist or may not be quoted."""
    if not place.line or not place.file:
        return ""
    lines = _lines(place.file, tuple(folders))
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    return line.strip() if strip else line


def source_lines(file: str, folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the lines of ``file``; () if the file does not exist or may not be quoted."""
    return _lines(file, tuple(folders))


@lru_cache(maxsize=64)
def is_large(file: str) -> bool:
    """Return whether ``file`` is too large to quote, like a module with its constants."""
    return os.path.isfile(file) and os.path.getsize(file) > LARGEST


@lru_cache(maxsize=64)
def _lines(file: str, folders: tuple[Path, ...]) -> tuple[str, ...]:
    try:
        path = Path(file).resolve()
        if path.suffix not in SOURCES or not any(_is_inside(path, folder.resolve()) for folder in folders):
            return ()
        # opened before it is looked at, so that what is looked at is what is read; a pipe would wait for its writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST or status.st_nlink > 1:
                return ()
            return tuple(stream.read(LARGEST).decode("utf-8", "replace").split("\n"))
    except (OSError, ValueError, RuntimeError):  # not there, not readable, a NUL in the name, links in a circle
        return ()


def _is_inside(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder) and not any(part.startswith(".") for part in path.relative_to(folder).parts)
