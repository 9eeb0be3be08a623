"""Cut a value of the whole program into tiles."""

from __future__ import annotations

from dataclasses import dataclass

from shardpass.proving.relations.pieces import Bools, Ints


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """An argument or a result: ``offsets`` [devices, rank] of the tiles; ``counts``: the devices that must have it.

    ``named``: whether a sharding in the programs says where the tiles lie.
    """

    shape: tuple[int, ...]
    element: str
    tile: tuple[int, ...]
    offsets: Ints
    counts: Bools
    named: bool = True
