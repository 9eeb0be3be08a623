"""What a window op needs of a split dimension, how it is brought, and what that costs.

``Reach`` says which elements of an operand's dimension a tile of results needs; ``HaloRule`` carries the reaches of an
op, with what its family's rule knows of whole shapes, to its rewrite and to the price of a split. A window is brought
in one of three ways (built in ``halo``), of which the cheapest is taken, the first among equals:

1. beside: strips of the neighbours' tiles next to the own, one ``collective_permute`` for each neighbour that is
   reached (``strips``); where windows drift against the tiles (a padded, cut, strided or uneven dimension) each device
   slices its window from them;
2. rounds of ``collective_permute``, each device taking and putting at a place of its own (``transfers``, ``placing``);
3. one ``all_gather`` of the dimension, and a slice.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from shardpass.element_types import element_type
from shardpass.ir.tensors import shape_of
from shardpass.ops.halo.strips import Layout, beside
from shardpass.ops.halo.transfers import Exchange, Table, Window, plan_exchange, tile_of, tiles
from shardpass.ops.splits.assign import LATENCY_BYTES
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Priority, Rule, RuleBuilder, unproject
from shardpass.ops.splits.prime_mesh import PrimeMesh


@dataclass(frozen=True, slots=True)
class Reach:
    """Which elements of an operand's dimension a result's dimension needs.

    Result j needs ``first + j * step`` up to ``span`` elements further, in coordinates where element i of the operand
    lies at ``i * dilation``. ``backward``: results count from the end: tile p is the p-th from the end.
    """

    operand: int
    dim: int
    factor: int
    size: int
    results: int
    first: int = 0
    step: int = 1
    span: int = 1
    dilation: int = 1
    backward: bool = False
    strict: bool = False  # all of a window is used, also where no result needs it

    def width(self, count: int) -> int:
        """Coordinates that a tile of results spans."""
        return (tile_of(self.results, count) - 1) * self.step + self.span

    def window(self, count: int) -> Window:
        """In coordinates."""
        tile = tile_of(self.results, count)
        start, stop = [], []
        for p in range(count):
            low = self.results - (p + 1) * tile if self.backward else p * tile
            high = min(low + tile, self.results)
            start.append(self.first + low * self.step)
            used = high > low or self.strict
            last = low + tile if self.strict else high
            stop.append(self.first + (last - 1) * self.step + self.span if used else start[-1])
        return Window(tuple(start), tuple(stop), self.width(count))

    def elements(self, count: int) -> tuple[Window, Table]:
        """The operand's elements in each window, and how far into the window the first of them lies."""
        whole, d = self.window(count), self.dilation
        if d == 1:
            return whole, (0,) * count
        start = tuple(-(-s // d) for s in whole.start)
        phase = tuple(i * d - s for i, s in zip(start, whole.start, strict=True))
        stop = tuple(max(i, -(-s // d)) for i, s in zip(start, whole.stop, strict=True))
        width = max((whole.width - 1 - p) // d + 1 for p in phase)
        return Window(start, stop, max(width, 1)), phase

    def drifts(self, count: int) -> bool:
        """Whether windows lie differently to the tiles of their positions."""
        tile = tile_of(self.size, count)
        return len({start - p * tile for p, start in enumerate(self.elements(count)[0].start)}) > 1


@dataclass(frozen=True, slots=True)
class HaloRule(Rule):
    """A rule with the reaches of its windowed dimensions; ``shapes`` and ``element_types`` of the whole operands."""

    reaches: tuple[Reach, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    element_types: tuple[str, ...] = ()

    def reach(self, operand: int, dim: int) -> Reach | None:
        return next((r for r in self.reaches if (r.operand, r.dim) == (operand, dim)), None)


def halo_rule(
    op: Any, build: RuleBuilder, reaches: Sequence[Reach], priority: Priority, combiner: str = ""
) -> HaloRule:
    """``build``'s rule with ``reaches``; called while the operands have their whole types."""
    plain = build.build(priority, combiner)
    return HaloRule(
        plain.factors,
        plain.operands,
        plain.results,
        plain.priority,
        plain.combiner,
        reaches=tuple(reaches),
        shapes=tuple(shape_of(v) for v in op.operands),
        element_types=tuple(str(v.type.element_type) for v in op.operands),
    )


def in_order(rule: HaloRule, operand: int, dims: DimAxes, mesh: PrimeMesh) -> list[int]:
    """The operand's dimensions as they are best extended: those whose windows drift last.

    Each device cuts its own part there; made last, it is made for the op alone, and not kept to be sent on.
    """

    def drifts(dim: int) -> bool:
        reach = rule.reach(operand, dim)
        return bool(dims[dim]) and reach is not None and reach.drifts(mesh.count(dims[dim]))

    return sorted(range(len(dims)), key=drifts)


def windowed_factor(build: RuleBuilder, *sizes: int, kind: Kind = Kind.PARALLEL) -> int:
    """One factor for dimensions of different sizes, each of which splits into tiles of its own."""
    return build.factor(max(sizes), kind, elastic=len(set(sizes)) > 1)


# ---------------------------------------------------------------- prices


class Way(enum.Enum):
    """How a window is brought."""

    BESIDE = "beside"
    ROUNDS = "rounds"
    GATHER = "gather"


@dataclass(frozen=True, slots=True)
class Choice:
    way: Way
    layout: Layout
    plan: Exchange
    price: int  # bytes received, latencies included from the second collective on


def choose(size: int, count: int, window: Window, cross_bytes: int) -> Choice:
    """The cheapest way to bring ``window``; an element of the dimension has ``cross_bytes``."""
    layout, plan = beside(size, count, window), plan_exchange((tiles(size, count),), window)
    priced = [
        (layout.received * cross_bytes + LATENCY_BYTES * max(0, len(layout.shipments) - 1), Way.BESIDE),
        (plan.received * cross_bytes + LATENCY_BYTES * max(0, len(plan.rounds) - 1), Way.ROUNDS),
        ((count - 1) * tile_of(size, count) * cross_bytes, Way.GATHER),
    ]
    price, way = min(priced, key=lambda one: one[0])
    return Choice(way, layout, plan, price)


def halo_bytes(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    """``extra`` of an op with a HaloRule: bytes that a device receives in halos."""
    assert isinstance(rule, HaloRule)
    total = 0
    for reach in rule.reaches:
        axes = factors.get(reach.factor, ())
        if axes:
            shape = rule.shapes[reach.operand]
            tile = mesh.tile(shape, unproject(rule, rule.operands[reach.operand], shape, factors, mesh.sizes))
            cross = prod(n for d, n in enumerate(tile) if d != reach.dim)
            cross_bytes = element_type(rule.element_types[reach.operand]).bytes(cross)
            count = mesh.count(axes)
            total += choose(reach.size, count, reach.elements(count)[0], cross_bytes).price
    return total
