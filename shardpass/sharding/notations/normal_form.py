"""Convert a well-formed tile assignment to its sharding, with the canonical text that XLA prints.

Cases, for the tile counts and the devices as written:

1. An iota whose own dimensions nest with the tile counts stays an iota (V2):
   ``[2,1,4]<=[8] last_tile_dim_replicate``.
2. An iota that does not nest becomes a list (V1), unless XLA can sort and join its numbers without listing the devices
   (``xla_iota``): the copies of ``[4,3]<=[2,6]T(1,0) last_tile_dim_replicate`` can only be sorted in a list.
3. A list stays a list in the text, also where its devices count through an iota; the sharding is the iota's.

Cost: O(digits) in case 1, O(n log n) for n devices else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.sharding import digits as dg
from shardpass.sharding.digits import Ints
from shardpass.sharding.from_devices import cut, from_digits, from_grid
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.tiles import WrittenTiles, arranged, listed_text, one_word_text, subgroups_of
from shardpass.sharding.notations.xla_iota import iota_form
from shardpass.sharding.notes import Kind, Notes
from shardpass.sharding.tile_assignment import Part
from shardpass.sharding.xla_text import iota_text, tiles_text


def normal_form(tiles: WrittenTiles) -> Sharding:
    """Make the sharding of a well-formed tile assignment, with XLA's canonical text."""
    if tiles.devices is not None:
        return _of_list(tiles, tiles.devices, None)
    digits = dg.iota(tiles.iota, tiles.perm)
    parts = cut(digits, tiles.dims)
    if parts is not None:
        return _of_parts(tiles, parts)
    listed = np.empty(tiles.size, dtype=np.int64)
    listed[dg.values(digits, tiles.size)] = np.arange(tiles.size)
    return _of_list(tiles, listed, iota_form(tiles))


def nests(tiles: WrittenTiles) -> bool:
    """Return whether the tile counts cut the iota at its own cut points, so that no device list is needed."""
    return cut(dg.iota(tiles.iota, tiles.perm), tiles.dims) is not None


def _of_parts(tiles: WrittenTiles, parts: Sequence[Part]) -> Sharding:
    """Make the sharding of case 1. ``parts`` are the digits of the grid's dimensions."""
    dims = parts[: len(tiles.data)]
    subgroups = {kind: dg.merge(d for k in ks for d in parts[k]) for kind, ks in subgroups_of(tiles)}
    if Kind.REPLICATED in subgroups:
        subgroups[Kind.REPLICATED] = dg.merge(sorted(subgroups[Kind.REPLICATED], reverse=True))
    kinds = list(subgroups)
    text = one_word_text(tiles, kinds)
    if text is None:
        counts = [*tiles.data, *map(dg.total, subgroups.values())]
        order = iota_text(digit for part in (*dims, *subgroups.values()) for digit in part)
        text = "{" + tiles_text(counts, "<=" + order, kinds) + "}"
    return from_digits(dims, subgroups, Notes(text=text))


def _of_list(tiles: WrittenTiles, devices: Ints, text: str | None) -> Sharding:
    """Build the sharding of an explicit device list; ``text`` replaces the canonical text that lists the devices."""
    flat, dims, kinds = arranged(tiles, devices)
    return from_grid(flat, dims, kinds, Notes(text=text or listed_text(tiles, flat, dims, kinds)))
