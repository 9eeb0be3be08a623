"""Samples for the rule prover: broadcasts, transposes, reshapes, slices, pads, concatenations, reverses."""

from __future__ import annotations

from collections.abc import Iterator

from tools.prove.rule_samples.sample import EVEN, ODD, Sample
from tools.stablehlo_text import array
from tools.values import Type

Shape = tuple[int, ...]

BROADCASTS: tuple[tuple[Shape, Shape, Shape], ...] = (
    ((), EVEN, ()), ((4,), EVEN, (0,)), ((6,), EVEN, (1,)), ((1, 6), EVEN, (0, 1)), ((6, 4), (4, 2, 6), (2, 0)),
    ((5,), ODD, (0,)), ((1,), (1, 4), (0,)),
)  # fmt: skip

TRANSPOSES: tuple[tuple[Shape, Shape], ...] = ((EVEN, (1, 0)), (ODD, (1, 0)), ((4, 3, 6), (2, 0, 1)), (EVEN, (0, 1)))

RESHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((4, 6), (24,)), ((24,), (4, 6)), ((24,), (2, 3, 4)), ((4, 6), (2, 12)), ((4, 6), (8, 3)), ((4, 6), (6, 4)),
    ((5, 3), (15,)), ((5, 3), (5, 1, 3)), ((1, 6), (6,)), ((4, 1, 6), (2, 2, 6)), ((6, 4), (3, 2, 2, 2)),
    ((6, 8), (12, 4)), ((2, 6, 4), (4, 12)), ((8,), (8, 1)), ((4,), (1, 4, 1)), ((9, 4), (6, 6)), ((10, 3), (5, 6)),
    ((12,), (3, 4)), ((3, 4), (12,)), ((2, 6), (2, 3, 2)), ((9, 4), (3, 3, 4)),
)  # fmt: skip

SLICES: tuple[tuple[Shape, Shape, Shape, Shape], ...] = (
    (EVEN, (0, 1), (4, 5), (1, 2)), (EVEN, (1, 0), (3, 6), (1, 1)), (ODD, (0, 0), (5, 2), (1, 1)),
    (EVEN, (0, 0), (4, 6), (1, 1)), ((1, 4), (0, 0), (1, 2), (3, 1)), ((8,), (0,), (8,), (2,)),
)  # fmt: skip

PADS: tuple[tuple[Shape, Shape, Shape, Shape], ...] = (
    (EVEN, (0, 1), (0, 2), (0, 0)), (EVEN, (0, 0), (0, 0), (1, 0)), (ODD, (-1, 0), (1, 0), (0, 0)),
    (EVEN, (0, -1), (0, -2), (0, 0)), (EVEN, (0, 0), (2, 0), (0, 0)), ((8,), (1,), (7,), (1,)),
)  # fmt: skip

JOINED: tuple[tuple[tuple[Shape, ...], int], ...] = (
    ((EVEN, EVEN), 0), ((EVEN, (4, 2)), 1), (((5, 3), (5, 1), (5, 3)), 1), (((4,), (8,)), 0),
)  # fmt: skip

REVERSED: tuple[tuple[Shape, Shape], ...] = ((EVEN, (0,)), (EVEN, (1,)), (ODD, (0, 1)), (EVEN, ()))


def shape() -> Iterator[Sample]:
    f = "f32"
    for source, target, dims in BROADCASTS:
        attributes = f"broadcast_dimensions = {array(dims)}"
        yield Sample("stablehlo.broadcast_in_dim", (Type(source, f),), (Type(target, f),), attributes)
    for source, order in TRANSPOSES:
        target = tuple(source[d] for d in order)
        yield Sample("stablehlo.transpose", (Type(source, f),), (Type(target, f),), f"permutation = {array(order)}")
    for source, target in RESHAPES:
        yield Sample("stablehlo.reshape", (Type(source, f),), (Type(target, f),))
    for source, starts, limits, strides in SLICES:
        target = tuple(-(-(b - a) // c) for a, b, c in zip(starts, limits, strides, strict=True))
        attributes = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
        yield Sample("stablehlo.slice", (Type(source, f),), (Type(target, f),), attributes)
    for source, low, high, interior in PADS:
        target = tuple(n + a + b + (n - 1) * c for n, a, b, c in zip(source, low, high, interior, strict=True))
        attributes = (
            f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
        )
        yield Sample("stablehlo.pad", (Type(source, f), Type((), f)), (Type(target, f),), attributes)
    for shapes, dim in JOINED:
        along = sum(s[dim] for s in shapes)
        target = tuple(along if d == dim else n for d, n in enumerate(shapes[0]))
        kinds = tuple(Type(s, f) for s in shapes)
        yield Sample("stablehlo.concatenate", kinds, (Type(target, f),), f"dimension = {dim} : i64")
    for source, dims in REVERSED:
        yield Sample("stablehlo.reverse", (Type(source, f),), (Type(source, f),), f"dimensions = {array(dims)}")
