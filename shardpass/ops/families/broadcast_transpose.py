"""broadcast_in_dim and transpose: a dimension of the operand becomes another dimension of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import Any

from shardpass.ir.tensors import ints, shape_of
from shardpass.ops.model import OpModel, Pointwise, Shape
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Priority, RuleBuilder


def broadcast_in_dim(op: Any) -> OpModel[Any]:
    """Keep the split of operand dimensions; new and stretched dimensions of the result may be split freely."""
    dimensions = ints(op.attributes["broadcast_dimensions"])
    return _broadcast(shape_of(op.operands[0]), shape_of(op.results[0]), dimensions)


@lru_cache(maxsize=4096)
def _broadcast(source: Shape, target: Shape, dimensions: Shape) -> Pointwise:
    places = {d: i for i, d in enumerate(dimensions)}
    build = RuleBuilder([len(source)], [len(target)])
    for dim, size in enumerate(target):
        factor = build.factor(size)
        build.result(0, dim, factor)
        if dim in places and source[places[dim]] == size:
            build.operand(0, places[dim], factor)
    return Pointwise(build.build(Priority.EXPANSION))


def transpose(op: Any) -> OpModel[Any]:
    return _transpose(shape_of(op.operands[0]), ints(op.attributes["permutation"]))


@lru_cache(maxsize=4096)
def _transpose(shape: Shape, permutation: Shape) -> Pointwise:
    build = RuleBuilder([len(shape)], [len(shape)])
    for out, dim in enumerate(permutation):
        build.mapped(shape[dim], (0, dim), (0, out))
    return Pointwise(build.build())


def reshape_factors(source: Sequence[int], target: Sequence[int]) -> list[tuple[int, int, int]]:
    """List (source dim, target dim, size) of each run of elements that both shapes keep together, major to minor.

    Walks both shapes from the major side. Where the remaining parts do not divide one another only their common
    divisor is shared, and nothing more until the running products meet again.
    """
    out: list[tuple[int, int, int]] = []
    i = j = 0
    a, b = 1, 1  # the part of the current source and target dimension that no factor covers yet
    while True:
        while a == 1 and i < len(source):
            a, i = source[i], i + 1
        while b == 1 and j < len(target):
            b, j = target[j], j + 1
        if a == 1 or b == 1:
            return out
        common = gcd(a, b)
        if common > 1:
            out.append((i - 1, j - 1, common))
        a, b = a // common, b // common
        if a > 1 and b > 1:  # the cut points do not nest: go on where the products are equal
            while a != b:
                if a < b:
                    a, i = a * source[i], i + 1
                else:
                    b, j = b * target[j], j + 1
            a = b = 1


define(
    "stablehlo.broadcast_in_dim",
    broadcast_in_dim,
    note="every dimension; new and expanded dimensions at no cost",
    cheap=True,
)
define("stablehlo.transpose", transpose, note="every dimension", cheap=True)
