"""SP62x and SP63x: remarks of reports, and their files."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, named


def __getattr__(name: str) -> Code:
    return named(name, "6")
