"""Windows that lie near their tiles, served by strips of the neighbours' tiles side by side: planned, without MLIR.

Every position's window of one array lies within some reach of its own tile. The same strips are laid beside the tile
on every position, in the array's order, and each position's window is a run of what then lies there:

    ... | end of the tile before | own tile | beginning of the next tile | ...
              <------- window of position p ------->

State: ``Layout.strips``, in order and without a gap, from ``Layout.low`` on (relative to the tile's first element).
Invariants: the strip at distance r is of position p + r's tile; windows of positions that need nothing may be anywhere.
Cases: windows that all lie alike to their tiles *are* the layout; others are cut from it at ``Layout.offsets[p]``.

Round the ring, distance r and r - count are one: they have no receiver and no sender in common, so that one permute
serves both (on two positions, both sides). Cost: O(count * strips).
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
    """One permute: position p gets, of the tile of ``source[p]`` (-1: of none), ``size`` elements from ``take`` on.

    ``take`` is by sender. ``strips``: (which of the layout's strips it brings, where it begins in what was received).
    """

    size: int
    source: Table
    take: Table
    strips: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Layout:
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
        """Elements that must lie there for every position's window to lie within."""
        return max(self.offsets) + self.width

    @property
    def shared(self) -> bool:
        """Whether some permute serves two distances, and brings something also where a strip has no sender."""
        return any(len(s.strips) > 1 for s in self.shipments)


@lru_cache(maxsize=4096)
def beside(size: int, count: int, window: Window) -> Layout:
    """The layout that serves ``window`` over the ceil tiles of an array of ``size`` elements."""
    tile = tile_of(size, count)
    relative = [start - p * tile for p, start in enumerate(window.start)]
    needy = [p for p in range(count) if window.stop[p] > window.start[p]]
    if not needy:
        return Layout((Strip(0, 0, tile),), 0, (0,) * count, window.width, ())
    low = min(relative[p] for p in needy)
    # where all windows lie alike the strips are the window; else what no position needs is not brought
    alike = len({relative[p] for p in needy}) == 1
    high = low + window.width if alike else max(window.stop[p] - p * tile for p in needy)
    strips = tuple(_strips(low, high, tile, count))
    offsets = tuple(relative[p] - low if p in needy else 0 for p in range(count))
    return Layout(strips, low, offsets, window.width, _shipments(strips, size, count, window))


def _strips(low: int, high: int, tile: int, count: int) -> list[Strip]:
    """From ``low`` to ``high``; what lies beyond every position's reach is one strip of its own at each side."""
    left, right = (1 - count) * tile, count * tile
    out = [Strip(-count, 0, min(high, left) - low)] if low < left else []
    # of an array of no elements there are no tiles, only what lies at its sides
    for r in range(max(low, left) // tile, -(-min(high, right) // tile)) if tile else ():
        first = max(low - r * tile, 0)
        out.append(Strip(r, first, min(high - r * tile, tile) - first))
    return [*out, Strip(count, 0, high - max(low, right))] if high > right else out


def _shipments(strips: tuple[Strip, ...], size: int, count: int, window: Window) -> tuple[Shipment, ...]:
    """One for each distance round the ring that anyone needs a strip of."""
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
    """The positions whose window holds an element of the strip."""
    tile, out = tile_of(size, count), []
    for p in range(max(0, -strip.distance), min(count, count - strip.distance)):
        begin = (p + strip.distance) * tile + strip.first
        end = min(begin + strip.length, size)
        if max(begin, window.start[p]) < min(end, window.stop[p]):
            out.append(p)
    return out
