"""The placement of a tensor's shards: a grid of device sets, in the order of axes.

A spec lists shards row-major over its split axes, in the order in which it lists them; a layout has one count for each
axis of the tensor, in order, so that two specs mean the same exactly if their layouts are equal.

Example: ``device = [-1, -2]``, ``device_map = {-1: [0, 1], -2: [2, 3]}``, axis 1 in 2 shards, of a matrix: counts
(1, 2), holders ({0, 1}, {2, 3}).

``ANYWHERE``-like layouts (``holders`` None) are tensors without a spec that are unsharded: a graph input is available
wherever a node needs it. Order inside of a device group has no meaning here, as the documents give it none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding

Devices = frozenset[int]
Coordinates = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The devices of each shard of a tensor.

    ``holders``: the devices of each shard, row-major over ``counts``. ``fused``: axes that are cut as several sizes. A
    fused axis has the same ``counts`` as a plain axis with as many shards, but its shards contain other elements.
    """

    counts: tuple[int, ...]
    holders: tuple[Devices, ...] | None = None
    fused: tuple[tuple[SimpleSharding, ...], ...] = ()

    @property
    def is_anywhere(self) -> bool:
        return self.holders is None

    @property
    def is_split(self) -> bool:
        return prod(self.counts) > 1

    @property
    def devices(self) -> Devices:
        return frozenset().union(*(self.holders or ()))

    def at(self, coordinates: Coordinates) -> Devices | None:
        """Return the devices of the shard at ``coordinates``; None if every device that needs the shard may have it."""
        if self.holders is None:
            return None
        index = 0
        for place, count in zip(coordinates, self.counts, strict=True):
            index = index * count + place
        return self.holders[index]

    def shards(self) -> Iterator[Coordinates]:
        return itertools.product(*map(range, self.counts))

    def along(self, axis: int) -> tuple[Devices, ...]:
        """Return the devices of any shard at each place along one axis."""
        places: list[set[int]] = [set() for _ in range(self.counts[axis])]
        for place in self.shards():
            places[place[axis]] |= self.at(place) or frozenset()
        return tuple(map(frozenset, places))

    def cut(self, axis: int) -> tuple[int, tuple[SimpleSharding, ...]]:
        """Describe the cut of one axis; equal for two layouts whose shards have the same elements along the axis."""
        return self.counts[axis], self.fused[axis] if self.fused else ()

    def __str__(self) -> str:
        """``[2, 1] on {0,1} {2,3}``: the counts, and the devices of each shard."""
        if self.holders is None:
            return "unsharded"
        counts = "x".join(map(str, self.counts)) or "1"
        devices = " ".join("{" + ",".join(map(str, sorted(one))) + "}" for one in self.holders)
        return f"{counts} shards on {devices}" if self.is_split else f"whole on {devices}"


def unsharded(rank: int) -> Layout:
    return Layout((1,) * rank)


def layout_of(spec: ShardingSpec, rank: int) -> Layout:
    """Return the layout of a valid spec, on a tensor of ``rank``."""
    axes = [dim.axis % rank for dim in spec.dims]
    counts = [1] * rank
    fused: list[tuple[SimpleSharding, ...]] = [()] * rank
    for axis, dim in zip(axes, spec.dims, strict=True):
        counts[axis] = prod(part.num_shards for part in dim.parts)
        fused[axis] = dim.parts if len(dim.parts) > 1 and counts[axis] > 1 else ()
    listed = dict(zip(itertools.product(*(range(counts[axis]) for axis in axes)), spec.holders(), strict=True))
    holders = tuple(
        frozenset(listed[tuple(place[axis] for axis in axes)]) for place in itertools.product(*map(range, counts))
    )
    return Layout(tuple(counts), holders, tuple(fused) if any(fused) else ())


def spec_of(
    layout: Layout, name: str, shape: Sequence[int | str | None] = (), devices: Devices = frozenset()
) -> ShardingSpec:
    """Return the spec of ``layout``; an unsharded tensor is on all of ``devices``."""
    holders = layout.holders if layout.holders is not None else (devices,)
    sizes = [*shape] if len(shape) == len(layout.counts) else [None] * len(layout.counts)
    dims = tuple(
        ShardedDim(axis, (layout.fused[axis] if layout.fused else ()) or (SimpleSharding(count, sizes[axis]),))
        for axis, count in enumerate(layout.counts)
        if count > 1
    )
    if all(len(group) == 1 for group in holders):
        return ShardingSpec(tuple(min(group) for group in holders), dims=dims, tensor_name=name)
    groups: dict[int, tuple[int, ...]] = {}
    keys = {group: -1 - number for number, group in enumerate(dict.fromkeys(h for h in holders if len(h) > 1))}
    groups = {key: tuple(sorted(group)) for group, key in keys.items()}
    entries = tuple(keys[group] if group in keys else min(group) for group in holders)
    return ShardingSpec(entries, MappingProxyType(groups), dims, name)


def bytes_received(source: Layout, target: Layout, sizes: Sequence[int] | None, bits: int) -> int | None:
    """Return the most bytes that a device lacks; None if shapes or fused axes leave the number open.

    Shards are blocks of ceil(size / count) elements. Those of one layout do not overlap, so overlaps add up.
    """
    if source.is_anywhere:
        return 0
    if sizes is None or not bits or source.fused or target.fused or target.holders is None:
        return None
    have, want = _boxes(source, sizes), _boxes(target, sizes)
    lacking = [
        sum(_volume(box) for box in boxes) - sum(_overlap(a, b) for a in boxes for b in have.get(device, ()))
        for device, boxes in want.items()
    ]
    return -(-max(lacking, default=0) * bits // 8)


Box = tuple[tuple[int, int], ...]


def _boxes(layout: Layout, sizes: Sequence[int]) -> dict[int, list[Box]]:
    boxes: dict[int, list[Box]] = {}
    tiles = [-(-size // count) for size, count in zip(sizes, layout.counts, strict=True)]
    for place in layout.shards():
        box = tuple(
            (min(at * tile, size), min((at + 1) * tile, size))
            for at, tile, size in zip(place, tiles, sizes, strict=True)
        )
        for device in layout.at(place) or ():
            boxes.setdefault(device, []).append(box)
    return boxes


def _volume(box: Box) -> int:
    return prod(end - start for start, end in box)


def _overlap(one: Box, other: Box) -> int:
    return prod(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(one, other, strict=True))
