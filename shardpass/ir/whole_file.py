"""Write files atomically: to a temporary name first, which is then renamed.

Every file that a user asks for is written here, so that none is ever half of one: not after an error, Ctrl-C, or a
signal that no process can catch. A process that is killed may leave a file ``.NAME.xxxxxxxx`` in the folder.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import Any

Writer = Callable[["Pieces"], None]
"""Writes texts that are too large for memory piece by piece."""


class Pieces:
    """Writes pieces to ``file``. Raises errors at the end, as the callers in C++ support no exceptions."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.failed: Exception | None = None
        self.last = b""

    def write(self, piece: bytes) -> None:
        if self.failed is None and piece:
            try:
                rest = memoryview(piece)
                while rest:  # with PYTHONUNBUFFERED a write to a pipe may take a part only
                    rest = rest[self.file.write(rest) :]
                self.last = piece[-1:]
            except Exception as error:
                self.failed = error

    def written(self, data: str | bytes | Writer) -> None:
        if callable(data):
            data(self)
        else:
            self.write(data.encode() if isinstance(data, str) else data)
        if self.failed is not None:
            raise self.failed


def write_whole(path: str | Path, data: str | bytes | Writer) -> None:
    """Write ``data`` to the file ``path`` atomically: a failure or a killed process leaves the file unchanged.

    Raises OSError, and ValueError for a name with a NUL.
    """
    target = os.path.realpath(path)
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError("it is a directory")
        with open(target, "wb") as device:  # a device or a pipe cannot be replaced
            Pieces(device).written(data)
        return
    folder, last = os.path.split(target)
    with _interrupts_wait():
        descriptor, name = mkstemp(prefix=f".{last}.", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                Pieces(file).written(data)
            os.chmod(name, stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            if os.path.exists(name):
                os.unlink(name)
            raise


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block, so that no file is left incomplete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
