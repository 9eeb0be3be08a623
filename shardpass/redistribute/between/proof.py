"""The proof of a plan: every device ends with its target tile, and sends what it has.

Problem: arrays may have billions of elements; their boxes are few. The proof is exact on boxes. Arrays of a move that
are in the same pieces are a *unit*. For each unit and each device:

1. What it sends lies in its source tile, or is a box that it received in an earlier round.
2. What it receives, and what it keeps of its source tile, lies in its target tile, and has as many elements as it.
3. No element is there twice: the tile is cut along all borders of its pieces, and no part is counted twice. With 2,
   each element of the tile is there, once.

The proof reads sides and messages alone. O(parts * log), for all devices at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.between.cells import Moved
from shardpass.redistribute.between.sent import Sent
from shardpass.redistribute.between.sides import Side
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program.digits import Unproven

MOST_PARTS = 2**21  # that are counted together


def check(sent: Sent) -> None:
    """Prove that after all rounds each device has its target tiles, by counting units of elements. Raises Unproven."""
    counts = np.array([len(move.arrays) for move in sent.moves], np.int64)
    if ((sent.first < 0) | (sent.last > counts[sent.move]) | (sent.first >= sent.last)).any():
        raise Unproven("a piece is of an array that is none")
    piece, unit, units = _units(sent, counts)
    sender, receiver = (ends[sent.message][piece] for ends in (sent.sender, sent.receiver))
    at, low, high = sent.round[sent.message][piece], sent.start[piece], sent.stop[piece]
    devices = _all_devices(sent.moves)
    before, after = (_Tiles(sent.moves, side, devices, sent.start.shape[1]) for side in ("source", "target"))
    _check_sent(before, sent.move[piece], unit, sender, receiver, at, low, high)
    _check_filled(before, after, units, unit, receiver, low, high)


def _units(sent: Sent, counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Split pieces into units. Returns for each part the numbers of its piece and its unit, and for each unit its
    move.
    """
    span = int(counts.max(initial=0)) + 1
    key = sent.move * span
    ends = np.arange(len(counts)) * span
    borders = np.unique(np.concatenate([key + sent.first, key + sent.last, ends, ends + counts]))
    starts = borders[borders % span < counts[borders // span]] if len(counts) else borders
    low, high = np.searchsorted(starts, key + sent.first), np.searchsorted(starts, key + sent.last)
    piece, within = _repeated(high - low)
    return piece, low[piece] + within, starts // span


def _repeated(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Repeat each number k ``counts[k]`` times; returns the numbers, and which repetition each is."""
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


def _all_devices(moves: Sequence[Moved]) -> IntArray:
    sides = {id(side): side for move in moves for side in (move.source, move.target)}
    return np.unique(np.concatenate([np.empty(0, np.int64), *(np.array(side.devices) for side in sides.values())]))


class _Tiles:
    """The tile of each device under each move. ``real``: whether the device has a tile."""

    def __init__(self, moves: Sequence[Moved], side: str, devices: IntArray, rank: int) -> None:
        shape = (len(moves), len(devices))
        self.devices = devices
        self.real = np.zeros(shape, bool)
        self.start, self.stop = np.zeros((*shape, rank), np.int64), np.ones((*shape, rank), np.int64)
        for number, move in enumerate(moves):
            of: Side = getattr(move, side)
            boxes = of.distribution.boxes(of.shape)
            column = np.searchsorted(devices, np.array(of.devices))
            self.real[number, column] = boxes.volume > 0
            self.start[number, column, : len(of.shape)] = boxes.start
            self.stop[number, column, : len(of.shape)] = boxes.stop

    def column(self, device: IntArray) -> IntArray:
        column = np.minimum(np.searchsorted(self.devices, device), len(self.devices) - 1)
        if (wrong := self.devices[column] != device).any():
            raise Unproven(f"device {device[wrong][0]} is of neither side")
        return column

    def around(self, move: IntArray, device: IntArray, low: IntArray, high: IntArray) -> NDArray[np.bool_]:
        """Return whether each box lies in the tile."""
        at = move, self.column(device)
        inside = (self.start[at] <= low).all(axis=1) & (high <= self.stop[at]).all(axis=1)
        return np.asarray(inside & self.real[at])


def _check_sent(
    before: _Tiles, move: IntArray, unit: IntArray, sender: IntArray, receiver: IntArray, at: IntArray,
    low: IntArray, high: IntArray,
) -> None:  # fmt: skip
    other = np.flatnonzero(~before.around(move, sender, low, high)) if len(move) else move
    if not len(other):
        return
    came = np.flatnonzero(np.isin(receiver, sender[other]))
    boxes = [np.concatenate([part[other], part[came]]) for part in (low, high)]
    keys = np.column_stack(
        [np.concatenate([unit[other], unit[came]]), np.concatenate([sender[other], receiver[came]]), *boxes]
    )
    _, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    earliest = np.full(int(number.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(earliest, number[len(other) :], at[came])
    late = earliest[number[: len(other)]] >= at[other]
    if late.any():
        k = other[late][0]
        raise Unproven(f"device {sender[k]} sends {_text(low[k], high[k])} in round {at[k]}, which it does not have")


def _check_filled(
    before: _Tiles, after: _Tiles, units: IntArray, unit: IntArray, receiver: IntArray, low: IntArray, high: IntArray
) -> None:
    column = after.column(receiver) if len(receiver) else receiver
    start, stop = after.start[units], after.stop[units]
    if len(receiver) and (wrong := ~after.around(units[unit], receiver, low, high)).any():
        k = np.flatnonzero(wrong)[0]
        raise Unproven(f"device {receiver[k]} receives {_text(low[k], high[k])}, which is not of its tile")
    kept_low, kept_high = np.maximum(start, before.start[units]), np.minimum(stop, before.stop[units])
    kept = before.real[units] & after.real[units] & (kept_low < kept_high).all(axis=2)
    u, d = np.nonzero(kept)
    width = len(after.devices)
    owner = np.concatenate([unit * width + column, u * width + d])
    low, high = np.concatenate([low, kept_low[u, d]]), np.concatenate([high, kept_high[u, d]])
    count = np.zeros(len(units) * width, np.int64)
    np.add.at(count, owner, np.prod(high - low, axis=1, dtype=np.int64))
    needed = (np.prod(stop - start, axis=2, dtype=np.int64) * after.real[units]).reshape(-1)
    if (wrong := count != needed).any():
        k = int(np.flatnonzero(wrong)[0])
        device = after.devices[k % width]
        raise Unproven(f"device {device} ends with {count[k]} elements of its tile's {needed[k]}")
    order = np.argsort(owner, kind="stable")
    _check_once(after.devices, width, owner[order], low[order], high[order])


def _check_once(devices: IntArray, width: int, owner: IntArray, low: IntArray, high: IntArray) -> None:
    """Check that no element of an owner is in two of its boxes; owners ascend."""
    if not len(owner):
        return
    first, last, parts = [], [], []
    _, number = np.unique(owner, return_inverse=True)
    for dim in range(low.shape[1]):
        values, place = np.unique(np.concatenate([low[:, dim], high[:, dim]]), return_inverse=True)
        key = np.concatenate([number, number]) * len(values) + place.reshape(-1)
        borders, at = np.unique(key, return_inverse=True)
        begin = np.searchsorted(borders, np.arange(number[-1] + 1) * len(values))
        at = at.reshape(2, -1) - begin[number]
        first.append(at[0])
        last.append(at[1])
        parts.append(np.diff(np.append(begin, len(borders)))[number])
    spans = [b - a for a, b in zip(first, last, strict=True)]
    sizes = np.prod(spans, axis=0, dtype=np.int64) if spans else np.ones(len(owner), np.int64)
    total = np.bincount(number, sizes)
    batch = ((np.cumsum(total) - total) // MOST_PARTS)[number]  # of whole owners
    for rows in np.split(np.arange(len(owner)), np.flatnonzero(np.diff(batch)) + 1):
        box, within = _repeated(sizes[rows])
        cell: Any = number[rows][box]
        for a, n, grid in zip(first, spans, parts, strict=True):
            cell = cell * grid[rows].max() + a[rows][box] + within % n[rows][box]
            within = within // n[rows][box]
        seen, count = np.unique(cell, return_counts=True)
        if len(seen) < len(cell):
            k = rows[box[cell == seen[count > 1][0]][0]]
            raise Unproven(f"device {devices[owner[k] % width]} receives a part of {_text(low[k], high[k])} twice")


def _text(low: IntArray, high: IntArray) -> str:
    return f"{low.tolist()} to {high.tolist()}"
