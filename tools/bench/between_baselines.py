"""How others get an array from one set of devices to another, as messages on the same ports.

Each is one or more stages; a stage begins when the one before is done. Pairs of a stage are ordered by the planner's
own orders (``direct``), the faster of the two.

    gather, slice   every device of the source gathers the whole array; receivers pull their tiles, from these by turns
    device_put      JAX 0.10: where each target tile is a source tile, copies of it; else the whole array to one host,
                    and tiles from there. The host is that of the first device of the source, and has its ports
    common divisor  counts of tiles are brought to the greatest common divisor of both sides' in each dimension: devices
                    of the source gather within such a tile; receivers pull from these by turns (after the reshard of
                    pathways-utils, which refuses counts that share no factor)
    first holder    each receiver pulls each part from the first device that has it
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.redistribute.between.direct import scheduled_pairs
from shardpass.redistribute.between.ports import Ports
from shardpass.redistribute.between.sides import Box, Side

Pull = tuple[int, int, Box]  # sender, receiver, box


@dataclass(frozen=True, slots=True)
class Price:
    """Makespan; bytes out of the busiest sender; bytes of the tiles before, between and after on the fullest device."""

    seconds: float
    sent: float
    memory: float


def baselines(source: Side, target: Side, width: int, ports: Ports) -> dict[str, Price]:
    whole: Box = ((0,) * len(source.shape), source.shape)
    gathered = dict.fromkeys(source.boxes, whole)
    common = _common_tiles(source, target)
    stages = {
        "gather, slice": _through(source, target, gathered),
        "device_put": _device_put(source, target, whole),
        "common divisor": _through(source, target, common),
        "first holder": ([_pulls(source.boxes, target.boxes, turn=False)], {}),
    }
    return {name: _price(*way, source, target, width, ports) for name, way in stages.items()}


def _device_put(source: Side, target: Side, whole: Box) -> tuple[list[list[Pull]], dict[int, Box]]:
    if all(box in source.holders for box in target.boxes.values()):
        return [[(source.holders[box][-1], device, box) for device, box in target.boxes.items()]], {}
    host = source.devices[0]
    into = [(holders[0], host, box) for box, holders in source.holders.items()]
    return [into, [(host, device, box) for device, box in target.boxes.items()]], {host: whole}


def _through(source: Side, target: Side, middle: dict[int, Box]) -> tuple[list[list[Pull]], dict[int, Box]]:
    return [_pulls(source.boxes, middle, turn=False), _pulls(middle, target.boxes, turn=True)], middle


def _common_tiles(source: Side, target: Side) -> dict[int, Box]:
    """The box of each source device, widened to tiles of the common divisor."""
    boxes = {}
    counts = source.distribution.tiling.counts, target.distribution.tiling.counts
    for device, box in source.boxes.items():
        low, high = [], []
        for dim, (a, b) in enumerate(zip(*counts, strict=True)):
            tiles, size = math.gcd(a, b), source.shape[dim]
            width = source.distribution.tile[dim] * (a // tiles)
            low.append(box[0][dim] // width * width)
            high.append(min(size, low[-1] + width))
        boxes[device] = tuple(low), tuple(high)
    return boxes


def _pulls(before: dict[int, Box], after: dict[int, Box], *, turn: bool) -> list[Pull]:
    """What each device lacks, from the holders of each tile: the first, or by turns."""
    holders: dict[Box, list[int]] = defaultdict(list)
    for device, box in before.items():
        holders[box].append(device)
    pulls = []
    asked: dict[Box, int] = defaultdict(int)
    for device, box in after.items():
        own, left = before.get(device), [box]
        if own is not None:
            left = _without(box, own)
        for tile, devices in holders.items():
            rest = []
            for part in left:
                shared = _shared(part, tile)
                if shared is None:
                    rest.append(part)
                    continue
                pulls.append((devices[asked[tile] % len(devices) if turn else 0], device, shared))
                asked[tile] += 1
                rest += _without(part, tile)
            left = rest
    return pulls


def _shared(one: Box, other: Box) -> Box | None:
    low, high = tuple(map(max, one[0], other[0])), tuple(map(min, one[1], other[1]))
    return (low, high) if all(a < b for a, b in zip(low, high, strict=True)) else None


def _without(box: Box, other: Box) -> list[Box]:
    """``box`` less ``other``, as boxes."""
    if _shared(box, other) is None:
        return [box]
    parts, (low, high) = [], (list(box[0]), list(box[1]))
    for dim, (a, b) in enumerate(zip(*other, strict=True)):
        for start, stop in ((low[dim], min(a, high[dim])), (max(b, low[dim]), high[dim])):
            if start < stop:
                parts.append(((*low[:dim], start, *low[dim + 1 :]), (*high[:dim], stop, *high[dim + 1 :])))
        low[dim], high[dim] = max(low[dim], a), min(high[dim], b)
    return parts


def _volume(box: Box) -> int:
    return math.prod(b - a for a, b in zip(*box, strict=True))


def _price(
    stages: Iterable[Sequence[Pull]], middle: dict[int, Box], source: Side, target: Side, width: int, ports: Ports
) -> Price:
    seconds = 0.0
    sent: dict[int, float] = defaultdict(float)
    for pulls in stages:
        size: dict[tuple[int, int], float] = defaultdict(float)
        for sender, receiver, box in pulls:
            if sender != receiver:
                size[sender, receiver] += _volume(box) * width / 8
        if size:
            ends = np.array(list(size), np.int64).T
            seconds += scheduled_pairs(ends[0], ends[1], np.array(list(size.values())), ports, 0.0)[1]
        for (sender, _), count in size.items():
            sent[sender] += count
    alive: dict[int, float] = defaultdict(float)
    for boxes in (source.boxes, middle, target.boxes):
        for device, box in boxes.items():
            alive[device] += _volume(box) * width / 8
    return Price(seconds, max(sent.values(), default=0.0), max(alive.values(), default=0.0))
