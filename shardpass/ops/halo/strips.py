"""Windows near their tiles, fetched as strips of the neighbours' tiles: planned, without MLIR.

Problem: the window of every position lies near its own tile, with the same strips of other tiles around it. Source:
the halo exchange of stencil codes. Every position lays the same strips beside its tile, in the order of the array, and
its window is a run of these elements:

    ... | end of the tile before | own tile | beginning of the next tile | ...
              <------- window of position p ------->

State: ``Layout.strips``, in order and without a gap, from ``Layout.low`` on (relative to the tile's first element).
Invariants: the strip at distance r comes from the tile of position p + r; the windows of positions that need nothing
may lie anywhere.

Cases, for 16 elements on 4 positions (tiles of 4):

1. all windows lie alike to their tiles, and the strips are the window. One element more at both sides: the strips are
   the last element of the tile before, the tile, and the first element of the tile after; two permutes;
2. windows drift, and each position cuts its own from the strips at ``Layout.offsets[p]``. 12 results on 4 positions:
   the window of 3 elements of position p begins p elements before the tile; the strips are 3 elements of the tile
   before and 3 of the own, the offsets are 3, 2, 1, 0; one permute;
3. two distances are one permute. Round the ring, distance r and distance r - count have no receiver and no sender in
   common, so that one permute serves both. On 2 positions a halo of both sides is one permute.

Cost: O(count * strips).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from shardpass.ops.halo.transfers import Table, Window, tile_of


@dataclass(frozen=True, slots=True)
class Strip:
    """Local elements ``first`` up to ``first + length`` of the tile at ``distance``."""

    distance: int
    first: int
    length: int


@dataclass(frozen=True, slots=True)
class Shipment:
    """One permute: position p receives ``size`` elements of the tile of ``source[p]``, or nothing where that is -1.

    ``take`` is by sender. ``strips``: (number of a strip of the layout, index at which it begins in the received box).
    """

    size: int
    source: Table
    take: Table
    strips: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class StripLayout:
    """The strips beside a tile, the permutes that bring them, and at ``offsets`` the windows of ``width`` in them."""

    strips: tuple[Strip, ...]
    low: int
    offsets: Table
    width: int
    shipments: tuple[Shipment, ...]

    @property
    def received(self) -> int:
        return sum(s.size for s in self.shipments)

    @property
    def length(self) -> int:
        """Return the elements that the strips must span so that every position's window lies within."""
        return max(self.offsets) + self.width

    @property
    def shared(self) -> bool:
        """Whether a permute serves two distances, and also fetches elements for strips without a sender."""
        return any(len(s.strips) > 1 for s in self.shipments)


@lru_cache(maxsize=4096)
def beside(size: int, count: int, window: Window) -> StripLayout:
    """Plan the strips of neighboring tiles that each device needs for its window, in tiles of ceil(size / count)."""
    tile = tile_of(size, count)
    relative = [start - p * tile for p, start in enumerate(window.start)]
    needy = [p for p in range(count) if window.stop[p] > window.start[p]]
    if not needy:
        return StripLayout((Strip(0, 0, tile),), 0, (0,) * count, window.width, ())
    low = min(relative[p] for p in needy)
    # where all windows lie alike the strips are the window; else elements that no position needs are not brought
    alike = len({relative[p] for p in needy}) == 1
    high = low + window.width if alike else max(window.stop[p] - p * tile for p in needy)
    strips = tuple(_strips(low, high, tile, count))
    offsets = tuple(relative[p] - low if p in needy else 0 for p in range(count))
    return StripLayout(strips, low, offsets, window.width, _shipments(strips, size, count, window))


def _strips(low: int, high: int, tile: int, count: int) -> list[Strip]:
    """List the strips from ``low`` to ``high``, with a strip at each side beyond all tiles, which is never sent."""
    left, right = (1 - count) * tile, count * tile
    out = [Strip(-count, 0, min(high, left) - low)] if low < left else []
    # an array of no elements has no tiles, only the two sides
    for r in range(max(low, left) // tile, -(-min(high, right) // tile)) if tile else ():
        first = max(low - r * tile, 0)
        out.append(Strip(r, first, min(high - r * tile, tile) - first))
    return [*out, Strip(count, 0, high - max(low, right))] if high > right else out


def _shipments(strips: tuple[Strip, ...], size: int, count: int, window: Window) -> tuple[Shipment, ...]:
    """Plan one permute for each distance, modulo the number of positions, at which some position needs a strip."""
    tile = tile_of(size, count)
    groups: dict[int, list[int]] = {}
    for number, strip in enumerate(strips):
        if strip.distance and _receivers(strip, size, count, window):
            groups.setdefault(strip.distance % count, []).append(number)
    out = []
    for numbers in groups.values():
        longest = max(strips[n].length for n in numbers)
        source, take, places = [-1] * count, [0] * count, []
        for number in numbers:
            strip = strips[number]
            from_ = min(strip.first, tile - longest)
            places.append((number, strip.first - from_))
            for p in _receivers(strip, size, count, window):
                source[p], take[p + strip.distance] = p + strip.distance, from_
        if len(numbers) == 1:
            take = [from_] * count
        out.append(Shipment(longest, tuple(source), tuple(take), tuple(places)))
    return tuple(out)


def _receivers(strip: Strip, size: int, count: int, window: Window) -> list[int]:
    """List the positions whose window contains an element of the strip."""
    tile, out = tile_of(size, count), []
    for p in range(max(0, -strip.distance), min(count, count - strip.distance)):
        begin = (p + strip.distance) * tile + strip.first
        end = min(begin + strip.length, size)
        if max(begin, window.start[p]) < min(end, window.stop[p]):
            out.append(p)
    return out
