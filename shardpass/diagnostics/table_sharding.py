"""SP0xx: sharding text, meshes and notations."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError, named


class ShardingError(ShardpassError):
    """A mesh or sharding is not well formed, or has no answer to the question."""


class ShardingParseError(ShardingError):
    """Raised for invalid sharding text. The first diagnostic has the place and an excerpt.

    ``line`` and ``column`` count from 1, within the text that was given to the parser.
    """

    @property
    def line(self) -> int:
        return self.diagnostics[0].place.line

    @property
    def column(self) -> int:
        return self.diagnostics[0].place.column

    @property
    def excerpt(self) -> str:
        return self.diagnostics[0].excerpt


def _exception(id: str) -> type[ShardingError]:
    return ShardingParseError if id < "SP020" or id == "SP041" else ShardingError


def __getattr__(name: str) -> Code:
    return named(name, "0", _exception)
