"""sort, top_k: dimensions that are not ordered are parallel.

* sort: the ordered dimension is needed whole on one device; the assignment moves its split to another dimension by an
  all_to_all where one divides.
* top_k along a split dimension: each device keeps its own k best, the candidates of all are gathered, and the best
  k of these are the answer. Equal elements keep their order (the lower position first): a tile's candidates keep it,
  and tiles are gathered in order. A second look-up by the position among the candidates gives the position in the
  whole array. Padding becomes the least element there is (in the total order of floats: -NaN, all bits set), and as
  it lies after every real element it loses against an equal one.

Bytes of top_k: (n - 1) x k candidates, each an element and an i32, for each row that a device holds.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import i64_array, retype, shape_of
from shardpass.ops.local import Local
from shardpass.ops.registry import define_legacy
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.masking import identity_text
from shardpass.ops.tiles.stacking import item_bytes, result_tile, stacked


def sort(op: Any) -> Rule | None:
    shapes = [shape_of(operand) for operand in op.operands]
    along = int(op.attributes["dimension"])
    build = RuleBuilder([len(s) for s in shapes], [len(s) for s in shapes])
    for dim, size in enumerate(shapes[0]):
        factor = build.factor(size, Kind.REPLICATED if dim == along else Kind.PARALLEL)
        for index in range(len(shapes)):
            build.operand(index, dim, factor)
            build.result(index, dim, factor)
    return build.build()


def top_k(op: Any) -> Rule | None:
    """The last dimension is the ordered one."""
    shape, last = shape_of(op.operands[0]), len(shape_of(op.operands[0])) - 1
    k = shape_of(op.results[0])[last]
    build = RuleBuilder([len(shape)], [len(shape)] * 2)
    for dim, size in enumerate(shape[:last]):
        factor = build.factor(size)
        build.operand(0, dim, factor)
        for index in (0, 1):
            build.result(index, dim, factor)
    splits = 0 < k < shape[last] <= at.LARGEST and least_text(op.operands[0].type.element_type)
    build.operand(0, last, build.factor(shape[last], Kind.REDUCTION if splits else Kind.REPLICATED))
    for index in (0, 1):
        build.result(index, last, build.factor(k, Kind.REPLICATED))
    return build.build(Priority.CONTRACTION, self_completing=True, masks=True)


def least_text(element: Any) -> str:
    """The element that is below or equal to every other, as MLIR writes it; "" where it is not known."""
    if isinstance(element, ir.IntegerType):
        return str(identity_text("maximum", element)) if element.width > 1 else ""
    return {"f64": "0x" + 16 * "F", "f32": "0x" + 8 * "F", "f16": "0xFFFF", "bf16": "0xFFFF"}.get(str(element), "")


def localize_top_k(local: Local) -> list[Any] | None:
    """The op becomes the choice among the candidates."""
    op, last = local.op, len(local.operand_shapes[0]) - 1
    axes = local.operand_dims[0][last]
    if not axes:
        return None
    rows, part = local.tile(0)[:last], local.operand_tile(0)[last]
    kept = min(part, local.result_shapes[0][last])
    with local.before():
        values, places = _best(_without_padding(local, last), kept)
        places = hlo.add(places, at.spread(local.start(axes, part), shape_of(places)))
        cause = f"candidates of {op.name} over a split dimension"
        op.operands[0], places = (_side_by_side(stacked(local, v, axes, cause)) for v in (values, places))
    for index, result in enumerate(op.results):
        result.set_type(retype(result.type, local.tile(index)))
    with local.after():
        return [op.results[0], _looked_up(places, op.results[1], rows)]


def _without_padding(local: Local, last: int) -> Any:
    value, size, axes = local.op.operands[0], local.operand_shapes[0][last], local.operand_dims[0][last]
    if size % local.mesh.count(axes) == 0:
        return value
    shape = shape_of(value)
    left = hlo.subtract(at.splat(at.i32(), size), local.start(axes, shape[last]))
    real = at.compare("LT", hlo.iota(at.i32(shape), last), at.spread(left, shape))
    return hlo.select(real, value, at.splat(value.type, least_text(value.type.element_type)))


def _best(value: Any, k: int) -> tuple[Any, Any]:
    shape = (*shape_of(value)[:-1], k)
    values, places = chlo.top_k(value, k, results=[retype(value.type, shape), at.i32(shape)])
    return values, places


def _side_by_side(parts: Any) -> Any:
    """[parts, *rows, kept] -> [*rows, parts * kept]."""
    n, *rows, kept = shape_of(parts)
    order = [*range(1, len(rows) + 1), 0, len(rows) + 1]
    turned = hlo.transpose(parts, i64_array(order))
    return hlo.reshape(retype(parts.type, (*rows, n * kept)), turned)


def _looked_up(table: Any, places: Any, rows: tuple[int, ...]) -> Any:
    """``table[*row, places[*row, j]]``: a gather whose rows are batching dimensions."""
    rank = len(rows)
    batching = list(range(rank))
    numbers = hlo.GatherDimensionNumbers.get([], [rank], batching, batching, [rank], rank + 1)
    return hlo.gather(table, _as_vectors(places), numbers, i64_array([1] * (rank + 1)))


def _as_vectors(places: Any) -> Any:
    return hlo.reshape(retype(places.type, (*shape_of(places), 1)), places)


def bytes_of_candidates(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    parts = mesh.count(tuple(a for f, axes in factors.items() for a in axes if rule.factors[f].kind is Kind.REDUCTION))
    return sum(
        (parts - 1) * result_tile(rule, i, shape_of(r), factors, mesh) * item_bytes(r.type)
        for i, r in enumerate(op.results)
    )


define_legacy("stablehlo.sort", "sort", sort)
define_legacy("chlo.top_k", "sort", top_k, localize_top_k, bytes_of_candidates)
