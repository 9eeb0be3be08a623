"""Shardings that XLA's parser makes of meaningless tile assignments, so that both accept and print the same.

XLA fills a list of too few devices with 0, and cuts off a list of too many; an iota keeps its numbers (``xla_iota``).
Such a sharding prints, and has no mesh. Nothing can be printed where XLA's process dies (it divides by zero, or lists
the devices of an iota that has too few), nor where it reads beyond the end of the iota's shape.
"""

from __future__ import annotations

import numpy as np

from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.tiles import LARGEST_LIST, WrittenTiles, arranged, listed_text
from shardpass.sharding.notations.xla_iota import iota_form
from shardpass.sharding.notes import Kind, Notes


def without_meaning(tiles: WrittenTiles) -> Sharding | None:
    """Make the meaningless sharding that XLA's parser would make; None if XLA ends the process."""
    if tiles.devices is not None:
        return _of_list(tiles)
    try:
        text = iota_form(tiles)
    except (ZeroDivisionError, IndexError):
        return None
    return None if text is None else Sharding(Kind.TILED, notes=Notes(text=text))


def _of_list(tiles: WrittenTiles) -> Sharding | None:
    assert tiles.devices is not None
    if tiles.size > LARGEST_LIST or min(tiles.dims) < 0:
        return None
    filled = np.zeros(tiles.size, dtype=np.int64)
    count = min(len(tiles.devices), tiles.size)
    filled[:count] = tiles.devices[:count]
    devices, dims, kinds = arranged(tiles, filled)
    text = listed_text(tiles, devices, dims, kinds)
    return Sharding(Kind.TILED, notes=Notes(text=text, tiles=dims, listed=tuple(devices.tolist())))
