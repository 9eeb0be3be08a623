"""The commands.

Importing a command takes a tenth of a second, in which Ctrl-C would print a traceback of Python's import machinery:
from here on an interrupt that nobody catches is silent. The exit status is that of every interrupted program.
"""

from __future__ import annotations

import sys

_before = sys.excepthook


def _silent_interrupt(kind: type[BaseException], *rest: object) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        _before(kind, *rest)  # type: ignore[arg-type]


sys.excepthook = _silent_interrupt
