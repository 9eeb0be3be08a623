"""Move JAX arrays from one set of devices to another, by the messages of a plan.

State of a wave: for each array the tiles of its source and of its target, by the ids of this process's devices.

1. Before the first round, every target tile is created: zeros, and the parts that the device already has.
2. In each round, pieces are cut from source tiles, or from target tiles that received them, moved (``transport``),
and written into target tiles. A round completes before the next one starts, so only the messages of one round are
alive.
3. After the last round, each array of the wave is assembled from its tiles, and replaces its source in the list of
leaves.
4. The processes agree that all of them have reached this point. Only then are sources freed, if requested. So an
exception at any moment, of any kind and in any process, leaves every leaf of the list complete.

Two arrays may share buffers, because ``jax.device_put`` returns an array that is already in place. A source is freed
once no leaf of the tree needs its buffers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock, Thread
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from shardpass.diagnostics import table_jax
from shardpass.jax import offsets
from shardpass.jax.here import machine_of_mesh
from shardpass.jax.transport import Copies, Permutes, Piece, Transport
from shardpass.redistribute import TransferPlan, plan_reshard_tree
from shardpass.redistribute.between.sides import Box, Side
from shardpass.redistribute.between.waves import Wave
from shardpass.redistribute.terms.limit import Limit


def is_between(x: Any, target: Any) -> bool:
    """Return whether the devices of the array ``x`` differ from those of ``target``, or have another order."""
    if not isinstance(x, jax.Array) or isinstance(x, jax.core.Tracer) or not isinstance(x.sharding, NamedSharding):
        return False
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.extended) or x.sharding.memory_kind != target.memory_kind:
        return False
    return list(x.sharding.mesh.devices.flat) != list(target.mesh.devices.flat)


def move(leaves: list[Any], targets: Mapping[int, NamedSharding], machine: str, limit: Limit, donate: bool) -> None:
    """Move ``leaves[k]`` to the sharding ``targets[k]``, and store the result in ``leaves[k]``.

    Raises ShardpassError (SP616, SP413); SP617 where a transfer fails.
    """
    places, arrays = list(targets), [leaves[k] for k in targets]
    facts = tuple((x.shape, x.dtype, x.sharding, to) for x, to in zip(arrays, targets.values(), strict=True))
    plan = planned(facts, machine or machine_of_mesh(facts[0][3].mesh), limit)
    transport = _transport(facts)
    list_shards(leaves if donate else arrays)
    buffers = [_buffers(x) for x in arrays] if donate else []
    uses = Counter(buffer for leaf in leaves if donate for buffer in _buffers(leaf))
    moved: list[int] = []
    try:
        for wave in plan.waves:
            whole = _received(plan, wave, arrays, list(targets.values()), transport)
            for k, array in whole.items():
                leaves[places[k]] = array
            moved += whole
            transport.agree()
            if donate:
                uses.subtract(buffer for k in whole for buffer in buffers[k])
                for k in moved:
                    if not any(uses[buffer] for buffer in buffers[k]):
                        arrays[k].delete()
    except BaseException as failure:
        reason = (str(failure).splitlines() or [type(failure).__name__])[0]
        there = sum(leaves[k] is not array for k, array in zip(places, arrays, strict=True))
        stopped = table_jax.TRANSFER_FAILED.error(reason=reason, moved=there, count=len(arrays))
        if isinstance(failure, Exception):
            raise stopped from failure
        failure.add_note(str(stopped))
        raise


def _received(
    plan: TransferPlan, wave: Wave, arrays: Sequence[Any], targets: Sequence[NamedSharding], transport: Transport
) -> dict[int, Any]:
    """Return the arrays of a wave in their new places."""
    tiles = _Tiles(plan, arrays, targets, wave.arrays)
    for number, messages in enumerate(wave.rounds):
        pieces = [
            Piece(message.sender, message.receiver, k, *_extent(cell.box), arrays[k].dtype)
            for message in messages
            for cell in message.cells
            for k in cell.arrays
        ]
        tiles.round(pieces, transport)
        done(number, tiles)
    whole = {k: tiles.array(k, arrays[k], targets[k]) for k in wave.arrays}
    jax.block_until_ready(whole)
    return whole


def _buffers(leaf: Any) -> list[Any]:
    """Identify what ``leaf.delete()`` would free: the array, and its buffers on devices of this process."""
    if not _has_shards(leaf):
        return []
    return [id(leaf), *((s.device.id, s.data.unsafe_buffer_pointer()) for s in leaf.addressable_shards)]


def _has_shards(leaf: Any) -> bool:
    if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer):
        return False
    return not jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended)


def list_shards(leaves: Sequence[Any]) -> None:
    """List the shards of ``leaves`` in a thread, where Python runs no signal handlers.

    JAX lists the shards of an array at their first use, in Python, and keeps the list. An exception during this
    leaves an incomplete list forever: the array is complete but cannot be read.
    """
    lock, stopped = Lock(), False

    def work() -> None:
        with lock, suppress(RuntimeError):  # deleted: whoever uses the array says so
            for leaf in leaves:
                if not stopped and _has_shards(leaf):
                    leaf.addressable_shards  # noqa: B018  listed by being asked for

    thread = Thread(target=work, daemon=True)
    try:
        thread.start()
        thread.join()
    finally:
        stopped = True
        with lock:  # an array whose list has begun is listed to its end
            pass


@lru_cache(maxsize=64)
def planned(facts: tuple[Any, ...], machine: str, limit: Limit) -> TransferPlan:
    """Plan a list of (shape, element type, source, target), each list once."""
    return plan_reshard_tree(list(facts), machine=machine, memory_limit=limit)


def done(number: int, tiles: _Tiles) -> None:
    """Wait for the messages of round ``number``."""
    jax.block_until_ready([tile for kept in tiles.after.values() for tile in kept.values()])


def _transport(facts: Sequence[tuple[Any, ...]]) -> Transport:
    devices = {device.id: device for fact in facts for sharding in fact[2:] for device in sharding.mesh.devices.flat}
    known = {device.id: device for device in jax.devices(next(iter(devices.values())).platform)}
    if other := next((device for device in devices.values() if known.get(device.id) != device), None):
        raise table_jax.OTHER_JOB.error(device=other)
    if all(device.process_index == jax.process_index() for device in devices.values()):
        return Copies(devices)
    row = np.array([device for _, device in sorted(devices.items())])
    return Permutes(Mesh(row, ("device",)))


@dataclass
class _Tiles:
    """Source tiles (``before``) and target tiles (``after``) of each array of a wave, by device."""

    plan: TransferPlan
    before: dict[int, dict[int, Any]]
    after: dict[int, dict[int, Any]]

    def __init__(
        self, plan: TransferPlan, arrays: Sequence[Any], targets: Sequence[NamedSharding], numbers: Sequence[int]
    ) -> None:
        self.plan = plan
        self.before = {k: {s.device.id: s.data for s in arrays[k].addressable_shards} for k in numbers}
        self.after = {k: self._empty(k, arrays[k].dtype, targets[k]) for k in numbers}

    def _empty(self, number: int, dtype: Any, target: NamedSharding) -> dict[int, Any]:
        array = self.plan.arrays[number]
        shape = tuple(array.target.distribution.tile)
        tiles = {
            device.id: jax.numpy.zeros(shape, dtype, device=device)
            for device in target.mesh.devices.flat
            if device.process_index == jax.process_index()
        }
        for device in tiles:
            kept = _common(array.source.boxes.get(device), array.target.boxes.get(device))
            if kept is not None:
                piece = self.cut(Piece(device, device, number, *_extent(kept), dtype))
                tiles[device] = offsets.write(tiles[device], piece, _offset(array.target, device, kept[0]))
        return tiles

    def round(self, pieces: Sequence[Piece], transport: Transport) -> None:
        values = {k: self.cut(piece) for k, piece in enumerate(pieces) if piece.sender in self.before[piece.array]}
        values |= {
            k: self.cut(piece)
            for k, piece in enumerate(pieces)
            if k not in values and piece.sender in self.after[piece.array]
        }
        for piece, value in transport.exchange(pieces, values):
            tiles = self.after[piece.array]
            at = _offset(self.plan.arrays[piece.array].target, piece.receiver, piece.start)
            tiles[piece.receiver] = offsets.write(tiles[piece.receiver], value, at)

    def cut(self, piece: Piece) -> Any:
        """Cut a piece from a source tile, or from the target tile that received it."""
        array = self.plan.arrays[piece.array]
        stop = tuple(a + n for a, n in zip(piece.start, piece.shape, strict=True))
        owned = array.source.boxes.get(piece.sender)
        if owned is not None and _common(owned, (piece.start, stop)) == (piece.start, stop):
            tile, at = self.before[piece.array][piece.sender], _offset(array.source, piece.sender, piece.start)
        else:
            tile, at = self.after[piece.array][piece.sender], _offset(array.target, piece.sender, piece.start)
        return offsets.cut(tile, at, piece.shape)

    def array(self, number: int, source: Any, target: NamedSharding) -> Any:
        return jax.make_array_from_single_device_arrays(
            source.shape, target, list(self.after[number].values()), dtype=source.dtype
        )


def _extent(box: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return box[0], tuple(b - a for a, b in zip(*box, strict=True))


def _common(one: Box | None, other: Box | None) -> Box | None:
    if one is None or other is None:
        return None
    low, high = tuple(map(max, one[0], other[0])), tuple(map(min, one[1], other[1]))
    return (low, high) if all(a < b for a, b in zip(low, high, strict=True)) else None


def _offset(side: Side, device: int, start: Sequence[int]) -> tuple[int, ...]:
    """Return the offset of the array's element ``start`` in the device's tile."""
    return tuple(a - b for a, b in zip(start, side.boxes[device][0], strict=True))
