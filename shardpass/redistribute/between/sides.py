"""The source or the target of a redistribution between device sets.

Device k of a sharding is the device with the id ``devices[k]``. Ids are those of the machine and tell its host: on
hosts of 8, devices 0 to 7 share a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.arguments import shown, whole
from shardpass.redistribute.problem.checks import distribution_over
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.problem import Distribution
from shardpass.sharding import Sharding, TupleSharding
from shardpass.sharding.meaning import MOST_DEVICES

MOST_ID = 2**48  # of a device

Box = tuple[tuple[int, ...], tuple[int, ...]]  # start, stop


@dataclass(frozen=True, eq=False)
class Tiles:
    """Different tiles of a side (int64 [tiles, rank]), and the devices that have each."""

    start: IntArray
    stop: IntArray
    devices: Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Side:
    """A side of a move: the ``distribution`` of an array of ``shape`` over the devices with the ids ``devices``."""

    shape: tuple[int, ...]
    distribution: Distribution
    devices: tuple[int, ...]

    @cached_property
    def boxes(self) -> dict[int, Box]:
        """The box of the array on each device, by device id; devices without a box are absent."""
        boxes = self.distribution.boxes(self.shape)
        starts, stops = boxes.start.tolist(), boxes.stop.tolist()
        return {self.devices[k]: (tuple(starts[k]), tuple(stops[k])) for k in np.flatnonzero(boxes.volume).tolist()}

    @cached_property
    def holders(self) -> dict[Box, tuple[int, ...]]:
        """The devices that have each tile."""
        holders: dict[Box, list[int]] = {}
        for device, box in self.boxes.items():
            holders.setdefault(box, []).append(device)
        return {box: tuple(sorted(devices)) for box, devices in holders.items()}

    @cached_property
    def volumes(self) -> tuple[IntArray, IntArray]:
        """The devices that have any element, and the number of elements of each."""
        volume = self.distribution.boxes(self.shape).volume
        real = np.flatnonzero(volume)
        return np.array(self.devices, np.int64)[real], volume[real]

    def tiles(self, rank: int) -> Tiles:
        """Return the different tiles, with dimensions of 0 to 1 up to ``rank``."""
        corners = np.array(list(self.holders), np.int64).reshape(len(self.holders), 2, len(self.shape))
        more = np.broadcast_to(np.array([[0], [1]], np.int64), (len(corners), 2, rank - len(self.shape)))
        corners = np.concatenate([corners, more], axis=2)
        return Tiles(corners[:, 0], corners[:, 1], list(self.holders.values()))

    @property
    def sharding(self) -> Sharding:
        return self.distribution.sharding


def make_side(
    shape: tuple[int, ...], sharding: Sharding | TupleSharding | str, devices: tuple[int, ...] | None, name: str
) -> Side:
    """Make a side from a sharding in any notation, over ``devices`` or else over devices 0, 1, ... Raises
    ShardpassError (SP0xx, SP401, SP403, SP404, SP408, SP417).
    """
    distribution = distribution_over(shape, sharding, None if devices is None else len(devices), name)
    count = len(distribution.tiling.index)
    return Side(shape, distribution, tuple(range(count)) if devices is None else devices)


def devices_of(given: Any, name: str) -> tuple[int, ...] | None:
    """Read the ids of devices: integers, or objects with an ``id``. Raises ShardpassError (SP417)."""
    if given is None:
        return None
    try:
        entries = None if isinstance(given, str | bytes) else list(islice(_flat(given), MOST_DEVICES + 1))
    except Exception:  # of the object's own
        entries = None
    if not entries or len(entries) > MOST_DEVICES:
        raise table.DEVICE_LIST.error(name=name, given=shown(given), reason="it is no sequence of devices")
    ids = [whole(getattr(entry, "id", entry)) for entry in entries]
    known = [number for number in ids if number is not None and 0 <= number < MOST_ID]
    if len(known) < len(ids):
        wrong = next(entry for entry, number in zip(entries, ids, strict=True) if number not in known)
        raise table.DEVICE_LIST.error(name=name, given=shown(given), reason=f"{shown(wrong)} is not the id of a device")
    if len(set(known)) < len(known):
        twice = next(number for number in known if known.count(number) > 1)
        raise table.DEVICE_LIST.error(name=name, given=shown(given), reason=f"device {twice} is named twice")
    return tuple(known)


def other_devices(source: Any, target: Any) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return the devices of two JAX shardings if their meshes differ in devices or order; else None."""
    one, other = mesh_devices(source), mesh_devices(target)
    return (None, None) if None in (one, other) or one == other else (one, other)


def mesh_devices(sharding: Any) -> tuple[int, ...] | None:
    """Return the device ids of a JAX sharding; None for other types and for abstract meshes."""
    try:
        return tuple(int(device.id) for device in sharding.mesh.devices.flat)
    except Exception:  # of objects that only look like shardings, too
        return None


def _flat(given: Any) -> Iterable[Any]:
    entries: Iterable[Any] = given.flat if hasattr(given, "flat") else given
    return entries
