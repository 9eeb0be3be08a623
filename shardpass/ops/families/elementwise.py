"""Elementwise ops: result element i needs operand elements i alone, so any split passes through."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shardpass.ir.tensors import is_ranked, shape_of
from shardpass.ops.model import OpModel, Pointwise, Shape, Shapes
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, RuleBuilder

STABLEHLO = """
    abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential
    exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or
    popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left
    shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor
"""

QUANTIZED = "uniform_dequantize uniform_quantize"

CHLO = """
    _asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj constant_like cosh digamma erf erf_inv erfc
    is_inf is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta
"""

MHLO = "acos acosh asin asinh atanh copy cosh erf sinh"  # what StableHLO lacks, and XLA's own tools write


def pointwise(op: Any) -> OpModel[Any] | None:
    """Gives each dimension one parallel factor; scalars beside larger operands (select, clamp) map to none."""
    results = list(op.results)
    if len(results) != 1 or not is_ranked(results[0]):
        return None
    return _pointwise(shape_of(results[0]), tuple(shape_of(operand) for operand in op.operands))


@lru_cache(maxsize=4096)
def _pointwise(shape: Shape, operands: Shapes) -> Pointwise:
    build = RuleBuilder([len(s) for s in operands], [len(shape)])
    for dim, size in enumerate(shape):
        factor = build.factor(size)
        build.result(0, dim, factor)
        for index, other in enumerate(operands):
            if other == shape:
                build.operand(index, dim, factor)
    return Pointwise(build.build())


def bitcast_convert(op: Any) -> OpModel[Any]:
    """Reads an elementwise op; where the width changes, the extra minor dimension holds the parts of one element."""
    return _bitcast_convert(shape_of(op.operands[0]), shape_of(op.results[0]))


@lru_cache(maxsize=4096)
def _bitcast_convert(source: Shape, target: Shape) -> Pointwise:
    build = RuleBuilder([len(source)], [len(target)])
    for dim in range(max(len(source), len(target))):
        if dim < min(len(source), len(target)):
            build.mapped(source[dim], (0, dim), (0, dim))
        elif dim < len(source):
            build.operand(0, dim, build.factor(source[dim], Kind.REPLICATED))
        else:
            build.result(0, dim, build.factor(target[dim], Kind.REPLICATED))
    return Pointwise(build.build())


def side_by_side(op: Any) -> OpModel[Any]:
    """Pairs result i with operand i (optimization_barrier)."""
    return _side_by_side(tuple(shape_of(operand) for operand in op.operands))


@lru_cache(maxsize=4096)
def _side_by_side(shapes: Shapes) -> Pointwise:
    build = RuleBuilder([len(s) for s in shapes], [len(s) for s in shapes])
    for index, shape in enumerate(shapes):
        for dim, size in enumerate(shape):
            build.mapped(size, (index, dim), (index, dim))
    return Pointwise(build.build(independent=True))


EVERY = "every dimension; a scalar operand beside larger ones is replicated"

define([f"stablehlo.{name}" for name in STABLEHLO.split()], pointwise, note=EVERY, cheap=True)
define(
    [f"stablehlo.{name}" for name in QUANTIZED.split()],
    pointwise,
    note="every dimension; but JAX's context, in which modules are parsed, has no `!quant.uniform` types, so only "
    "modules that a program builds in a context of its own hold these ops",
    cheap=True,
)
define([f"chlo.{name}" for name in CHLO.split()], pointwise, note=EVERY, cheap=True)
define([f"mhlo.{name}" for name in MHLO.split()], pointwise, note=EVERY, cheap=True)
define("stablehlo.optimization_barrier", side_by_side, note="every dimension of every operand", cheap=True)
define(
    "stablehlo.bitcast_convert",
    bitcast_convert,
    note="every dimension except the one that appears or disappears when the element width changes",
    cheap=True,
)
