"""The kinds of shardings, and notes: details of a notation that do not affect the meaning of a sharding."""

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
    """Notes on a sharding that do not change its meaning or equality.

    Attributes:
        text: the canonical text where it does not follow from mesh and axes (a V1 list stays a list).
        group: ("shard_as" | "shard_like", number).
        metadata: the texts between the braces of ``metadata={..}``.
        open: the dimensions that propagation may split further.
        priorities: (dimension, priority), SDY's order in which propagation looks at dimensions.
        replicated: axes that propagation must leave replicated.
        named: the sharding prints in XLA's named form (V3).
        problems: why the sharding has no meaning although XLA's parser takes its text.
        tiles: the tile counts that XLA keeps for a sharding without meaning.
        listed: the devices that XLA keeps for a sharding without meaning.
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
