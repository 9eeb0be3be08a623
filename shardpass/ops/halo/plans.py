"""Plan how the windows of a split dimension are fetched, with the bytes of every collective, without MLIR.

Problem: each position of a split dimension has a tile and needs a window of the whole (``reach``). Source: the halo
exchange of stencil codes and of GSPMD (Xu et al. 2021, section 4.3.1); strategy 1 is the usual form.

A window is fetched by one of three strategies; the cheapest on the machine of the split wins, the first among equals.
Example: 16 elements on 4 positions, tiles of 4.

1. ``BESIDE``: strips of the neighbours' tiles are laid beside the own tile, one ``collective_permute`` for each
   neighbour that is reached (``strips``). The mean of 3 neighbours takes the last element of the tile before and the
   first of the tile after: two permutes of one element each. Where windows drift against the tiles (a padded, cut,
   strided or uneven dimension) each device slices its window from the strips.
2. ``ROUNDS``: rounds of ``collective_permute``, in which each device takes and puts a run at a place of its own
   (``transfers``, ``placing``). ``x[8:]`` has tiles of 2, all from the last two positions: two rounds of 2 elements.
3. ``GATHER``: one ``all_gather`` of the dimension, and a slice. A window of 13 elements before each result needs
   most of the dimension: 12 elements in one collective.

Permutes of few elements take little but their latency: a mean of 3 neighbours over 4,096 elements on 8 h100 takes two
permutes of one element each, 20 us, or one all_gather of 14 KiB, half as long.

The modules ``windows`` and ``rounds`` build ``Halo``, ``WindowSlide`` and ``Rounds``; nothing is decided there.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from shardpass.cost import collective as cost
from shardpass.cost.collective import ALL_GATHER, PERMUTE, Axis, bytes_received
from shardpass.cost.machine import Machine
from shardpass.element_types import ElementType
from shardpass.ops.halo.reach import Reach
from shardpass.ops.halo.strips import StripLayout, beside
from shardpass.ops.halo.transfers import Exchange, Table, Window, plan_exchange, tile_of, tiles
from shardpass.ops.model import Collective, Split
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.lattices import axes_over


class Strategy(enum.Enum):
    """How a window's elements are fetched from other tiles."""

    BESIDE = "beside"
    ROUNDS = "rounds"
    GATHER = "gather"


@dataclass(frozen=True, slots=True)
class HaloChoice:
    """The chosen strategy, and the plans of the first two strategies."""

    strategy: Strategy
    layout: StripLayout
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class Line:
    """Dimension ``dim`` of a tile, split over ``axes`` into ``count`` positions. ``cause``: of its collectives.

    ``machine``: by whose time is decided; there, a gather runs over ``along``, and a permute over ``beside``.
    """

    dim: int
    axes: Axes
    count: int
    cause: str
    machine: Machine
    along: tuple[Axis, ...] = ()
    beside: tuple[Axis, ...] = ()

    @classmethod
    def of(cls, split: Split, dim: int, axes: Axes, cause: str) -> Line:
        links = [_over(split.machine, kind, axes, split.mesh) for kind in (ALL_GATHER, PERMUTE)]
        return cls(dim, axes, split.mesh.count(axes), cause, split.machine, *links)


