"""SP1xx: files, pipelines, commands."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError, named


class ArgumentError(ShardpassError, TypeError):
    """An argument of a public function has a type that the function does not accept."""


def _exception(id: str) -> type[ShardpassError]:
    return ArgumentError if id == "SP140" else ShardpassError


def __getattr__(name: str) -> Code:
    return named(name, "1", _exception)
