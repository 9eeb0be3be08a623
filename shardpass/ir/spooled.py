"""Copy a large program from a pipe to a file, which MLIR can map into memory.

Cases:

1. Stdin is a file, read from its start (``shardpass-opt < model.mlir``): that file.
2. Less than ``LARGE`` bytes come, or what comes is no MLIR: the bytes.
3. Else they go, a piece at a time, into a temporary file without a name. Its bytes are gone once the file is closed, by
   whatever ends the process.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import BinaryIO

from shardpass.ir.child import making_files, temporary_file
from shardpass.ir.doors import LARGE, PIECE, LargeFile


def with_an_end(stream: BinaryIO) -> BinaryIO:
    """Return ``stream`` if it may end. Raises OSError for a device such as ``/dev/zero``, which never does."""
    with suppress(AttributeError, ValueError):  # it is no file of the system
        status = os.fstat(stream.fileno())
        if stat.S_ISCHR(status.st_mode) and not stream.isatty() and status.st_rdev != os.stat(os.devnull).st_rdev:
            raise OSError(errno.EINVAL, "it is a device, which may be read without end")
    return stream


def spooled(stream: BinaryIO) -> bytes | LargeFile:
    """Read all of ``stream`` into memory, or into a temporary file if it is large.

    Raises OSError where it cannot be read, and ShardpassError (SP121) where there is no room for the temporary file.
    """
    as_file = _as_it_is(stream)
    if as_file is not None:
        return as_file
    first = with_an_end(stream).read(LARGE)
    kind = LargeFile.kind(first) if len(first) == LARGE else None
    if kind is None:
        return first + stream.read()
    with making_files():
        file = temporary_file()
    try:
        piece = first
        del first
        while piece:
            with making_files():
                file.write(piece)
            piece = stream.read(PIECE)
        with making_files():
            file.flush()
        kept = _Kept(os.dup(file.fileno()))
    finally:
        with suppress(OSError):  # the rest of a piece for which there was no room, an error that was raised
            file.close()
    return LargeFile(f"/dev/fd/{kept.number}", kind, kept)


class _Kept:
    """Closes a file descriptor when the object is deleted."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def _as_it_is(stream: BinaryIO) -> LargeFile | None:
    """Return stdin's own file in case 1, else None."""
    try:
        number = stream.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode) or stream.tell():
            return None
    except (OSError, ValueError):  # it is no file of the system, or cannot be asked
        return None
    file = LargeFile.at(f"/dev/fd/{number}")
    os.lseek(number, 0, os.SEEK_SET)  # where the system has one offset for all who open it so
    return file
