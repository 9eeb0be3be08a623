"""Samples for the rule prover: dynamic slices and updates, sorts, windows of a gather that straddle tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tools.prove.rule_samples.sample import EVEN, ODD, Sample
from tools.stablehlo_text import array, body, comparator
from tools.values import Type


def indexing() -> Iterator[Sample]:
    f, i = "f32", Type((), "i32")
    for shape_, sizes, starts in (
        (EVEN, (4, 2), (0, 3)), (EVEN, (2, 6), (3, 1)), (ODD, (5, 3), (2, 2)), (EVEN, (1, 1), (2, 5)),
        ((8,), (3,), (9,)),
    ):  # fmt: skip
        yield Sample(
            "stablehlo.dynamic_slice", (Type(shape_, f), *(i for _ in sizes)), (Type(sizes, f),),
            f"slice_sizes = {array(sizes)}", data=_starts(1, starts),
        )  # fmt: skip
        yield Sample(
            "stablehlo.dynamic_update_slice", (Type(shape_, f), Type(sizes, f), *(i for _ in sizes)),
            (Type(shape_, f),), data=_starts(2, starts),
        )  # fmt: skip
    for shape_ in (EVEN, ODD):
        for dim in (0, 1):
            kind, attributes = Type(shape_, f), f"dimension = {dim} : i64, is_stable = true"
            yield Sample("stablehlo.sort", (kind,), (kind,), attributes, comparator([f]))
            pair = (Type(shape_, "i32"), kind)
            yield Sample("stablehlo.sort", pair, pair, attributes, comparator(["i32", f]))


def _starts(first: int, starts: tuple[int, ...]) -> dict[int, Any]:
    return {first + k: np.int32(s) for k, s in enumerate(starts)}


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
