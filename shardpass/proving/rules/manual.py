"""Manual regions of the whole program: between its two borders a region is per-device code.

The region is evaluated for all devices at once. At the first border each device gets its tile of the whole value. At
the second border the tiles form a whole value again; a tile that several devices have is read from the first of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import MANUAL, SHARDING, get_text
from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Site, Unknown, Walk, type_of
from shardpass.proving.relations.pieces import Bools, Content, Ints, Piece
from shardpass.sharding import Mesh, Sharding, parse_sharding
from shardpass.sharding.notations.sdy import mesh_or_device, parse_sdy


def is_manual(text: str | None) -> bool:
    """Return whether a sharding is manual over some axes. Values without such a sharding are not cut at the region's
    border.
    """
    return text is not None and MANUAL.strip("{}") in text


def to_shard(site: Site) -> list[Content]:
    (operand,) = site.operands
    owner = site.op.operands[0].owner
    if not is_manual(get_text(site.op, SHARDING)) or hasattr(owner, "arguments"):
        raise Unknown("its operand has no sharding")
    shape, _ = type_of(site.op.results[0])
    offsets = offsets_of(get_text(operation(owner), SHARDING), operand.shape, shape, site.devices)
    return [site.result(cut_for(operand, offsets, shape))]


def cut_for(operand: Content, offsets: Ints, shape: Sequence[int]) -> list[Piece | None]:
    """Return the tiles of ``operand`` at ``offsets``."""
    limit = np.minimum(np.array(shape, np.int64), np.array(operand.shape, np.int64) - offsets)
    return [p.moved(-offsets).boxed(np.zeros_like(limit), limit) for p in operand.pieces]


def to_full(site: Site) -> list[Content]:
    (operand,) = site.operands
    shape, _ = type_of(site.op.results[0])
    offsets = offsets_of(get_text(site.op, SHARDING), shape, operand.shape, site.devices)
    return [site.result(put_together(operand, offsets, shape, site.devices))]


def put_together(operand: Content, offsets: Ints, shape: Sequence[int], devices: int) -> list[Piece | None]:
    """Assemble the whole value from tiles at ``offsets``, each from the first device that has it."""
    _, first = np.unique(offsets, axis=0, return_index=True)
    everyone = np.ones(devices, np.int64)
    end = np.array(shape, np.int64)
    return [
        p.of_devices(everyone * device).moved(offsets[device]).boxed(np.zeros_like(end), end)
        for device in sorted(first.tolist())
        for p in operand.pieces
    ]


def offsets_of(text: str | None, whole: tuple[int, ...], tile: tuple[int, ...], devices: int) -> Ints:
    """Return the offset of each device's tile, [devices, rank]. Raises Unknown if the sharding gives tiles of
    another shape.
    """
    try:
        sharding = parse_sharding(text or "")
        if not isinstance(sharding, Sharding) or sharding.tile_shape(whole) != tile:
            raise Unknown("its tiles are not those of its sharding")
        return np.asarray(sharding.tile_offsets(whole, devices), np.int64).reshape(devices, len(whole))
    except ShardpassError:
        raise Unknown("its sharding cannot be read") from None


def computation(site: Site) -> list[Content]:
    """Relate a ``sdy.manual_computation``: the body on the tiles, and the whole values of its results."""
    (block,) = site.op.regions[0].blocks
    borders = Borders(site.op, site.devices)
    tiles = []
    for k, (operand, argument) in enumerate(zip(site.operands, block.arguments, strict=True)):
        shape, element = type_of(argument)
        offsets = borders.offsets("in_shardings", k, operand.shape, shape)
        tiles.append(Content(shape, element, tuple(p for p in cut_for(operand, offsets, shape) if p is not None)))
    result = []
    for k, tile in enumerate(_in_region(site.walk, block, tiles)):
        shape, _ = type_of(site.op.results[k])
        offsets = borders.offsets("out_shardings", k, shape, tile.shape)
        result.append(site.result(put_together(tile, offsets, shape, site.devices), k))
    return result


def _in_region(walk: Walk, block: Any, tiles: list[Content]) -> list[Content]:
    effects = walk.effects
    if effects is None:
        return walk.block(block, tiles)
    outer, effects.in_region = effects.in_region, True
    try:
        return walk.block(block, tiles)
    finally:
        effects.in_region = outer


class Borders:
    """Cut the operands and results of a ``sdy.manual_computation`` over its manual axes."""

    def __init__(self, op: Any, devices: int) -> None:
        self._op, self._devices = op, devices
        self._manual = set(re.findall(r'"([^"]+)"', str(op.attributes["manual_axes"])))
        self._meshes = meshes_around(op)

    def offsets(self, name: str, index: int, whole: tuple[int, ...], tile: tuple[int, ...]) -> Ints:
        """Return the offset of each device's tile. Raises Unknown if the sharding gives tiles of another shape."""
        rows = re.findall(r"<(@[^<>]*)>", str(self._op.attributes[name]))
        try:
            word = parse_sdy(f"#sdy.sharding<{rows[index]}>", self._meshes)
            if word.mesh is None or word.mesh.size != self._devices:
                raise Unknown("its mesh has another number of devices")
            own = [tuple(axis for axis in axes if axis.name in self._manual) for axes in word.dims]
            return offsets_of(str(Sharding.tiled(word.mesh, own)), whole, tile, self._devices)
        except ShardpassError:
            raise Unknown("its sharding cannot be read") from None


def meshes_around(op: Any) -> dict[str, Mesh | int]:
    """Return the meshes of the module that ``op`` is in."""
    top = operation(op)
    while top.parent is not None:
        top = operation(top.parent)
    result: dict[str, Mesh | int] = {}
    for each in map(operation, top.regions[0].blocks[0].operations):
        if each.name == "sdy.mesh":
            text = str(each.attributes["mesh"])
            axes = tuple((name, int(size)) for name, size in re.findall(r'"([^"]+)"=(\d+)', text))
            ids = re.search(r"device_ids=\[([^\]]*)\]", text)
            numbers = () if ids is None else tuple(int(n) for n in ids.group(1).split(","))
            result[each.attributes["sym_name"].value] = mesh_or_device(axes, numbers)
    return result


def alike(content: Content) -> bool:
    """Return whether all devices have the same content."""
    return all(_alike(p.b) and _alike(p.lo) and _alike(p.hi) and _alike(p.on) for p in content.pieces)


def _alike(rows: Ints | Bools) -> bool:
    return bool((rows == rows[:1]).all())
