"""reduce, with any initial value, any reducer and several operands (argmax, argmin).

Three strategies to reduce a split dimension; examples with ``f32[8]`` over x=4, so tiles of 2 elements:

1. JOINED: a plain combiner (add, maximum, ...) of one operand. Each device reduces its part and an all_reduce, which
   the partitioner adds, joins the parts: max(max(a0, a1), max(a2, a3), ...). An initial value that is not the
   combiner's identity is combined on part 0 alone.
2. GATHERED: any other reducer (argmax; and/or of integers, for which there is no all_reduce). Each device reduces its
   part, the parts are gathered (4 pairs of a value and its position, for argmax), and reduced once more, with the
   initial value. A part must take in neither the initial value nor padding; so the local reducer gets one more operand,
   a flag that says whether there is anything yet:

       (a, has_a) o (b, has_b) = (has_a ? (has_b ? reducer(a, b) : a) : b, has_a or has_b)

   It is associative where the reducer is, and (initial value, false) is its identity whatever the initial value.
   Parts that are all padding are the last ones, and are cut off.
3. Needed whole: where the order of elements would change. Splitting keeps the order along one dimension alone, so of
   several reduced dimensions only the first (longer than 1) is split, unless the reducer is known to commute.

Communication volume of strategy 2: each device receives the other parts of each result, (n - 1) x the result's tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import ElementType, element_type
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import i64_array, ints, operation, shape_of
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.reducers import can_combine, combiner_of, is_identity
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.flagged_reduce import flagged_reduce
from shardpass.ops.tiles.masking import identity_text, real
from shardpass.ops.tiles.stacking import stacked, stacking

# Results of these depend on how elements are grouped, so they are computed as one device would.
NOT_ASSOCIATIVE = ("subtract", "divide", "remainder", "power", "atan2", "shift_left", "shift_right_logical")


@dataclass(frozen=True)
class JoinedPlan(LocalPlan):
    """The plan of strategy 1. ``partial``: the axes over which results are partial."""

    partial: Axes = ()


@dataclass(frozen=True, eq=False)
class JoinedReduce(OpModel[JoinedPlan]):
    rule: Rule

    def plan(self, split: Split) -> JoinedPlan:
        return JoinedPlan(split, partial=partial_axes(self.rule, split.factors))

    def emit(self, plan: JoinedPlan, site: Site) -> Sequence[Any]:
        """Build strategy 1, with the initial value of the op: reductions from different values share a model."""
        if not plan.partial or is_identity(site.op.operands[1], self.rule.combiner):
            return site.keep()
        return [self._started_once(plan.partial, site)]

    def _started_once(self, partial: Axes, site: Site) -> Any:
        """Build the partial result, combined with the initial value on the devices of part 0 alone.

        It is combined after the reduction, which starts from the identity: XLA takes a reduction of one element for
        that element, whatever it starts from.
        """
        op, name = site.op, self.rule.combiner
        init, kind = op.operands[1], site.tile_type(0)
        text = at.nothing_text(kind.element_type) if name == "add" else identity_text(name, kind.element_type)
        with site.before():
            neutral = at.splat(init.type, str(text))
            first = at.compare("EQ", device_value(site.split.mesh.index(partial)), at.splat(at.i32(), 0))
            start = hlo.select(first, init, neutral)
        op.operands[1] = neutral
        (result,) = site.keep()
        with site.after():
            operands = [at.spread(start, kind.shape), result]
            return ir.Operation.create(f"stablehlo.{name}", results=[kind], operands=operands).results[0]


@dataclass(frozen=True)
class GatheredPlan(LocalPlan):
    """The plan of strategy 2. Per split reduced dimension: index in ``dims``, parts in ``grid``, and ``filled`` parts.

    A part is filled unless it is all padding. ``collectives`` has one all_gather for each result.
    """

    dims: Shape = ()
    grid: Shape = ()
    filled: Shape = ()


@dataclass(frozen=True, eq=False)
class GatheredReduce(OpModel[GatheredPlan]):
    """A reduction of strategy 2. ``reduced``: the reduced dimensions; ``elements``: the operands' types."""

    rule: Rule
    reduced: Shape
    elements: tuple[ElementType, ...]

    def plan(self, split: Split) -> GatheredPlan:
        shape, tile, axes = split.operand_shapes[0], split.operand_tile(0), split.operands[0]
        dims = tuple(d for d in sorted(self.reduced) if axes[d])
        if not dims:
            return GatheredPlan(split)
        over = tuple(a for d in dims for a in axes[d])
        gathers = tuple(
            stacking(
                split.result_tile(i), element, over, split.mesh, "parts of stablehlo.reduce over a split dimension"
            )
            for i, element in enumerate(self.elements)
        )
        grid = tuple(split.mesh.count(axes[d]) for d in dims)
        filled = tuple(max(1, -(-shape[d] // max(1, tile[d]))) for d in dims)
        return GatheredPlan(split, gathers, dims, grid, filled)

    def emit(self, plan: GatheredPlan, site: Site) -> Sequence[Any]:
        """Build the local reduction and the all_gathers; the op itself becomes the reduction of the parts."""
        op = site.op
        if not plan.dims:
            return site.keep()
        kinds = [site.tile_type(index) for index in range(len(op.results))]
        with site.before():
            partial = flagged_reduce(op, kinds, _present(plan, site))
            for index, (part, gather) in enumerate(zip(partial, plan.collectives, strict=True)):
                op.operands[index] = _arranged(stacked(site, part, gather), plan)
        op.attributes["dimensions"] = i64_array(range(len(plan.dims)))
        return site.keep()


def _arranged(parts: Any, plan: GatheredPlan) -> Any:
    """Reshape [parts, *rest] to [*grid, *rest], without the parts that are all padding."""
    rest = shape_of(parts)[1:]
    if len(plan.grid) > 1:
        kind = ir.RankedTensorType.get([*plan.grid, *rest], parts.type.element_type)
        parts = hlo.reshape(kind, parts)
    if plan.filled == plan.grid:
        return parts
    high = [*plan.filled, *rest]
    return hlo.slice(parts, i64_array([0] * len(high)), i64_array(high), i64_array([1] * len(high)))


def _present(plan: GatheredPlan, site: Site) -> Any:
    """Build an i1 of the operand's tile: whether an element belongs to the whole array rather than to padding."""
    split = plan.split
    shape, tile, axes = split.operand_shapes[0], split.operand_tile(0), split.operands[0]
    uneven = [d for d in plan.dims if shape[d] % split.mesh.count(axes[d])]
    inside = at.every(real(tile, d, shape[d], axes[d], split.mesh) for d in uneven)
    return at.splat(at.i1(tile), "true") if inside is None else inside


def reduce(op: Any) -> OpModel[Any]:
    count = len(op.results)
    elements = tuple(str(r.type.element_type) for r in op.results)
    name = combiner_of(op) if count == 1 else ""
    joins = can_combine(name, elements[0]) and identity_text(name, op.operands[0].type.element_type) is not None
    regroups = joins or _can_regroup(op)
    return _model(shape_of(op.operands[0]), ints(op.attributes["dimensions"]), elements, name, joins, regroups)


@lru_cache(maxsize=4096)
def _model(
    shape: Shape, reduced: Shape, elements: tuple[str, ...], name: str, joins: bool, regroups: bool
) -> OpModel[Any]:
    """Build the model. ``name``: the combiner or ""; ``joins``, ``regroups``: strategy 1, 2 applies."""
    count = len(elements)
    splittable = {d for d in reduced if shape[d]} if name else set(_first_long(shape, reduced))
    build = RuleBuilder([len(shape)] * count + [0] * count, [len(shape) - len(reduced)] * count)
    out = 0
    for dim, size in enumerate(shape):
        gone = dim in reduced
        splits = regroups and dim in splittable
        kind = Kind.PARALLEL if not gone else Kind.REDUCTION if splits else Kind.REPLICATED
        factor = build.factor(size, kind)
        for index in range(count):
            build.operand(index, dim, factor)
            if not gone:
                build.result(index, out, factor)
        out += not gone
    if joins:
        return JoinedReduce(build.build(Priority.CONTRACTION, name))
    rule = build.build(Priority.CONTRACTION, self_completing=True, masks=True)
    return GatheredReduce(rule, reduced, tuple(map(element_type, elements)))


def _first_long(shape: Shape, reduced: Shape) -> list[int]:
    return [d for d in sorted(reduced) if shape[d] > 1][:1]


def _can_regroup(op: Any) -> bool:
    """Return whether the reducer may be applied to parts: its ops have no regions and may be associative."""
    body = [operation(inner) for inner in op.regions[0].blocks[0].operations]
    return not any(len(inner.regions) for inner in body) and not (
        len(body) == 2 and body[0].name.removeprefix("stablehlo.") in NOT_ASSOCIATIVE
    )


define(
    "stablehlo.reduce",
    reduce,
    note="dimensions that remain; reduced dimensions if the body is one binary op, such as add (partial results); "
    "with any other body the first reduced dimension, whose partial results are gathered and reduced again",
    sends="if the body is not one binary op: the partial results, `all_gather`",
)
