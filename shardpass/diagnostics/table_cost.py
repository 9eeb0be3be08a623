"""SP9xx: machines, for which programs are decided, planned and timed, and targets, for which they are compiled."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, named


def __getattr__(name: str) -> Code:
    return named(name, "9")
