"""The description of a plan for reports and prices: its steps, and the refused candidates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from shardpass.redistribute.problem.device_arrays import IntArray


class StepKind(StrEnum):
    """The kind of a step: the StableHLO op of that name. Members are equal to their text."""

    DYNAMIC_SLICE = "dynamic_slice"
    ALL_TO_ALL = "all_to_all"
    COLLECTIVE_PERMUTE = "collective_permute"
    ALL_GATHER = "all_gather"
    ALL_REDUCE = "all_reduce"
    REDUCE_SCATTER = "reduce_scatter"

    def __repr__(self) -> str:
        return repr(self.value)


class Refusal(NamedTuple):
    """A refused candidate. ``way``: its name, or its steps; ``why``: the reason, as text."""

    way: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of a plan.

    ``groups``: replica groups by device id [groups, size]; for a collective_permute the pairs (from, to);
    empty for a dynamic_slice. ``bytes``: the most that one device receives, its own data not counted.
    ``live``: the most bytes that are alive together on a device during the step, its local copies included
    (``memory``).
    """

    kind: StepKind
    axes: tuple[str, ...]
    groups: IntArray
    tile_before: tuple[int, ...]
    tile_after: tuple[int, ...]
    bytes: int
    live: int

    @property
    def is_collective(self) -> bool:
        """Whether devices communicate; a dynamic_slice is local."""
        return self.kind != StepKind.DYNAMIC_SLICE

    def __str__(self) -> str:
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        return f"{self.kind}{over}: {list(self.tile_before)} -> {list(self.tile_after)}, {self.bytes} bytes"
