"""Samples for the rule validator: windows that straddle tiles, argmax, top_k, random bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from fuzz_maker import array, body
from fuzz_programs import Type
from rule_samples import Sample


def straddling() -> Iterator[Sample]:
    """Windows of three rows, at places in, between and beyond the tiles."""
    places = np.array([[0], [2], [5], [-4], [9]], np.int32)
    table, windows = Type((8, 2), "f32"), Type((5, 3, 2), "f32")
    yield Sample(
        "stablehlo.gather", (table, Type((5, 1), "i32")), (windows,),
        "dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, "
        f"slice_sizes = {array((3, 2))}", data={1: places},
    )  # fmt: skip
    inside = np.array([[0], [2], [5], [6], [-1]], np.int32)
    for op in ("add", "maximum", "multiply"):
        yield Sample(
            "stablehlo.scatter", (table, Type((5, 1), "i32"), windows), (table,),
            "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>", body("f32", op), data={1: inside}, note=op,
            interpreted=False,  # it writes the part of a window that is inside; XLA drops the window
        )  # fmt: skip


ARGMAX = """{
  ^bb0(%x: tensor<f32>, %i: tensor<i32>, %y: tensor<f32>, %j: tensor<i32>):
    %gt = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %eq = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %lt = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = stablehlo.and %eq, %lt : tensor<i1>
    %take = stablehlo.or %gt, %both : tensor<i1>
    %v = stablehlo.select %take, %x, %y : tensor<i1>, tensor<f32>
    %p = stablehlo.select %take, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %p : tensor<f32>, tensor<i32>
}"""


def argreduce() -> Iterator[Sample]:
    """argmax along either dimension; positions are an operand."""
    before = (
        "%v0 = stablehlo.constant dense<0xFF800000> : tensor<f32>\n    %p0 = stablehlo.constant dense<99> : tensor<i32>"
    )
    for shape, dim in (((4, 6), 1), ((5, 3), 0), ((4, 1), 1)):
        target = (shape[1 - dim],)
        places = np.broadcast_to(np.expand_dims(np.arange(shape[dim], dtype=np.int32), 1 - dim), shape)
        yield Sample(
            "stablehlo.reduce", (Type(shape, "f32"), Type(shape, "i32")), (Type(target, "f32"), Type(target, "i32")),
            f"dimensions = {array((dim,))}", ARGMAX, before, ("%v0", "%p0"), ("tensor<f32>", "tensor<i32>"),
            data={1: np.ascontiguousarray(places)}, note="argmax",
        )  # fmt: skip


def top_k() -> Iterator[Sample]:
    for shape, k in (((4, 6), 2), ((5, 7), 3), ((8,), 5), ((3, 6), 6)):
        result = (*shape[:-1], k)
        yield Sample(
            "chlo.top_k", (Type(shape, "f32"),), (Type(result, "f32"), Type(result, "i32")), f"k = {k} : i64",
            interpreted=False,
        )  # fmt: skip


def random() -> Iterator[Sample]:
    """Bits are those of the whole array whatever the split."""
    shapes = [("DEFAULT", (4, 6), "ui32"), ("PHILOX", (4, 6), "ui32"), ("THREE_FRY", (4, 6), "ui32")]
    shapes += [("PHILOX", (5, 3), "ui32"), ("DEFAULT", (7, 3), "ui64"), ("DEFAULT", (1, 9, 2), "ui8")]
    for algorithm, shape, element in shapes:
        yield Sample(
            "stablehlo.rng_bit_generator", (Type((2,), "ui64"),), (Type((2,), "ui64"), Type(shape, element)),
            f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>", interpreted=False,
        )  # fmt: skip


def families() -> dict[str, Callable[[], Iterator[Sample]]]:
    """Family -> its samples."""
    return {
        "straddling": straddling, "argreduce": argreduce, "top_k": top_k, "random": random,
    }  # fmt: skip
