"""A program that comes from a pipe, as a file where it is large, so that it takes no more memory than a file does.

Cases:

1. Stdin is a file that nobody has read from (``shardpass-opt < model.mlir``): that file.
2. Less than ``LARGE`` bytes come, or what comes is no MLIR: the bytes.
3. Else they go, a piece at a time, into a temporary file without a name. Its bytes are gone once the file is closed, by
   whatever ends the process.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import BinaryIO

from shardpass.ir.child import making_files, temporary_file
from shardpass.ir.doors import LARGE, PIECE, LargeFile


def spooled(stream: BinaryIO) -> bytes | LargeFile:
    """All that ``stream`` holds.

    Raises OSError where it cannot be read, and ShardpassError (SP121) where there is no room for the temporary file.
    """
    found = _as_it_is(stream)
    if found is not None:
        return found
    first = stream.read(LARGE)
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
        with suppress(OSError):  # of what is left of a piece that found no room, which was told
            file.close()
    return LargeFile(f"/dev/fd/{kept.number}", kind, kept)


class _Kept:
    """Closes a descriptor once nobody holds this."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def _as_it_is(stream: BinaryIO) -> LargeFile | None:
    """Case 1."""
    try:
        number = stream.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode) or stream.tell():
            return None
    except (OSError, ValueError):  # it is no file of the system, or cannot be asked
        return None
    found = LargeFile.at(f"/dev/fd/{number}")
    os.lseek(number, 0, os.SEEK_SET)  # where the system has one offset for all who open it so
    return found
