"""Elementwise ops: result element i needs operand elements i alone, so any split passes through."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shardpass.ir.tensors import is_ranked, shape_of
from shardpass.ops.model import OpModel, Pointwise, Shape, Shapes
from shardpass.ops.owners import FAMILY_OF_OP
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, RuleBuilder

FAMILY = __name__.rpartition(".")[2]
QUANTIZED = ("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize")
OTHERS = ("stablehlo.bitcast_convert", "stablehlo.optimization_barrier")  # of the family


def pointwise(op: Any) -> OpModel[Any] | None:
    """Give each dimension one parallel factor; scalar operands of select and clamp have no factor."""
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
    """Read a bitcast: elementwise, with an extra minor dimension where the width of elements changes."""
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
    """Pair result i with operand i (optimization_barrier)."""
    return _side_by_side(tuple(shape_of(operand) for operand in op.operands))


@lru_cache(maxsize=4096)
def _side_by_side(shapes: Shapes) -> Pointwise:
    build = RuleBuilder([len(s) for s in shapes], [len(s) for s in shapes])
    for index, shape in enumerate(shapes):
        for dim, size in enumerate(shape):
            build.mapped(size, (index, dim), (index, dim))
    return Pointwise(build.build(independent=True))


EVERY = "every dimension; a scalar operand beside larger ones is replicated"

POINTWISE = [op for op, family in FAMILY_OF_OP.items() if family == FAMILY and op not in (*QUANTIZED, *OTHERS)]
MHLO = [op for op in POINTWISE if op.startswith("mhlo.")]  # those that StableHLO lacks, and XLA's own tools write
define(POINTWISE, pointwise, note=EVERY, cheap=True)
define(
    QUANTIZED,
    pointwise,
    note="every dimension; but JAX's context, in which modules are parsed, has no `!quant.uniform` types, so only "
    "modules that a program builds in a context of its own hold these ops",
    cheap=True,
)
define("stablehlo.optimization_barrier", side_by_side, note="every dimension of every operand", cheap=True)
define(
    "stablehlo.bitcast_convert",
    bitcast_convert,
    note="every dimension except the one that appears or disappears when the element width changes",
    cheap=True,
)
