"""SP62x and SP63x: what reports say of programs, and the files that belong to them."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, named


def __getattr__(name: str) -> Code:
    return named(name, "6")