@dataclass(frozen=True, slots=True)
class Halo:
    """The windows of an array of ``size`` elements along ``line``.

    ``choice`` is None where the windows or the array have no elements, so that nothing is fetched.
    """

    line: Line
    size: int
    window: Window
    choice: HaloChoice | None
    collectives: tuple[Collective, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """Padding of each device's elements by ``low``, ``high``, ``interior``; then ``width`` from ``start[p]`` on."""

    low: int
    high: int
    interior: int
    start: Table
    width: int


@dataclass(frozen=True, slots=True)
class WindowSlide:
    """A halo for an op that slides windows along a dimension; the op keeps ``padding`` and ``dilation``.

    ``fit``: where windows begin at different places between two elements of a dilated dimension, no padding is the same
    for all devices. Each then pads, dilates and cuts by itself, and nothing is left to the op.
    """

    halo: Halo
    padding: tuple[int, int]
    dilation: int
    fit: Fit | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """An ``exchange`` along ``line`` that yields ``width`` elements."""

    line: Line
    exchange: Exchange
    width: int
    collectives: tuple[Collective, ...]


def plan_halo(line: Line, shape: Sequence[int], element: ElementType, size: int, window: Window) -> Halo:
    """Plan the windows of an array of ``size`` elements along ``line``; ``shape``: of the tile that is extended."""
    cross = _cross(shape, line.dim)
    if window.width == 0 or shape[line.dim] == 0 or cross == 0:
        return Halo(line, size, window, None, ())
    choice = choose(size, line, window, element.bytes(cross))
    if choice.strategy is Strategy.GATHER:
        collectives: tuple[Collective, ...] = (gather(line, element, tile_of(size, line.count) * cross),)
    else:
        parts = choice.layout.shipments if choice.strategy is Strategy.BESIDE else choice.exchange.rounds
        collectives = tuple(_permute(line, element.bytes(part.size * cross), part.source) for part in parts)
    return Halo(line, size, window, choice, collectives)


def plan_slide(line: Line, shape: Sequence[int], element: ElementType, reach: Reach) -> WindowSlide:
    """Plan the windows of ``reach`` along ``line``, and the padding that the op keeps; ``shape``: of its tile."""
    window, phase = reach.elements(line.count)
    halo = plan_halo(line, shape, element, reach.size, window)
    width, spans = reach.width(line.count), (window.width - 1) * reach.dilation + 1
    low, more = max(phase), max(phase) - min(phase)
    high = width - low - spans
    if not more and high >= 0:
        return WindowSlide(halo, (low, high), reach.dilation, None)
    fit = Fit(low, high + more, reach.dilation - 1, tuple(low - p for p in phase), width)
    return WindowSlide(halo, (0, 0), 1, fit)


def plan_rounds(line: Line, shape: Sequence[int], element: ElementType, exchange: Exchange, width: int) -> Rounds:
    """Plan ``exchange`` along ``line``, of a tile of ``shape``."""
    cross = _cross(shape, line.dim)
    if cross == 0:
        return Rounds(line, Exchange((), ()), width, ())
    permutes = tuple(_permute(line, element.bytes(part.size * cross), part.source) for part in exchange.rounds)
    return Rounds(line, exchange, width, permutes)


def gather(line: Line, element: ElementType, elements: int) -> Collective:
    """Describe the all_gather of ``elements`` elements of each position."""
    moved = bytes_received(ALL_GATHER, element.bytes(line.count * elements), line.count)
    return Collective(ALL_GATHER, line.axes, moved, line.cause)


@lru_cache(maxsize=4096)
def choose(size: int, line: Line, window: Window, cross_bytes: int) -> HaloChoice:
    """Choose the cheapest strategy for ``window``; an element of the dimension has ``cross_bytes``."""
    count, machine = line.count, line.machine
    layout, exchange = beside(size, count, window), plan_exchange((tiles(size, count),), window)

    def permutes(sizes: Iterable[int]) -> float:
        return sum([machine.seconds(cost.Collective(PERMUTE, line.beside, size * cross_bytes)) for size in sizes])

    whole = count * tile_of(size, count) * cross_bytes
    priced = [
        (permutes(part.size for part in layout.shipments), Strategy.BESIDE),
        (permutes(part.size for part in exchange.rounds), Strategy.ROUNDS),
        (machine.seconds(cost.Collective(ALL_GATHER, line.along, whole)), Strategy.GATHER),
    ]
    return HaloChoice(min(priced, key=lambda one: one[0])[1], layout, exchange)


_over = lru_cache(maxsize=256)(axes_over)


def _permute(line: Line, received: int, source: Table) -> Collective:
    positions = tuple(p for p, q in enumerate(source) if q not in (p, -1))
    return Collective(PERMUTE, line.axes, received, line.cause, positions)


def _cross(shape: Sequence[int], dim: int) -> int:
    """Count the elements of a tile for each index along ``dim``."""
    return prod(n for d, n in enumerate(shape) if d != dim)
