"""Codes of the passes: SP2xx import, propagate and check; SP3xx partition."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, named


def __getattr__(name: str) -> Code:
    return named(name, "23")
