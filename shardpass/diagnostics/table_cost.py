"""SP9xx: machines that price programs, and targets for which programs are compiled."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, named


def __getattr__(name: str) -> Code:
    return named(name, "9")
