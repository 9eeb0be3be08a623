"""SP4xx: redistribution, from one sharding to another."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError, named


class RedistributionError(ShardpassError):
    """A redistribution has no meaning, or has no plan under the given limits."""


def _exception(id: str) -> type[RedistributionError]:
    return RedistributionError


def __getattr__(name: str) -> Code:
    return named(name, "4", _exception)
