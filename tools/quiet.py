"""Timed calls ahead of everything else on the machine, where others work too."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

PRIORITY = 20


@contextlib.contextmanager
def ahead(asked: bool = True) -> Iterator[None]:
    """All threads of this process at a real-time priority (Linux, for users with the right to it) for a while.

    Threads take turns at that priority, so that one that spins does not stop those that it waits for. All other
    processes stand still meanwhile: keep it short. Raises PermissionError without the right.
    """
    if not asked:
        yield
        return
    _schedule(os.SCHED_RR, PRIORITY)
    try:
        yield
    finally:
        _schedule(os.SCHED_OTHER, 0)


def _schedule(policy: int, priority: int) -> None:
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))
