"""Manual regions of the whole program, in GSPMD's form: between their borders it is a program of each device.

The whole program is then walked for all devices at once. At the first border a device takes its tile of the whole
value, at the second the tiles make up a whole value again, each tile from the first device that holds it.
"""

from __future__ import annotations

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import MANUAL, SHARDING, get_text
from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Site, Unknown, type_of
from shardpass.proving.relations.pieces import Bools, Content, Ints
from shardpass.sharding import Sharding, parse_sharding


def to_shard(site: Site) -> list[Content]:
    (operand,) = site.operands
    owner = site.op.operands[0].owner
    if get_text(site.op, SHARDING) != MANUAL or hasattr(owner, "arguments"):
        raise Unknown("its region is manual over some axes only, or its operand has no sharding")
    shape, _ = type_of(site.op.results[0])
    offsets = _offsets(site, get_text(operation(owner), SHARDING), operand.shape, shape)
    limit = np.minimum(np.array(shape, np.int64), np.array(operand.shape, np.int64) - offsets)
    return [site.result([p.moved(-offsets).boxed(np.zeros_like(limit), limit) for p in operand.pieces])]


def to_full(site: Site) -> list[Content]:
    (operand,) = site.operands
    shape, _ = type_of(site.op.results[0])
    if get_text(operation(site.op.operands[0].owner), SHARDING) not in (MANUAL, None):
        raise Unknown("its region is manual over some axes only")
    offsets = _offsets(site, get_text(site.op, SHARDING), shape, operand.shape)
    _, first = np.unique(offsets, axis=0, return_index=True)
    everyone = np.ones(site.devices, np.int64)
    end = np.array(shape, np.int64)
    return [
        site.result(
            [
                p.taken(everyone * device).moved(offsets[device]).boxed(np.zeros_like(end), end)
                for device in sorted(first.tolist())
                for p in operand.pieces
            ]
        )
    ]


def _offsets(site: Site, text: str | None, whole: tuple[int, ...], tile: tuple[int, ...]) -> Ints:
    try:
        sharding = parse_sharding(text or "")
        if not isinstance(sharding, Sharding) or sharding.tile_shape(whole) != tile:
            raise Unknown("its tiles are not those of its sharding")
        return np.asarray(sharding.tile_offsets(whole, site.devices), np.int64).reshape(site.devices, len(whole))
    except ShardpassError:
        raise Unknown("its sharding cannot be read") from None


def alike(content: Content) -> bool:
    """Whether all devices hold the same."""
    return all(_alike(p.b) and _alike(p.lo) and _alike(p.hi) and _alike(p.on) for p in content.pieces)


def _alike(rows: Ints | Bools) -> bool:
    return bool((rows == rows[:1]).all())
