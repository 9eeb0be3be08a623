"""constant and iota, which are built as tiles for any split.

1. A splat constant is the same splat on every tile. Any other constant stays whole on every device, and is sliced where
   a tile is needed.
2. iota along a split dimension counts from the device's own start: over x=4, ``iota : i32[8]`` is [4, 5] on device 2.

Programs contain very many of both, so a model is shared by all constants of one shape, and nothing passes through text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.integers import numbers
from shardpass.ir.tensors import retype, shape_of, splat, splat_text
from shardpass.ops.model import LocalPlan, OpModel, Pointwise, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder


@lru_cache(maxsize=4096)
def _rule(shape: Shape, kind: Kind) -> Rule:
    build = RuleBuilder([], [len(shape)])
    for dim, size in enumerate(shape):
        build.result(0, dim, build.factor(size, kind))
    return build.build(Priority.EXPANSION)


@dataclass(frozen=True, eq=False)
class Constant(Pointwise):
    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        """Shrink the constant to its tile; the rule lets only splat constants be split."""
        if not any(plan.split.results[0]):
            return site.keep()
        site.discard()
        with site.before():
            return [_tile(site.op, site.tile_type(0))]


def _tile(op: Any, kind: Any) -> Any:
    """Build the splat constant ``op`` with the type ``kind``."""
    value = _elements(op)
    if value is None:
        return splat(kind, str(splat_text(op)))
    attribute = ir.DenseElementsAttr.get_splat(kind, value.get_splat_value())
    return ir.Operation.create("stablehlo.constant", results=[kind], attributes={"value": attribute}).results[0]


def _elements(op: Any) -> Any:
    """Read the constant's elements; None for complex types, which the bindings of jaxlib 0.10 cannot return."""
    try:
        return op.attributes["value"]
    except TypeError:
        return None


def constant(op: Any) -> OpModel[Any]:
    value = _elements(op)
    one_number = splat_text(op) is not None if value is None else bool(getattr(value, "is_splat", False))
    return _constant_model(shape_of(op.results[0]), one_number)


@lru_cache(maxsize=4096)
def _constant_model(shape: Shape, one_number: bool) -> Constant:
    return Constant(_rule(shape, Kind.PARALLEL if one_number else Kind.REPLICATED))


@dataclass(frozen=True)
class IotaPlan(LocalPlan):
    """A device's part of an iota. ``axes`` split the dimension that is counted along; tiles have ``tile`` elements."""

    axes: Axes = ()
    tile: int = 0


@dataclass(frozen=True, eq=False)
class Iota(OpModel[IotaPlan]):
    rule: Rule
    along: int

    def plan(self, split: Split) -> IotaPlan:
        return IotaPlan(split, axes=split.results[0][self.along], tile=split.result_tile(0)[self.along])

    def emit(self, plan: IotaPlan, site: Site) -> Sequence[Any]:
        """Count in integers and convert at the end, as a narrow float would be rounded twice."""
        op = site.op
        if not plan.axes:
            return site.keep()
        kind = site.tile_type(0)
        counts = numbers(site.split.mesh.count(plan.axes) * plan.tile, kind.shape)
        op.results[0].set_type(counts)
        with site.after():
            start = site.start(plan.axes, plan.tile, retype(counts, ()))
            total = hlo.add(op.results[0], hlo.broadcast_in_dim(counts, start, ir.DenseI64ArrayAttr.get([])))
            return [hlo.convert(kind, total) if kind != counts else total]


def iota(op: Any) -> OpModel[Any]:
    return _iota_model(shape_of(op.results[0]), int(op.attributes["iota_dimension"]))


@lru_cache(maxsize=4096)
def _iota_model(shape: Shape, along: int) -> Iota:
    return Iota(_rule(shape, Kind.PARALLEL), along)


define(
    "stablehlo.constant",
    constant,
    note="every dimension of a splat; of any other constant every device keeps all elements and slices out its tile",
    cheap=True,
)
define("stablehlo.iota", iota, note="every dimension", cheap=True)
