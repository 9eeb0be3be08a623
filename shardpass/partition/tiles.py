"""Map the copies of a plan to the MLIR values built so far.

A copy made in a region is made again by the next region that needs it, and the newer value replaces the older: the plan
has a step wherever the earlier value is out of scope, so a look-up never returns a value of another region.
"""

from __future__ import annotations

from typing import Any

from shardpass.planning.price.steps import Copy
from shardpass.sharding import Sharding


class Tiles:
    """Maps copies of arrays to MLIR values."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, Sharding], Any] = {}

    def __getitem__(self, copy: Copy) -> Any:
        return self._values[copy.array, copy.sharding]

    def put(self, array: int, sharding: Sharding, value: Any) -> None:
        """Record that ``value`` holds ``array`` under ``sharding`` from here on."""
        self._values[array, sharding] = value
