"""Cut the array along the tile borders of both sides.

A *cell* is the common part of a source tile and a target tile. All of its elements have the same holders and the same
receivers. Cells with the same holders and receivers, of one array or of many, form a *demand*: their bytes may be
shared among holders in any ratio.

Example: 12 elements from 3 tiles (devices 0, 1, 2) to 2 tiles (devices 3, 4): the cells 0..4 from 0 to 3, 4..6 from 1
to 3, 6..8 from 1 to 4 and 8..12 from 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.redistribute.between.sides import Box, Side
from shardpass.redistribute.problem.device_arrays import IntArray


@dataclass(frozen=True, slots=True)
class Cell:
    """The elements ``box`` of every array in ``arrays``, of ``width`` bits each."""

    arrays: tuple[int, ...]
    box: Box
    width: int

    @property
    def elements(self) -> int:
        """The number of elements of one array in the cell."""
        return math.prod(b - a for a, b in zip(*self.box, strict=True))

    @property
    def bits(self) -> int:
        return self.elements * self.width * len(self.arrays)


@dataclass(frozen=True, slots=True)
class Demand:
    """Cells that any of ``holders`` can send, and all of ``receivers`` need."""

    holders: tuple[int, ...]
    receivers: tuple[int, ...]
    cells: tuple[Cell, ...]

    @property
    def bytes(self) -> float:
        return bytes_of(self.cells)


def bytes_of(cells: Sequence[Cell]) -> float:
    """Return the bytes of all ``cells`` together; a fraction where elements are narrower than a byte."""
    return sum(cell.bits for cell in cells) / 8


@dataclass(frozen=True)
class Moved:
    """Arrays of one shape and element type (``width`` bits) that move from ``source`` to ``target``."""

    arrays: tuple[int, ...]
    width: int
    source: Side
    target: Side


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells of ``moves`` that some device lacks, as index arrays.

    A row for each cell: ``move``, ``bits`` (of all arrays of the move), ``tile`` (the number of the source tile),
    ``holders`` and ``receivers`` (numbers of ``sets``, tuples of devices); ``start`` and ``stop``, with a column for
    each dimension of the greatest rank (0 to 1 where a move has fewer).
    """

    moves: Sequence[Moved]
    move: IntArray
    start: IntArray
    stop: IntArray
    bits: IntArray
    tile: IntArray
    holders: IntArray
    receivers: IntArray
    sets: Sequence[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.move)


class _Sets:
    """Numbers of sets of devices."""

    def __init__(self) -> None:
        self.number: dict[tuple[int, ...], int] = {}
        self.lacking: dict[tuple[int, int], int] = {}

    def of(self, devices: tuple[int, ...]) -> int:
        return self.number.setdefault(devices, len(self.number))

    def without(self, one: tuple[int, ...], other: tuple[int, ...]) -> int:
        """Return the number of the device set that contains the devices of ``one`` but not of ``other``."""
        key = self.of(one), self.of(other)
        if key not in self.lacking:
            self.lacking[key] = self.of(tuple(sorted(set(one).difference(other))))
        return self.lacking[key]


def cells_of(moves: Sequence[Moved]) -> Cells:
    rank = max((len(move.source.shape) for move in moves), default=0)
    sets = _Sets()
    rows = [_cells(number, move, rank, sets) for number, move in enumerate(moves)]
    empty = [np.empty((0, rank), np.int64) if k in (1, 2) else np.empty(0, np.int64) for k in range(7)]
    columns = [np.concatenate(column) for column in zip(*rows, empty, strict=True)]
    move, start, stop, bits, tile, holders, receivers = columns
    return Cells(moves, move, start, stop, bits, tile, holders, receivers, list(sets.number))


def _cells(number: int, move: Moved, rank: int, sets: _Sets) -> tuple[IntArray, ...]:
    before, after = move.source.tiles(rank), move.target.tiles(rank)
    low = np.maximum(after.start[:, None], before.start)
    high = np.minimum(after.stop[:, None], before.stop)
    t, s = np.nonzero((low < high).all(axis=-1))
    if set(move.source.devices).isdisjoint(move.target.devices):
        receivers = np.array([sets.of(devices) for devices in after.devices], np.int64)[t]
    else:
        pairs = zip(t.tolist(), s.tolist(), strict=True)
        receivers = np.array([sets.without(after.devices[j], before.devices[i]) for j, i in pairs], np.int64)
        lacking = receivers != sets.of(())
        t, s, receivers = t[lacking], s[lacking], receivers[lacking]
    holders = np.array([sets.of(devices) for devices in before.devices], np.int64)[s]
    start, stop = low[t, s], high[t, s]
    bits = np.prod(stop - start, axis=1, dtype=np.int64) * move.width * len(move.arrays)
    return np.full(len(t), number, np.int64), start, stop, bits, s, holders, receivers


def demands(cells: Cells, blocks: int | None) -> list[Demand]:
    """Return the demands of all arrays. ``blocks``: the size of a host, or None.

    Receivers in a host that has a holder are a demand apart, as no copy need come from another host for these.
    """
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Cell]] = {}
    parts: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    columns = (cells.move, cells.start, cells.stop, cells.holders, cells.receivers)
    for number, start, stop, h, r in zip(*(column.tolist() for column in columns), strict=True):
        move, holders = cells.moves[number], cells.sets[h]
        rank = len(move.source.shape)
        cell = Cell(move.arrays, (tuple(start[:rank]), tuple(stop[:rank])), move.width)
        if (h, r) not in parts:
            parts[h, r] = _by_host(holders, cells.sets[r], blocks)
        for part in parts[h, r]:
            alike.setdefault((holders, part), []).append(cell)
    return [Demand(*key, tuple(same)) for key, same in sorted(alike.items())]


def _by_host(holders: tuple[int, ...], receivers: tuple[int, ...], blocks: int | None) -> list[tuple[int, ...]]:
    if blocks is None:
        return [receivers]
    near = {holder // blocks for holder in holders}
    parts: dict[int, list[int]] = {}
    for receiver in receivers:
        host = receiver // blocks
        parts.setdefault(host if host in near else -1, []).append(receiver)
    return [tuple(part) for part in parts.values()]
