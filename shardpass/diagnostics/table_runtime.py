"""SP5xx: compile, run, interpreter."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError, named


class Disagreement(ShardpassError):
    """The processes of a distributed program run different programs, so that no process may continue."""


def _exception(id: str) -> type[ShardpassError]:
    return Disagreement if id >= "SP560" else ShardpassError


def __getattr__(name: str) -> Code:
    return named(name, "5", _exception)
