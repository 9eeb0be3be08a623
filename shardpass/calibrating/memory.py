"""Make a process keep its freed memory, so that timings do not include page faults.

The C library gives big freed blocks back to the system, which hands out zeroed pages anew at the next call: of a
64 MB result that can be most of the time, differs from run to run, and is the same for every program that is compared.
"""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4  # of glibc's mallopt


def keep_freed_memory() -> bool:
    """Make the C library keep the memory that this process frees; False if it has no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((TRIM_THRESHOLD, 2**31 - 1), (MMAP_MAX, 0), (TOP_PAD, 2**28))
    return all(mallopt(which, value) == 1 for which, value in settings)
