"""What moves: arrays, and the waves in which these move together."""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.element_types import ElementType
from shardpass.redistribute.between.cells import Moved
from shardpass.redistribute.between.schedule import Message
from shardpass.redistribute.between.sides import Side


@dataclass(frozen=True, slots=True)
class MovedArray:
    """One array of a plan. ``name``: its path in a tree, or ""."""

    name: str
    shape: tuple[int, ...]
    element_type: ElementType
    source: Side
    target: Side


@dataclass(frozen=True, slots=True)
class Wave:
    """Arrays that move together; when the last round is done, their sources are free."""

    moves: tuple[Moved, ...]
    rounds: tuple[tuple[Message, ...], ...]
    seconds: float

    @property
    def arrays(self) -> list[int]:
        return sorted(array for move in self.moves for array in move.arrays)
