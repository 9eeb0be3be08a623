"""The proof of a plan: every device ends with its target tile, and sends what it has.

Problem: arrays may have billions of elements; their boxes are few. The proof is exact on boxes. For each array and each
device:

1. What it sends lies in its source tile, or in a box that it received in an earlier round.
2. What it receives, and what it keeps of its source tile, are parts of its target tile that do not overlap and have as
   many elements as the tile. Hence each element of the tile is there, once.

Arrays that share all of their boxes are checked together. O(boxes of a device ** 2), vectorised.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from shardpass.redistribute.between.cells import Moved
from shardpass.redistribute.between.schedule import Message
from shardpass.redistribute.between.sides import Box
from shardpass.redistribute.program.digits import Unproven


def check(moves: Sequence[Moved], rounds: Sequence[Sequence[Message]]) -> None:
    """Raises Unproven."""
    for move, sent in _alike(moves, rounds):
        _check(move, sent)


def _alike(
    moves: Sequence[Moved], rounds: Sequence[Sequence[Message]]
) -> Iterator[tuple[Moved, list[tuple[int, Message, Box]]]]:
    """For each set of arrays with the same boxes: round, message and box of each part."""
    move_of = {array: move for move in moves for array in move.arrays}
    uses: dict[int, list[int]] = {array: [] for array in move_of}
    parts: list[tuple[int, Message, Box]] = []
    for at, messages in enumerate(rounds):
        for message in messages:
            for cell in message.cells:
                for array in cell.arrays:
                    if array not in uses:
                        raise Unproven(f"array {array} is sent, and is none")
                    uses[array].append(len(parts))
                parts.append((at, message, cell.box))
    seen = set()
    for array, numbers in uses.items():
        key = (id(move_of[array]), tuple(numbers))
        if key not in seen:
            seen.add(key)
            yield move_of[array], [parts[number] for number in numbers]


def _check(move: Moved, sent: Sequence[tuple[int, Message, Box]]) -> None:
    before, after = move.source.boxes, move.target.boxes
    came: dict[int, list[tuple[int, Box]]] = defaultdict(list)
    for at, message, box in sent:
        came[message.receiver].append((at, box))
    arrived: dict[int, dict[Box, int]] = {device: {} for device in came}
    for device, boxes in came.items():
        for at, box in boxes:
            arrived[device][box] = min(at, arrived[device].get(box, at))
    for at, message, box in sent:
        held = before.get(message.sender)
        first = arrived.get(message.sender, {}).get(box, at)
        if not (held and _inside(box, held)) and first >= at:
            raise Unproven(f"device {message.sender} sends {box} in round {at}, which it does not have")
    for device in {*came, *after}:
        if device not in after:
            raise Unproven(f"device {device} receives a part of an array of which it needs nothing")
        kept = _common(before[device], after[device]) if device in before else None
        _check_filled(device, after[device], [box for _, box in came[device]] + ([kept] if kept else []))


def _check_filled(device: int, tile: Box, boxes: Sequence[Box]) -> None:
    if outside := next((box for box in boxes if not _inside(box, tile)), None):
        raise Unproven(f"device {device} receives {outside}, which is not of its tile {tile}")
    if (count := sum(map(_volume, boxes))) != _volume(tile):
        raise Unproven(f"device {device} ends with {count} elements of its tile's {_volume(tile)}")
    corners = np.array(boxes, np.int64).reshape(len(boxes), 2, -1)
    low, high = corners[:, 0], corners[:, 1]
    for k in range(len(boxes) - 1):
        if ((np.maximum(low[k], low[k + 1 :]) < np.minimum(high[k], high[k + 1 :])).all(axis=1)).any():
            raise Unproven(f"device {device} receives a part of {boxes[k]} twice")


def _inside(box: Box, other: Box) -> bool:
    return all(a >= c and b <= d for a, b, c, d in zip(*box, *other, strict=True))


def _common(one: Box, other: Box) -> Box | None:
    low, high = tuple(map(max, one[0], other[0])), tuple(map(min, one[1], other[1]))
    return (low, high) if all(a < b for a, b in zip(low, high, strict=True)) else None


def _volume(box: Box) -> int:
    return math.prod(b - a for a, b in zip(*box, strict=True))
