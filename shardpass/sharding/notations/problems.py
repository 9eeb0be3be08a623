"""The checks of strict reading: tile assignments that XLA's parser accepts although they have no meaning.

XLA drops parts of such texts, misreads them, or dies later. Each problem is an error with its place and a remedy.
"""

from __future__ import annotations

import math

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.digits import Ints
from shardpass.sharding.errors import ShardingParseError
from shardpass.sharding.notations.normal_form import nests
from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.tiles import LARGEST_LIST, WrittenTiles


def problems_of(source: Source, tiles: WrittenTiles, at_dims: int, at_devices: int) -> list[ShardingParseError]:
    """Yield the problems of a well-formed tile assignment, in the order of their reports."""
    out = [
        source.fault(table.TILE_COUNT, at_dims, count=count, dimension=k)
        for k, count in enumerate(tiles.dims)
        if count < 1
    ]
    if tiles.devices is None:
        return _iota_problems(source, tiles, out, at_devices)
    count, places = len(tiles.devices), tiles.size
    if count != places and not out:
        hint = _count_hint(tiles, count)
        out.append(source.fault(table.DEVICE_COUNT, at_devices, tiles=places, devices=count, hint=hint))
    return out or _id_problems(source, tiles.devices, at_devices)


def _iota_problems(
    source: Source, tiles: WrittenTiles, out: list[ShardingParseError], at: int
) -> list[ShardingParseError]:
    out += [source.fault(table.RESHAPE_SIZE, at, size=size) for size in tiles.iota if size < 1]
    if sorted(tiles.perm) != list(range(len(tiles.iota))):
        perm = ",".join(map(str, tiles.perm))
        out.append(source.fault(table.TRANSPOSE, at, perm=perm, last=len(tiles.iota) - 1))
    places, devices = tiles.size, math.prod(tiles.iota)
    if devices != places and not out:
        hint = _count_hint(tiles, devices)
        out.append(source.fault(table.IOTA_SIZE, at, tiles=places, devices=devices, hint=hint))
    if not out and places > LARGEST_LIST and not nests(tiles):
        out.append(source.fault(table.TOO_LARGE, at, devices=places, limit=LARGEST_LIST))
    return out


def _count_hint(tiles: WrittenTiles, devices: int) -> str:
    places = tiles.size
    if places and devices % places == 0 and not tiles.kinds:
        copies = devices // places
        counts = ",".join(map(str, (*tiles.dims, copies)))
        listed = "the same devices" if tiles.devices is not None else f"<=[{devices}]"
        return (
            f"to keep {copies} copies of each tile write devices=[{counts}] with {listed} and "
            f"last_tile_dim_replicate; else name {places} devices"
        )
    if devices and places % devices == 0:
        return f"name {places} devices, or divide the tile counts by {places // devices}"
    return f"name {places} devices, or choose tile counts that multiply to {devices}"


def _id_problems(source: Source, devices: Ints, at: int) -> list[ShardingParseError]:
    n = len(devices)
    if int(devices.min()) == 0 and int(devices.max()) == n - 1 and np.bincount(devices, minlength=n).max() == 1:
        return []
    unique, times = np.unique(devices, return_counts=True)
    out = []
    if times.max() > 1:
        device = int(unique[np.argmax(times > 1)])
        again = int(np.flatnonzero(devices == device)[1])
        place, count = _offset(source.text, at, again), int(times[unique == device][0])
        out.append(source.fault(table.DUPLICATE_DEVICE, place, len(str(device)), device=device, times=count))
    outside = np.flatnonzero((devices < 0) | (devices >= n))
    if len(outside):
        extra, gap = int(devices[outside[0]]), int(np.setdiff1d(np.arange(n), unique)[0])
        place, names = _offset(source.text, at, int(outside[0])), (f"device {gap}", f"device {extra}")
        out.append(
            source.fault(
                table.DEVICE_IDS, place, len(str(extra)), count=n, last=n - 1, missing=names[0], extra=names[1]
            )
        )
    return out


def _offset(text: str, start: int, index: int) -> int:
    """Return the offset of the integer number ``index`` in the list at ``start``; commas in comments shift it."""
    at = start
    for _ in range(index):
        comma = text.find(",", at)
        if comma < 0:
            return start
        at = comma + 1
    while at < len(text) and text[at].isspace():
        at += 1
    return min(at, len(text) - 1)
