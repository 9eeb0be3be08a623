"""Compute which elements of a split dimension a window op needs for its results.

Problem: the results of a slice, a pad, a pooling or a convolution are split over positions, and so is the operand, each
in ceil tiles of its own. Which elements of the operand does the tile of results at each position need? ``Reach`` stores
the parameters of the op along one dimension, ``Reach.window`` answers.

Two coordinate systems: an operand of dilation d has element i at coordinate ``i * d`` (between two elements lie d - 1
places where there is nothing). ``window`` speaks of coordinates, ``elements`` of elements.

Cases, on 4 positions:

1. windows that lie alike at every position: the mean of 3 neighbours in 16 elements, padded by one at both sides, has
   ``first=-1, step=1, span=3``; position p has the results 4p to 4p+3 and needs the elements 4p-1 to 4p+4: windows of
   6 elements that start at -1, 3, 7, 11, each one before its tile;
2. windows that drift: ``x[4:16]`` of 16 elements has 12 results in tiles of 3, ``first=4``; the windows start at 4, 7,
   10, 13, where the tiles start at 0, 4, 8, 12: they lie 4, 3, 2 and 1 elements after the start of the tile;
3. dilated: 4 elements with one place between two of them make 7 results in tiles of 2; the windows start at the
   coordinates 0, 2, 4, 6, that is at the elements 0, 1, 2, 3, and all begin with an element (phase 0).

Cost: O(count) for each window; windows are cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from shardpass.ops.halo.transfers import Table, Window, tile_of
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Kind, RuleBuilder


@dataclass(frozen=True, slots=True)
class Reach:
    """The elements of an operand's dimension that a result's dimension needs.

    Result j needs ``first + j * step`` up to ``span`` coordinates further; element i of the operand has the coordinate
    ``i * dilation``. ``backward``: results count from the end, so that tile p is the p-th from the end. ``strict``: a
    position uses all of its window, also the part that no result needs.
    """

    operand: int
    dim: int
    size: int  # of the operand's dimension
    results: int  # size of the result's dimension
    first: int = 0
    step: int = 1
    span: int = 1
    dilation: int = 1
    backward: bool = False
    strict: bool = False

    def width(self, count: int) -> int:
        """Count the coordinates that a tile of results spans; 0 where there are no results."""
        tile = tile_of(self.results, count)
        return (tile - 1) * self.step + self.span if tile else 0

    def window(self, count: int) -> Window:
        """Return the start and end of the coordinates that each of ``count`` positions needs, as one ``Window``."""
        return _window(self, count)

    def elements(self, count: int) -> tuple[Window, Table]:
        """Return the operand's elements in each window, and their phase: the first element's offset in the window."""
        return _elements(self, count)

    def drifts(self, count: int) -> bool:
        """Return whether windows lie differently relative to their tiles (case 2)."""
        tile = tile_of(self.size, count)
        return len({start - p * tile for p, start in enumerate(self.elements(count)[0].start)}) > 1


@lru_cache(maxsize=4096)
def _window(reach: Reach, count: int) -> Window:
    tile = tile_of(reach.results, count)
    start, stop = [], []
    for p in range(count):
        low = reach.results - (p + 1) * tile if reach.backward else p * tile
        high = min(low + tile, reach.results)
        start.append(reach.first + low * reach.step)
        used = high > low or reach.strict
        last = low + tile if reach.strict else high
        stop.append(reach.first + (last - 1) * reach.step + reach.span if used else start[-1])
    return Window(tuple(start), tuple(stop), reach.width(count))


@lru_cache(maxsize=4096)
def _elements(reach: Reach, count: int) -> tuple[Window, Table]:
    whole, d = _window(reach, count), reach.dilation
    if d == 1:
        return whole, (0,) * count
    start = tuple(-(-s // d) for s in whole.start)
    phase = tuple(i * d - s for i, s in zip(start, whole.start, strict=True))
    stop = tuple(max(i, -(-s // d)) for i, s in zip(start, whole.stop, strict=True))
    width = max((whole.width - 1 - p) // d + 1 for p in phase)
    return Window(start, stop, max(width, 1)), phase


def split_reaches(reaches: Sequence[Reach], operand: int, split: Split) -> list[Reach]:
    """List the reaches of ``operand`` along split dimensions, in the order in which windows are fetched.

    Dimensions whose windows drift come last: there each device cuts a separate part, which only the op reads, and which
    no halo of another dimension sends.
    """
    dims = split.operands[operand]
    split_reach = [r for r in reaches if r.operand == operand and dims[r.dim]]
    return sorted(split_reach, key=lambda r: (r.drifts(split.mesh.count(dims[r.dim])), r.dim))


def windowed_factor(build: RuleBuilder, *sizes: int, kind: Kind = Kind.PARALLEL, full: int = 0) -> int:
    """Add a factor for dimensions of different sizes that are each split into separate tiles."""
    return build.factor(max(sizes), kind, elastic=len(set(sizes)) > 1, full=full)
