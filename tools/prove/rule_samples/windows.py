"""Samples for the rule prover: reduce_window, convolution, select_and_scatter, gather, scatter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tools.prove.rule_samples.sample import Sample
from tools.stablehlo_text import array, body
from tools.values import Type


def _rows(padding: Sequence[tuple[int, int]]) -> str:
    said = ", ".join(f"[{low}, {high}]" for low, high in padding)
    return f"padding = dense<[{said}]> : tensor<{len(padding)}x2xi64>"


def _length(size: int, window: int, stride: int, low: int, high: int, base: int = 1, dilation: int = 1) -> int:
    full = (max(0, size - 1) * base + 1 if size else 0) + low + high
    return max(0, (full - ((window - 1) * dilation + 1)) // stride + 1)


def windows() -> Iterator[Sample]:
    """Pooling, with strides, padding, dilations; cumulative ops both ways."""
    for op, init in (("add", "0.0"), ("maximum", "0xFF800000")):
        for shape, sizes, strides, padding, base, dilation in (
            ((8, 4), (3, 1), (1, 1), ((1, 1), (0, 0)), (1, 1), (1, 1)),
            ((8, 4), (2, 1), (2, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
            ((9, 4), (3, 2), (2, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
            ((8, 3), (8, 1), (1, 1), ((7, 0), (0, 0)), (1, 1), (1, 1)),
            ((7, 4), (7, 1), (1, 1), ((0, 6), (0, 0)), (1, 1), (1, 1)),
            ((8, 4), (2, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), (3, 1)),
            ((6, 4), (3, 1), (1, 1), ((0, 0), (0, 0)), (2, 1), (1, 1)),
        ):
            kind = Type(shape, "f32")
            target = tuple(
                _length(n, w, s, low, high, b, d)
                for n, w, s, (low, high), b, d in zip(shape, sizes, strides, padding, base, dilation, strict=True)
            )
            attributes = (
                f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, {_rows(padding)}, "
                f"base_dilations = {array(base)}, window_dilations = {array(dilation)}"
            )
            yield Sample(
                "stablehlo.reduce_window", (kind,), (Type(target, "f32"),), attributes, body("f32", op),
                f"%init = stablehlo.constant dense<{init}> : tensor<f32>", ("%init",), ("tensor<f32>",), note=op,
            )  # fmt: skip


def convolution() -> Iterator[Sample]:
    """Batch, features, groups, one spatial dimension with stride, padding, dilations."""
    for batch, features, width, out, size, stride, low, high, base, dilation, groups, batch_groups in (
        (2, 4, 8, 6, 3, 1, 1, 1, 1, 1, 1, 1),
        (2, 3, 8, 4, 1, 1, 0, 0, 1, 1, 1, 1),
        (4, 2, 9, 4, 3, 2, 0, 0, 1, 1, 1, 1),
        (2, 4, 6, 8, 2, 1, 0, 1, 1, 1, 2, 1),
        (4, 2, 6, 4, 2, 1, 0, 0, 1, 1, 1, 2),
        (2, 2, 6, 4, 3, 1, 2, 2, 2, 1, 1, 1),
        (2, 2, 8, 4, 3, 1, 1, 1, 1, 2, 1, 1),
        (2, 2, 12, 2, 10, 1, 0, 0, 1, 1, 1, 1),
    ):
        length = _length(width, size, stride, low, high, base, dilation)
        attributes = (
            "dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, "
            f"feature_group_count = {groups} : i64, batch_group_count = {batch_groups} : i64, "
            f"window_strides = {array([stride])}, {_rows([(low, high)])}, "
            f"lhs_dilation = {array([base])}, rhs_dilation = {array([dilation])}"
        )
        kinds = (Type((batch, features, width), "f32"), Type((out, features // groups, size), "f32"))
        yield Sample("stablehlo.convolution", kinds, (Type((batch // batch_groups, out, length), "f32"),), attributes)


def gather() -> Iterator[Sample]:
    """Rows by index, windows at a place, batches; indices out of bounds are clamped."""
    rows = np.array([0, 5, 9, -3, 2, 3], np.int32)
    table = Type((6, 4), "f32")
    yield Sample(
        "stablehlo.gather", (table, Type((6,), "i32")), (Type((6, 4), "f32"),),
        "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
        "index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false", data={1: rows},
    )  # fmt: skip
    yield Sample(
        "stablehlo.gather", (table, Type((4, 2), "i32")), (Type((4, 2, 3), "f32"),),
        "dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>, "
        "slice_sizes = array<i64: 2, 3>, indices_are_sorted = false",
        data={1: np.array([[0, 0], [4, 1], [9, 9], [-1, 1]], np.int32)},
    )  # fmt: skip
    yield Sample(
        "stablehlo.gather", (Type((4, 6), "f32"), Type((4, 2), "i32")), (Type((4, 2), "f32"),),
        "dimension_numbers = #stablehlo.gather<operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>, "
        "indices_are_sorted = false",
        data={1: np.array([[0, 5], [7, 1], [2, -1], [3, 3]], np.int32)},
    )  # fmt: skip


def scatter() -> Iterator[Sample]:
    """Rows added to a table, or put there; indices out of bounds are dropped."""
    rows = np.array([0, 5, 9, -3, 2, 2], np.int32)
    numbers = (
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false"
    )
    for count, op in ((6, "add"), (6, "maximum"), (5, "add"), (6, "multiply"), (6, "minimum")):
        kinds = (Type((6, 4), "f32"), Type((count,), "i32"), Type((count, 4), "f32"))
        yield Sample("stablehlo.scatter", kinds, (kinds[0],), numbers, body("f32", op), data={1: rows[:count]}, note=op)
    kinds = (Type((6, 4), "f32"), Type((4,), "i32"), Type((4, 4), "f32"))
    put = "{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): stablehlo.return %q : tensor<f32> }"
    yield Sample(
        "stablehlo.scatter", kinds, (kinds[0],), numbers, put, data={1: np.array([4, 0, 7, 3], np.int32)}, note="put"
    )


def select_and_scatter() -> Iterator[Sample]:
    """The gradient of max pooling, windows that overlap and windows that do not."""
    pick = (
        "{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %r = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> "
        "tensor<i1> stablehlo.return %r : tensor<i1> }"
    )
    for size, window, stride in ((8, 2, 2), (9, 3, 2), (8, 3, 1)):
        source = _length(size, window, stride, 0, 0)
        different = (np.arange(size * 4, dtype=np.float32) * 7 % 31).reshape(size, 4)
        kinds = (Type((size, 4), "f32"), Type((source, 4), "f32"))
        attributes = (
            f"window_dimensions = {array([window, 1])}, window_strides = {array([stride, 1])}, "
            f"{_rows([(0, 0), (0, 0)])}"
        )
        yield Sample(
            "stablehlo.select_and_scatter", kinds, kinds[:1], attributes,
            f"{pick}, {body('f32', 'add')}", "%init = stablehlo.constant dense<0.0> : tensor<f32>", ("%init",),
            ("tensor<f32>",), data={0: different},
        )  # fmt: skip
