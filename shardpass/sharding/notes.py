"""Which kind of sharding it is, and what a notation says beyond its meaning."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from shardpass.diagnostics import Diagnostic
from shardpass.sharding.axes import Axes


class Kind(enum.StrEnum):
    REPLICATED = "replicated"
    MAXIMAL = "maximal"
    MANUAL = "manual"
    UNKNOWN = "unknown"
    UNREDUCED = "unreduced"
    TILED = "tiled"


@dataclass(frozen=True, slots=True)
class Notes:
    """What a notation says beyond the meaning of a sharding. It is no part of equality.

    ``text``: the canonical text where it does not follow from mesh and axes (a V1 list stays a list);
    ``group``: ("shard_as" | "shard_like", number); ``metadata``: the texts between the braces of ``metadata={..}``;
    ``open``: the dimensions that propagation may split further; ``priorities`` of dimensions (SDY); ``replicated``:
    axes that propagation must leave alone; ``named``: printed as XLA's V3; ``problems``: why the sharding
    has no meaning although XLA's parser takes its text; ``tiles``, ``listed``: what XLA then has for tile
    dimensions and devices.
    """

    text: str | None = None
    group: tuple[str, int] | None = None
    metadata: tuple[str, ...] = ()
    open: tuple[int, ...] = ()
    priorities: tuple[tuple[int, int], ...] = ()
    replicated: Axes = ()
    named: bool = False
    problems: tuple[Diagnostic, ...] = ()
    tiles: tuple[int, ...] = ()
    listed: tuple[int, ...] = ()


PLAIN = Notes()
