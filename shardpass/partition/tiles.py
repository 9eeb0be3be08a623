"""The tiles that have been built: one MLIR value for each copy of a plan.

A copy that a region makes is made again by the next region that needs it, and the newer value takes its place: the plan
says a step wherever the earlier one cannot be seen, so a look-up never finds a value of another region.
"""

from __future__ import annotations

from typing import Any

from shardpass.planning.steps import Copy
from shardpass.sharding import Sharding


class Tiles:
    """Copy -> the value that holds it."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, Sharding], Any] = {}

    def __getitem__(self, copy: Copy) -> Any:
        return self._values[copy.array, copy.sharding]

    def put(self, array: int, sharding: Sharding, value: Any) -> None:
        """``value`` holds ``array`` under ``sharding`` from here on."""
        self._values[array, sharding] = value
