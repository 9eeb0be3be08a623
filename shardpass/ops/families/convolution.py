"""convolution: batch, features and groups as in a contraction; a spatial dimension by halo.

A spatial dimension is one of

1. untouched (window of 1, no stride, padding or dilation): one plain factor;
2. slid over: the input and the result split alike, each device gets the input that its results' windows span;
3. contracted: where the kernel is longer than the result (the gradient with respect to a kernel), the kernel and the
   input are split and each device sums over its part of the kernel.

Group counts are a factor of their own, the major part of the dimensions that are in groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import dense_i64, i64_array, ints, shape_of
from shardpass.ops.families.reduce_window import padding_of
from shardpass.ops.halo.reach import HaloRule, Reach, halo_bytes, halo_rule, in_order, windowed_factor
from shardpass.ops.halo.windows import Halos
from shardpass.ops.local import Local
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles.boxes import zeros

LHS, RHS = 0, 1


@dataclass(frozen=True, slots=True)
class Spatial:
    """One spatial dimension: where it lies in input, kernel, result, and how the window moves along it."""

    places: tuple[int, int, int]
    stride: int
    low: int
    high: int
    input_dilation: int
    kernel_dilation: int
    turned: bool

    @property
    def plain(self) -> bool:
        return (self.stride, self.low, self.high, self.input_dilation) == (1, 0, 0, 1)


def _row(op: Any, name: str, count: int, default: int) -> Sequence[int]:
    return ints(op.attributes[name]) if name in op.attributes else [default] * count


def spatial_dims(op: Any, numbers: Any) -> list[Spatial]:
    places = list(
        zip(
            ints(numbers.input_spatial_dimensions),
            ints(numbers.kernel_spatial_dimensions),
            ints(numbers.output_spatial_dimensions),
            strict=True,
        )
    )
    n = len(places)
    rows = zip(
        places,
        _row(op, "window_strides", n, 1),
        padding_of(op, n),
        _row(op, "lhs_dilation", n, 1),
        _row(op, "rhs_dilation", n, 1),
        _row(op, "window_reversal", n, 0),
        strict=True,
    )
    return [Spatial(at, stride, low, high, ld, rd, bool(rev)) for at, stride, (low, high), ld, rd, rev in rows]


def _count(op: Any, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


def convolution(op: Any) -> Rule | None:
    numbers = hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    lhs, rhs, out = shape_of(op.operands[LHS]), shape_of(op.operands[RHS]), shape_of(op.results[0])
    build = RuleBuilder([len(lhs), len(rhs)], [len(out)])
    in_groups, batch_groups = _count(op, "feature_group_count"), _count(op, "batch_group_count")
    batch, feature = numbers.input_batch_dimension, numbers.input_feature_dimension
    made = numbers.kernel_output_feature_dimension
    if in_groups > 1 or batch_groups > 1:
        group = build.factor(max(in_groups, batch_groups))  # factor 0: see localize_convolution
        build.operand(LHS, feature if in_groups > 1 else batch, group)
        build.operand(RHS, made, group)
        build.result(0, numbers.output_feature_dimension, group)

    def share(size: int, kind: Kind, *places: tuple[int, int]) -> None:
        """A factor on (0: input, 1: kernel, 2: result; dimension); beside groups one of size 1 says nothing."""
        if size > 1 or not (in_groups > 1 or batch_groups > 1):
            factor = build.factor(size, kind)
            for side, dim in places:
                (build.result(0, dim, factor) if side == 2 else build.operand(side, dim, factor))

    share(lhs[batch] // batch_groups, Kind.PARALLEL, (LHS, batch), (2, numbers.output_batch_dimension))
    made_of_group = rhs[made] // max(in_groups, batch_groups)
    share(made_of_group, Kind.PARALLEL, (RHS, made), (2, numbers.output_feature_dimension))
    joined = numbers.kernel_input_feature_dimension
    share(rhs[joined], Kind.REDUCTION, (LHS, feature), (RHS, joined))
    reaches = []
    for about in spatial_dims(op, numbers):
        reach = _spatial(build, about, lhs, rhs, out)
        if reach is not None:
            reaches.append(reach)
    return halo_rule(op, build, reaches, Priority.CONTRACTION, "add")


def _spatial(
    build: RuleBuilder, about: Spatial, lhs: Sequence[int], rhs: Sequence[int], out: Sequence[int]
) -> Reach | None:
    i, k, o = about.places
    size, kernel, results = lhs[i], rhs[k], out[o]
    if kernel > results:
        factor = windowed_factor(build, size, kernel, kind=Kind.REDUCTION)
        build.operand(LHS, i, factor)
        build.operand(RHS, k, factor)
        build.result(0, o, build.factor(results, Kind.REPLICATED))
        span = (results - 1) * about.stride + 1
        first, step, dilation = -about.low, about.kernel_dilation, about.input_dilation
        return Reach(LHS, i, factor, size, kernel, first, step, span, dilation, about.turned, strict=True)
    factor = windowed_factor(build, size, results)
    build.operand(LHS, i, factor)
    build.operand(RHS, k, build.factor(kernel, Kind.REPLICATED))
    build.result(0, o, factor)
    if kernel == 1 and about.plain:
        return None
    span = (kernel - 1) * about.kernel_dilation + 1
    return Reach(LHS, i, factor, size, results, -about.low, about.stride, span, about.input_dilation)


def localize_convolution(local: Local) -> None:
    """Inputs get their halos; padding and dilation become those of the device's window; groups those of its part."""
    op, rule = local.op, local.rule
    assert isinstance(rule, HaloRule)
    numbers = hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    dims = spatial_dims(op, numbers)
    padding = [(about.low, about.high) for about in dims]
    dilation = [about.input_dilation for about in dims]
    value = op.operands[LHS]
    numbered = {about.places[0]: index for index, about in enumerate(dims)}
    for dim in in_order(rule, LHS, local.operand_dims[LHS], local.mesh):
        axes, reach = local.operand_dims[LHS][dim], rule.reach(LHS, dim)
        if axes and reach is not None:
            index, halos = numbered[dim], Halos(local, dim, axes, "windows across tiles")
            with local.before():
                value, padding[index], dilation[index] = halos.slide(value, reach, zeros(value.type.element_type))
    with local.before():
        value = _cut(value, dims, padding, dilation)
    op.operands[LHS] = value
    if dims:
        _say(op, padding, dilation)
    for name in ("feature_group_count", "batch_group_count"):
        groups = _count(op, name)
        if groups > 1:
            parts = local.mesh.count(local.factors.get(0, ()))
            op.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), -(-groups // parts))


def cut_first(op: Any) -> list[Any] | None:
    """Negative padding as a slice of the input. None where there is none.

    XLA's CPU backend (0.10.2 and 0.12) reads past the input where one side is padded and the other cut.
    """
    dims = spatial_dims(op, hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"]))
    padding, dilation = [(about.low, about.high) for about in dims], [about.input_dilation for about in dims]
    value = _cut(op.operands[LHS], dims, padding, dilation)
    if value == op.operands[LHS]:
        return None
    made = op.clone()
    made.operands[LHS] = value
    _say(made, padding, dilation)
    return list(made.results)


def _cut(value: Any, dims: Sequence[Spatial], padding: list[tuple[int, int]], dilation: list[int]) -> Any:
    """The input without what negative padding takes; ``padding`` and ``dilation`` become what is left of them."""
    rank = len(shape_of(value))
    low, high, interior = [0] * rank, [0] * rank, [0] * rank
    for index, about in enumerate(dims):
        if min(padding[index]) < 0:
            at, (before, after) = about.places[0], padding[index]
            low[at], high[at], interior[at] = min(before, 0), min(after, 0), dilation[index] - 1
            padding[index], dilation[index] = (max(before, 0), max(after, 0)), 1
    if not any((*low, *high)):
        return value
    return hlo.pad(value, zeros(value.type.element_type), low, high, interior)


def _say(op: Any, padding: Sequence[tuple[int, int]], dilation: Sequence[int]) -> None:
    op.attributes["padding"] = dense_i64(padding)
    op.attributes["lhs_dilation"] = i64_array(dilation)


define(
    "stablehlo.convolution",
    "convolution",
    convolution,
    localize_convolution,
    halo_bytes,
    expand=cut_first,
    note="batch, groups, input features (partial sums), output features, spatial dimensions (also strided, dilated and "
    "transposed); a spatial dimension of the kernel if it is longer than that of the result (partial sums)",
)
