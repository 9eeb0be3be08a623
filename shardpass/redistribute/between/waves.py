"""Moved arrays, and the waves in which arrays move together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shardpass.element_types import ElementType
from shardpass.redistribute.between.cells import Moved
from shardpass.redistribute.between.sent import Message, Sent
from shardpass.redistribute.between.sides import Side


@dataclass(frozen=True, slots=True)
class MovedArray:
    """One array of a plan. ``name``: its path in a tree, or ""."""

    name: str
    shape: tuple[int, ...]
    element_type: ElementType
    source: Side
    target: Side


@dataclass(frozen=True, eq=False)
class Wave:
    """Arrays that move together; when the last round is done, their sources are free."""

    moves: tuple[Moved, ...]
    sent: Sent
    seconds: float

    @cached_property
    def rounds(self) -> tuple[tuple[Message, ...], ...]:
        """List the messages of each round; in a round, each port sends or receives at most one message."""
        return self.sent.rounds()

    @property
    def arrays(self) -> list[int]:
        return sorted(array for move in self.moves for array in move.arrays)
