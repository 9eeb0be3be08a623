"""The array cut along the borders of both sides.

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


@dataclass(frozen=True, slots=True)
class Cell:
    """The elements ``box`` of every array in ``arrays``, of ``width`` bits each."""

    arrays: tuple[int, ...]
    box: Box
    width: int

    @property
    def elements(self) -> int:
        """Elements of one array."""
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
    """Bytes; a fraction of one where elements are narrower."""
    return sum(cell.bits for cell in cells) / 8


@dataclass(frozen=True)
class Moved:
    """Arrays of one shape and element type (``width`` bits) that go from ``source`` to ``target``."""

    arrays: tuple[int, ...]
    width: int
    source: Side
    target: Side


def demands(moves: Sequence[Moved], blocks: int | None) -> list[Demand]:
    """The demands of all arrays. ``blocks``: the size of a host, or None.

    Receivers in a host that has a holder are a demand apart, as no copy need come from another host for these.
    """
    cells: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Cell]] = {}
    for move in moves:
        for box, holders, receivers in _common(move.source, move.target):
            cell = Cell(move.arrays, box, move.width)
            for part in _by_host(holders, receivers, blocks):
                cells.setdefault((holders, part), []).append(cell)
    return [Demand(*key, tuple(found)) for key, found in sorted(cells.items())]


def _common(source: Side, target: Side) -> list[tuple[Box, tuple[int, ...], tuple[int, ...]]]:
    """Each cell with its holders, and the receivers that do not hold it."""
    before, after = list(source.holders.items()), list(target.holders.items())
    if not before or not after:
        return []
    (low, high), (start, stop) = (
        np.array([box for box, _ in tiles], np.int64).reshape(len(tiles), 2, -1).transpose(1, 0, 2)
        for tiles in (before, after)
    )
    first = np.maximum(low, start[:, None])
    last = np.minimum(high, stop[:, None])
    pairs = np.argwhere((first < last).all(axis=-1))
    boxes = zip(first[tuple(pairs.T)].tolist(), last[tuple(pairs.T)].tolist(), strict=True)
    found = []
    for (t, s), (a, b) in zip(pairs.tolist(), boxes, strict=True):
        holders = before[s][1]
        receivers = tuple(sorted(set(after[t][1]).difference(holders)))
        if receivers:
            found.append(((tuple(a), tuple(b)), holders, receivers))
    return found


def _by_host(holders: tuple[int, ...], receivers: tuple[int, ...], blocks: int | None) -> list[tuple[int, ...]]:
    if blocks is None:
        return [receivers]
    near = {holder // blocks for holder in holders}
    parts: dict[int, list[int]] = {}
    for receiver in receivers:
        host = receiver // blocks
        parts.setdefault(host if host in near else -1, []).append(receiver)
    return [tuple(part) for part in parts.values()]
