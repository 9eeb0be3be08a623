"""Simulate plans between sets of devices in NumPy, message by message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.between.sides import Box, Side
from shardpass.redistribute.between.waves import MovedArray
from shardpass.redistribute.program.digits import Unproven


def simulate(plan: TransferPlan, values: Sequence[Any]) -> list[dict[int, Any]]:
    """Simulate ``plan`` on whole NumPy arrays ``values``; return the tile of each array on each device after the
    last round.

    A device sends from its source tile, or from data that it has received. Elements that never arrive are zeros.
    """
    before = [tiles_of(array.source, value) for array, value in zip(plan.arrays, values, strict=True)]
    after: list[dict[int, Any]] = []
    for array, value, tiles in zip(plan.arrays, values, before, strict=True):
        after.append({})
        for device, (start, stop) in array.target.boxes.items():
            after[-1][device] = tile = np.zeros(np.subtract(stop, start), np.asarray(value).dtype)
            if device in tiles:
                place(tile, start, tiles[device], array.source.boxes[device][0])
    for messages in plan.rounds:
        arriving = []
        for message in messages:
            for cell in message.cells:
                for number in cell.arrays:
                    piece = _piece(plan.arrays, number, cell.box, message.sender, before, after)
                    arriving.append((number, message.receiver, cell.box, piece.copy()))
        for number, receiver, box, piece in arriving:
            place(after[number][receiver], plan.arrays[number].target.boxes[receiver][0], piece, box[0])
    return after


def _piece(
    arrays: Sequence[MovedArray], number: int, box: Box, sender: int, before: Sequence[Any], after: Sequence[Any]
) -> Any:
    array = arrays[number]
    for side, tiles in ((array.source, before[number]), (array.target, after[number])):
        if sender in side.boxes:
            start, stop = side.boxes[sender]
            if all(a <= c and d <= b for a, b, c, d in zip(start, stop, *box, strict=True)):
                return tiles[sender][cut(box, start)]
    raise Unproven(f"device {sender} does not have {box}")


def tiles_of(side: Side, value: Any) -> dict[int, Any]:
    """Cut ``value`` into the tile of each device, less the padding past the array's end."""
    whole = np.asarray(value)
    return {device: whole[cut(box, (0,) * whole.ndim)] for device, box in side.boxes.items()}


def cut(box: Box, start: Sequence[int]) -> tuple[slice, ...]:
    """Convert ``box`` to slices of an array that begins at ``start``."""
    return tuple(slice(a - s, b - s) for a, b, s in zip(*box, start, strict=True))


def place(tile: Any, start: Sequence[int], piece: Any, at: Sequence[int]) -> None:
    """Copy the intersection of ``piece``, which starts at ``at``, and ``tile``, which starts at ``start``."""
    low = tuple(map(max, start, at))
    high = tuple(min(s + n, a + m) for s, n, a, m in zip(start, tile.shape, at, piece.shape, strict=True))
    if all(a < b for a, b in zip(low, high, strict=True)):
        tile[cut((low, high), start)] = piece[cut((low, high), at)]
