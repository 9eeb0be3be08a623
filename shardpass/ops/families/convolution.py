"""convolution: batch, features and groups as in a contraction; a spatial dimension by halo.

A spatial dimension is one of

1. untouched (window of 1, no stride, padding or dilation): one plain factor;
2. slid over: the input and the result split alike, and each device gets the input that the windows of its results
   span. A kernel of 3 over 16 elements, padded by 1 at both sides, on 4 devices: device 1 has the results 4 to 7, takes
   the elements 3 and 8 from its neighbours, and its own convolution pads nothing;
3. contracted: where the kernel is longer than the result (the gradient with respect to a kernel), the kernel and the
   input are split and each device sums over its part of the kernel. 16 elements, a kernel of 14 on 2 devices, and 3
   results: device 1 has the kernel's places 7 to 13 and needs the elements 7 to 15; the sums of both devices are added.

Group counts are a factor of their own, the major part of the dimensions that are in groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import dense_i64, i64_array, ints, ints_or, shape_of
from shardpass.ops.families.reduce_window import padding_of
from shardpass.ops.halo.plans import Line, WindowSlide, plan_slide
from shardpass.ops.halo.reach import Reach, split_reaches, windowed_factor
from shardpass.ops.halo.trim import NegativePadding, trimmed
from shardpass.ops.halo.windows import extend, fitted
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder
from shardpass.ops.tiles.boxes import zeros

LHS, RHS = 0, 1
GROUP = 0  # the factor of the groups, where there are any

Padding = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Spatial:
    """One spatial dimension: its place in input, kernel and result, and how the window moves along it."""

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


@dataclass(frozen=True, slots=True)
class ConvolutionDims:
    """The dimensions of input, kernel and result, and the group counts (1: no groups)."""

    batch: int
    feature: int
    kernel_in: int
    kernel_out: int
    result_batch: int
    result_feature: int
    spatial: tuple[Spatial, ...]
    feature_groups: int
    batch_groups: int


@dataclass(frozen=True, kw_only=True)
class ConvolutionPlan(LocalPlan):
    """A plan: halos of the input (``slides``), a ``trim``, and the op's padding, dilation and group counts on tiles."""

    slides: tuple[WindowSlide, ...]
    trim: NegativePadding
    groups: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class ConvolutionOp(OpModel[ConvolutionPlan]):
    rule: Rule
    numbers: ConvolutionDims
    reaches: tuple[Reach, ...]
    element: str

    def plan(self, split: Split) -> ConvolutionPlan:
        """Plan the halos of the input, the padding and dilation of its window, and the group counts of its part."""
        dims, slides, shape = self.numbers.spatial, [], list(split.operand_tile(LHS))
        padding, dilation = [(about.low, about.high) for about in dims], [about.input_dilation for about in dims]
        numbered = {about.places[LHS]: index for index, about in enumerate(dims)}
        for reach in split_reaches(self.reaches, LHS, split):
            line = Line.of(split, reach.dim, split.operands[LHS][reach.dim], "windows across tiles")
            slide = plan_slide(line, shape, element_type(self.element), reach)
            shape[reach.dim] = slide.halo.window.width
            padding[numbered[reach.dim]], dilation[numbered[reach.dim]] = slide.padding, slide.dilation
            slides.append(slide)
        named = (
            ("feature_group_count", self.numbers.feature_groups),
            ("batch_group_count", self.numbers.batch_groups),
        )
        parts = split.mesh.count(split.factors[GROUP])
        return ConvolutionPlan(
            split,
            tuple(c for one in slides for c in one.halo.collectives),
            slides=tuple(slides),
            trim=trimmed(shape, [about.places[LHS] for about in dims], padding, dilation),
            groups=tuple((name, -(-groups // parts)) for name, groups in named if groups > 1),
        )

    def emit(self, plan: ConvolutionPlan, site: Site) -> Sequence[Any]:
        op, value = site.op, site.op.operands[LHS]
        with site.before():
            zero = zeros(value.type.element_type)
            for one in plan.slides:
                value = extend(site, value, one.halo, zero)
            for one in plan.slides:
                value = fitted(site, value, one, zero)
            op.operands[LHS] = plan.trim.of(value)
        if self.numbers.spatial:
            _write(op, plan.trim)
        for name, groups in plan.groups:
            op.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), groups)
        return site.keep()


def _write(op: Any, trim: NegativePadding) -> None:
    op.attributes["padding"] = dense_i64(trim.padding)
    op.attributes["lhs_dilation"] = i64_array(trim.dilation)


def cut_first(op: Any) -> list[Any] | None:
    """Rewrite negative padding as a slice of the input. None where no padding is negative.

    XLA's CPU backend (0.10.2 and 0.12) reads past the input where one side is padded and the other cut.
    """
    dims = spatial_dims(op, hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"]))
    padding, dilation = [(about.low, about.high) for about in dims], [about.input_dilation for about in dims]
    trim = trimmed(shape_of(op.operands[LHS]), [about.places[LHS] for about in dims], padding, dilation)
    value = trim.of(op.operands[LHS])
    if value == op.operands[LHS]:
        return None
    made = op.clone()
    made.operands[LHS] = value
    _write(made, trim)
    return list(made.results)


# ---------------------------------------------------------------- read


def spatial_dims(op: Any, numbers: Any) -> tuple[Spatial, ...]:
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
        ints_or(op, "window_strides", n),
        padding_of(op, n),
        ints_or(op, "lhs_dilation", n),
        ints_or(op, "rhs_dilation", n),
        ints_or(op, "window_reversal", n, 0),
        strict=True,
    )
    return tuple(Spatial(at, stride, low, high, ld, rd, bool(rev)) for at, stride, (low, high), ld, rd, rev in rows)


def _count(op: Any, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


def numbers_of(op: Any) -> ConvolutionDims:
    """Read the op's dimension numbers and group counts."""
    numbers = hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    return ConvolutionDims(
        numbers.input_batch_dimension,
        numbers.input_feature_dimension,
        numbers.kernel_input_feature_dimension,
        numbers.kernel_output_feature_dimension,
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        spatial_dims(op, numbers),
        _count(op, "feature_group_count"),
        _count(op, "batch_group_count"),
    )


def convolution(op: Any) -> OpModel[Any]:
    lhs, rhs, out = shape_of(op.operands[LHS]), shape_of(op.operands[RHS]), shape_of(op.results[0])
    return _convolution(lhs, rhs, out, numbers_of(op), str(op.operands[LHS].type.element_type))


@lru_cache(maxsize=4096)
def _convolution(lhs: Shape, rhs: Shape, out: Shape, numbers: ConvolutionDims, element: str) -> ConvolutionOp:
    build = RuleBuilder([len(lhs), len(rhs)], [len(out)])
    in_groups = numbers.feature_groups > 1
    groups = max(numbers.feature_groups, numbers.batch_groups)
    if groups > 1:
        group = build.factor(groups)  # the first one: GROUP
        build.operand(LHS, numbers.feature if in_groups else numbers.batch, group)
        build.operand(RHS, numbers.kernel_out, group)
        build.result(0, numbers.result_feature, group)

    def share(size: int, kind: Kind, *places: tuple[int, int]) -> None:
        """Add a factor shared by ``places``, pairs of a value (0 input, 1 kernel, 2 result) and a dimension.

        Adds no factor of size 1 where there are groups."""
        if size > 1 or groups == 1:
            factor = build.factor(size, kind)
            for side, dim in places:
                (build.result(0, dim, factor) if side == 2 else build.operand(side, dim, factor))

    share(lhs[numbers.batch] // numbers.batch_groups, Kind.PARALLEL, (LHS, numbers.batch), (2, numbers.result_batch))
    made_of_group = rhs[numbers.kernel_out] // groups
    share(made_of_group, Kind.PARALLEL, (RHS, numbers.kernel_out), (2, numbers.result_feature))
    share(rhs[numbers.kernel_in], Kind.REDUCTION, (LHS, numbers.feature), (RHS, numbers.kernel_in))
    reaches = []
    for about in numbers.spatial:
        reach = _spatial(build, about, lhs, rhs, out)
        if reach is not None:
            reaches.append(reach)
    return ConvolutionOp(build.build(Priority.CONTRACTION, "add"), numbers, tuple(reaches), element)


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
        return Reach(LHS, i, size, kernel, first, step, span, dilation, about.turned, strict=True)
    factor = windowed_factor(build, size, results)
    build.operand(LHS, i, factor)
    build.operand(RHS, k, build.factor(kernel, Kind.REPLICATED))
    build.result(0, o, factor)
    if kernel == 1 and about.plain:
        return None
    span = (kernel - 1) * about.kernel_dilation + 1
    return Reach(LHS, i, size, results, -about.low, about.stride, span, about.input_dilation)


define(
    "stablehlo.convolution",
    convolution,
    expand=cut_first,
    note="batch, groups, input features (partial sums), output features, spatial dimensions (also strided, dilated and "
    "transposed); a spatial dimension of the kernel if it is longer than that of the result (partial sums)",
    sends="halos",
)
