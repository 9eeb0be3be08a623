"""Plan exchanges along one dimension: which device sends which range of elements to which, without MLIR.

Problem: a dimension is split over ``count`` positions, the parts that a group of mesh axes makes; every group follows
the same plan. Each position owns some elements and needs a window of others. In a round (one ``collective_permute``)
a position sends one run at most and receives one at most, and all runs have one size: that of the longest.

State: ``Owned`` lists the elements that each position has, ``Window`` those that it needs. Coordinates are indices
along the dimension; they may lie outside of the array, where no position owns anything. Invariants: every element has
one owner; ``stop <= start`` means that nothing is owned or needed.

Method: every run that a position needs and another owns is an edge of a graph, and the rounds are its edges

1. grouped by distance round the ring: all runs that go one position to the right, all that go two, ... A roll by 3 of
   8 elements on 4 positions: a run of one element goes one to the right and a run of one goes two, 2 rounds; or
2. coloured, so that edges of one sender or of one receiver differ (``candidates.edge_colouring``). To reverse 8
   elements on 4 positions, 0 and 3 exchange tiles, and 1 and 2: one round, where by distance there would be two;

whichever receives fewer elements in all, then whichever has fewer rounds.

Cost: O(count^2) to find the edges, in NumPy rows; plans are cached by their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shardpass.redistribute.candidates.edge_colouring import colour_edges

Table = tuple[int, ...]  # one number for each position


@dataclass(frozen=True, slots=True)
class Owned:
    """Position p owns elements ``start[p] <= i < stop[p]``; element i lies at local index ``i - base[p]``."""

    base: Table
    start: Table
    stop: Table


@dataclass(frozen=True, slots=True)
class Window:
    """The elements that position p needs: ``width`` from ``start[p]``, arbitrary from ``stop[p]`` on."""

    start: Table
    stop: Table
    width: int

    def leaves_below(self) -> bool:
        """Return whether a needed element lies before the array's first."""
        return any(a < min(b, 0) for a, b in zip(self.start, self.stop, strict=True))

    def leaves_above(self, size: int) -> bool:
        """Return whether a needed element lies after the last of an array of ``size`` elements."""
        return any(max(a, size) < b for a, b in zip(self.start, self.stop, strict=True))


@dataclass(frozen=True, slots=True)
class Transfer:
    sender: int
    receiver: int
    take: int  # local index at the sender
    put: int  # local index in the receiver's window
    length: int


@dataclass(frozen=True, slots=True)
class Round:
    """One permute of a transfer: position p receives ``size`` elements from position ``source[p]``; -1: no sender.

    Only the first ``extent[p]`` elements matter.
    """

    size: int
    source: Table
    take: Table  # by sender
    put: Table  # by receiver
    extent: Table  # by receiver

    @property
    def place(self) -> int:
        """Return the least index at which a receiver writes its run."""
        return min(put for put, extent in zip(self.put, self.extent, strict=True) if extent)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange. ``kept``: runs that stay on their position. ``rounds``: ordered by place.

    ``received``: elements that a position gets.
    """

    kept: tuple[Round, ...]
    rounds: tuple[Round, ...]

    @property
    def received(self) -> int:
        return sum(r.size for r in self.rounds)


def tile_of(size: int, count: int) -> int:
    return -(-size // count)


def tiles(size: int, count: int, offset: int = 0, shift: int = 0, first: int = 0, last: int | None = None) -> Owned:
    """Return the ceil tiles of an array, at local index ``shift``; only elements ``first`` up to ``last`` count.

    Element ``first`` has the coordinate ``offset``.
    """
    tile, last, by = tile_of(size, count), size if last is None else last, offset - first
    start = [min(max(p * tile, first), last) + by for p in range(count)]
    stop = [max(min((p + 1) * tile, last), first) + by for p in range(count)]
    return Owned(tuple(p * tile + by - shift for p in range(count)), tuple(start), tuple(stop))


def reversed_tiles(size: int, count: int) -> Owned:
    """Return tiles that each position has reversed: coordinates count from the array's end."""
    tile = tile_of(size, count)
    base = [size - (p + 1) * tile for p in range(count)]
    return Owned(tuple(base), tuple(max(b, 0) for b in base), tuple(max(b + tile, 0) for b in base))


def tile_window(size: int, count: int) -> Window:
    """Return the window in which each position needs its tile."""
    own = tiles(size, count)
    return Window(own.base, own.stop, tile_of(size, count))


def transfers(owned: Sequence[Owned], window: Window) -> list[Transfer]:
    """List all runs that are both needed and owned, those within one position included."""
    out = []
    for part in owned:
        base, start, stop = np.array(part.base), np.array(part.start), np.array(part.stop)
        for p, (first, end) in enumerate(zip(window.start, window.stop, strict=True)):
            low, high = np.maximum(start, first), np.minimum(stop, end)
            for q in np.flatnonzero(low < high):
                out.append(Transfer(int(q), p, int(low[q] - base[q]), int(low[q] - first), int(high[q] - low[q])))
    return out


@lru_cache(maxsize=4096)
def plan_exchange(owned: tuple[Owned, ...], window: Window) -> Exchange:
    """Plan the rounds that fetch ``window`` from ``owned``."""
    count = len(window.start)
    runs = transfers(owned, window)
    kept = _by_order([t for t in runs if t.sender == t.receiver])
    sent = [t for t in runs if t.sender != t.receiver]
    options = [_by_distance(sent, count), _by_colour(sent)]
    chosen = min(options, key=lambda groups: (sum(max(t.length for t in g) for g in groups), len(groups)))
    rounds = sorted((_round(group, count) for group in chosen), key=lambda r: r.place)
    return Exchange(tuple(_round(group, count) for group in kept), tuple(rounds))


def _by_order(own: Sequence[Transfer]) -> list[list[Transfer]]:
    """Group the first run of every position, then the second, ..."""
    seen: dict[int, int] = {}
    groups: dict[int, list[Transfer]] = {}
    for t in own:
        number = seen[t.sender] = seen.get(t.sender, -1) + 1
        groups.setdefault(number, []).append(t)
    return list(groups.values())


def _by_distance(sent: Sequence[Transfer], count: int) -> list[list[Transfer]]:
    """Group runs by distance round the ring and by their number between the same two positions."""
    seen: dict[tuple[int, int], int] = {}
    groups: dict[tuple[int, int], list[Transfer]] = {}
    for t in sent:
        number = seen[t.sender, t.receiver] = seen.get((t.sender, t.receiver), -1) + 1
        groups.setdefault(((t.receiver - t.sender) % count, number), []).append(t)
    return list(groups.values())


def _by_colour(sent: Sequence[Transfer]) -> list[list[Transfer]]:
    groups: dict[int, list[Transfer]] = {}
    for colour, t in zip(colour_edges([(t.sender, t.receiver) for t in sent]), sent, strict=True):
        groups.setdefault(colour, []).append(t)
    return list(groups.values())


def _round(group: Sequence[Transfer], count: int) -> Round:
    source, take, put, extent = [-1] * count, [0] * count, [0] * count, [0] * count
    for t in group:
        source[t.receiver], take[t.sender], put[t.receiver], extent[t.receiver] = t.sender, t.take, t.put, t.length
    return Round(max(t.length for t in group), tuple(source), tuple(take), tuple(put), tuple(extent))
