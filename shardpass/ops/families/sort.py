"""sort, top_k: dimensions that are not ordered are parallel.

1. sort: the ordered dimension is needed whole on one device; the assignment moves its split to another dimension by an
   all_to_all where one divides.
2. top_k along a split dimension: each device keeps its own k best, the candidates of all are gathered, and the best
   k of these are the answer. Of [3, 9 | 4, 1 | 5, 9 | 2, 6] over x=4 with k = 1 the candidates are 9, 4, 9, 6 at
   the positions 1, 2, 5, 7, and the answer is the first 9, at position 1. Equal elements keep their order (the lower
   position first): a tile's candidates keep it, and tiles are gathered in order. A second look-up by the position among
   the candidates gives the position in the whole array. Padding becomes the least element there is (in the total order
   of floats: -NaN, all bits set), and as it lies after every real element it loses against an equal one.

The positions are i32 by the definition of top_k, so an ordered dimension longer than they count is refused.

Bytes of top_k: (n - 1) x min(k, tile) candidates, each an element and an i32, for each row that a device has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import ElementType, element_type
from shardpass.ir.integers import check_range
from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.model import LocalPlan, OpModel, Pointwise, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.masking import identity_text, real
from shardpass.ops.tiles.stacking import stacked, stacking

CAUSE = "candidates of chlo.top_k over a split dimension"


def sort(op: Any) -> OpModel[Any]:
    return _sort_model(shape_of(op.operands[0]), len(op.operands), int(op.attributes["dimension"]))


@lru_cache(maxsize=1024)
def _sort_model(shape: Shape, count: int, along: int) -> Pointwise:
    build = RuleBuilder([len(shape)] * count, [len(shape)] * count)
    for dim, size in enumerate(shape):
        factor = build.factor(size, Kind.REPLICATED if dim == along else Kind.PARALLEL)
        build.along(dim, factor, count, count)
    return Pointwise(build.build())


@dataclass(frozen=True)
class TopKPlan(LocalPlan):
    """The plan of a top_k: ``over`` splits the ordered dimension; a device sends ``kept`` candidates of each row."""

    over: Axes = ()
    kept: int = 0


@dataclass(frozen=True, eq=False)
class TopK(OpModel[TopKPlan]):
    rule: Rule
    element: ElementType

    def plan(self, split: Split) -> TopKPlan:
        axes = split.operands[0][-1]
        if not axes:
            return TopKPlan(split)
        kept = min(split.operand_tile(0)[-1], split.result_shapes[0][-1])
        part = (*split.result_tile(0)[:-1], kept)
        gathers = (stacking(part, element, axes, split.mesh, CAUSE) for element in (self.element, element_type("i32")))
        return TopKPlan(split, tuple(gathers), axes, kept)

    def emit(self, plan: TopKPlan, site: Site) -> Sequence[Any]:
        """Select the best k among the gathered candidates."""
        op, split = site.op, plan.split
        check_range(split.operand_shapes[0][-1] - 1, op.results[1].type.element_type)
        if not plan.over:
            return site.keep()
        with site.before():
            values, places = _best(_without_padding(plan.over, site), plan.kept)
            places = self._in_array(places, plan, site)
            op.operands[0], places = (
                _side_by_side(stacked(site, v, gather))
                for v, gather in zip((values, places), plan.collectives, strict=True)
            )
        values, chosen = site.keep()
        with site.after():
            return [values, _looked_up(places, chosen, split.result_tile(0)[:-1])]

    @staticmethod
    def _in_array(places: Any, plan: TopKPlan, site: Site) -> Any:
        """Convert positions in the tile to positions in the array. Only positions of padding may overflow."""
        tile = site.split.operand_tile(0)[-1]
        wide = at.numbers(site.split.mesh.count(plan.over) * tile)
        start = site.start(plan.over, tile, wide)
        return at.converted(hlo.add(at.converted(places, wide), at.spread(start, shape_of(places))), places.type)


def _without_padding(axes: Axes, site: Site) -> Any:
    value, size, mesh = site.op.operands[0], site.split.operand_shapes[0][-1], site.split.mesh
    if size % mesh.count(axes) == 0:
        return value
    shape = shape_of(value)
    inside = real(shape, len(shape) - 1, size, axes, mesh)
    return hlo.select(inside, value, at.splat(value.type, least_text(value.type.element_type)))


def _best(value: Any, k: int) -> tuple[Any, Any]:
    shape = (*shape_of(value)[:-1], k)
    values, places = chlo.top_k(value, k, results=[retype(value.type, shape), at.i32(shape)])
    return values, places


def _side_by_side(parts: Any) -> Any:
    """Reshape [parts, *rows, kept] to [*rows, parts * kept]."""
    n, *rows, kept = shape_of(parts)
    order = [*range(1, len(rows) + 1), 0, len(rows) + 1]
    turned = hlo.transpose(parts, i64_array(order))
    return hlo.reshape(retype(parts.type, (*rows, n * kept)), turned)


def _looked_up(table: Any, places: Any, rows: Shape) -> Any:
    """Build ``table[*row, places[*row, j]]``, a gather whose rows are batching dimensions."""
    rank = len(rows)
    batching = list(range(rank))
    numbers = hlo.GatherDimensionNumbers.get([], [rank], batching, batching, [rank], rank + 1)
    return hlo.gather(table, _as_vectors(places), numbers, i64_array([1] * (rank + 1)))


def _as_vectors(places: Any) -> Any:
    return hlo.reshape(retype(places.type, (*shape_of(places), 1)), places)


def top_k(op: Any) -> OpModel[Any]:
    element = op.operands[0].type.element_type
    k = shape_of(op.results[0])[-1]
    return _top_k_model(shape_of(op.operands[0]), k, str(element), bool(least_text(element)))


@lru_cache(maxsize=1024)
def _top_k_model(shape: Shape, k: int, element: str, has_least: bool) -> TopK:
    """Build the model; the last dimension is ordered. ``has_least``: the type has a least element as padding."""
    last = len(shape) - 1
    build = RuleBuilder([len(shape)], [len(shape)] * 2)
    for dim, size in enumerate(shape[:last]):
        build.along(dim, build.factor(size), results=2)
    splits = 0 < k < shape[last] and has_least and 0 not in shape
    build.operand(0, last, build.factor(shape[last], Kind.REDUCTION if splits else Kind.REPLICATED))
    for index in (0, 1):
        build.result(index, last, build.factor(k, Kind.REPLICATED))
    return TopK(build.build(Priority.CONTRACTION, self_completing=True, masks=True), element_type(element))


def least_text(element: Any) -> str:
    """Return the least element of the type, as MLIR writes it; "" for types without a known least element."""
    if isinstance(element, ir.IntegerType):
        return str(identity_text("maximum", element)) if element.width > 1 else ""
    return {"f64": "0x" + 16 * "F", "f32": "0x" + 8 * "F", "f16": "0xFFFF", "bf16": "0xFFFF"}.get(str(element), "")


define("stablehlo.sort", sort, note="every dimension but the sorted one")
define(
    "chlo.top_k",
    top_k,
    note="every dimension; of a split last dimension, each tile contributes its largest elements",
    sends="candidates and their positions, `all_gather`",
)
