"""Limit the time of a search, in processor time of this process and of the compiler."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

LEAST = 40.0  # seconds of a search for which nobody gave any; counts end it earlier, as far as they can
COMPILES = 9.0  # likewise, in drafts of the program: three compiles
IN_FULL = 3.0  # likewise, in compiles of the program by a compiler that makes no drafts
WALL = 3.0  # seconds by the clock for each second that the user gave


class Budget:
    """Count processor seconds from the creation of the budget.

    Wall time is no measure, as other work on the machine would then change the findings; it ends only a search whose
    user gave a limit. ``seconds``: None for LEAST, or what ``allow`` gives. ``others``: the seconds that other
    processes spent until now.
    """

    def __init__(self, seconds: float | None = None, others: Callable[[], float] = lambda: 0.0) -> None:
        self._is_given = seconds is not None
        self.seconds = LEAST if seconds is None else seconds
        self._others = others
        self._start, self._start_elsewhere, self._began = time.process_time(), others(), time.monotonic()

    @property
    def elsewhere(self) -> float:
        """Return the processor seconds spent in other processes since the budget began."""
        return self._others() - self._start_elsewhere

    @property
    def left(self) -> float:
        """The seconds that are left, 0 at least."""
        spent = time.process_time() - self._start + self.elsewhere
        if self._is_given:
            spent = max(spent, (time.monotonic() - self._began) / WALL)
        return max(0.0, self.seconds - spent)

    def allow(self, seconds: float) -> None:
        """Give at least ``seconds`` in all, unless the user gave another number."""
        if not self._is_given:
            self.seconds = max(self.seconds, seconds)

    def is_over(self, part: float = 1.0) -> bool:
        """Return whether ``part`` of the seconds is spent."""
        return self.seconds - self.left >= self.seconds * part


def spent_by_children() -> float:
    """Return the processor seconds of the processes of this one that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
