"""ragged_dot, in every mode and split along every dimension, against loops over the groups in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.runtime import interpret

RNG = np.random.default_rng(31)
TEXT = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
func.func @main(%l: tensor<{l}xf32> {{mhlo.sharding = "{ls}"}}, %r: tensor<{r}xf32> {{mhlo.sharding = "{rs}"}},
    %s: tensor<{s}xi32> {{mhlo.sharding = "{{replicated}}"}}) -> tensor<{out}xf32> {{
  %0 = "chlo.ragged_dot"(%l, %r, %s) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>}}>
      : (tensor<{l}xf32>, tensor<{r}xf32>, tensor<{s}xi32>) -> tensor<{out}xf32>
  return %0 : tensor<{out}xf32>
}}
}}
"""


def numbers(lb: Any, rb: Any, lc: Any, rc: Any, ragged: Any, group: Any) -> str:
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting", "lhs_ragged", "rhs_group")
    return ", ".join(f"{n}_dimensions = {list(d)}" for n, d in zip(names, (lb, rb, lc, rc, ragged, group), strict=True))


def ranges(sizes: np.ndarray) -> list[slice]:
    ends = np.cumsum(sizes)
    return [slice(int(e - n), int(e)) for e, n in zip(ends, sizes, strict=True)]


def rows(left: np.ndarray, right: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    out = np.zeros((len(left), right.shape[-1]), left.dtype)
    for part, matrix in zip(ranges(sizes), right, strict=True):
        out[part] = left[part] @ matrix
    return out


def contraction(left: np.ndarray, right: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return np.stack([left[:, part] @ right[part] for part in ranges(sizes)])


def run(text: str, *given: np.ndarray) -> list[np.ndarray]:
    """On XLA's devices, and in the reference interpreter."""
    with collect() as found:
        module = shardpass.run_pipeline(text, "partition{effort=0}")
    assert "SP301" not in [d.code for d in found]
    return [np.asarray(shardpass.compile(module)(*given)[0]), np.asarray(interpret(module, *given)[0])]


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(np.float32)


LEFT = ["{replicated}", "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{devices=[2,2]<=[4]}"]


@pytest.mark.parametrize("left_split", LEFT)
@pytest.mark.parametrize("right_split", ["{replicated}", "{devices=[4,1,1]<=[4]}", "{devices=[1,2,2]<=[4]}"])
def test_ragged_rows(left_split: str, right_split: str) -> None:
    """Nine rows in groups of 4, 0 and 3; the last two belong to none."""
    left, right, sizes = integers(9, 6), integers(3, 6, 5), np.array([4, 0, 3], np.int32)
    said = numbers([], [], [1], [1], [0], [0])
    text = TEXT.format(l="9x6", r="3x6x5", s="3", out="9x5", ls=left_split, rs=right_split, numbers=said)
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, rows(left, right, sizes))


@pytest.mark.parametrize("batched_sizes", [False, True])
@pytest.mark.parametrize("split", ["{devices=[2,2,1]<=[4]}", "{devices=[1,1,4]<=[4]}"])
def test_ragged_rows_of_a_batch(split: str, batched_sizes: bool) -> None:
    left, right = integers(2, 7, 6), integers(3, 2, 6, 5)
    sizes = np.array([[1, 4, 2], [3, 0, 1]] if batched_sizes else [2, 2, 3], np.int32)
    said = numbers([0], [1], [2], [2], [1], [0])
    shape = "2x3" if batched_sizes else "3"
    text = TEXT.format(l="2x7x6", r="3x2x6x5", s=shape, out="2x7x5", ls=split, rs="{replicated}", numbers=said)
    each = sizes if batched_sizes else [sizes, sizes]
    expected = np.stack([rows(left[b], right[:, b], each[b]) for b in range(2)])
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("left_split", LEFT)
@pytest.mark.parametrize("right_split", ["{replicated}", "{devices=[4,1]<=[4]}"])
def test_a_ragged_contraction(left_split: str, right_split: str) -> None:
    left, right, sizes = integers(5, 9), integers(9, 3), np.array([2, 5, 1], np.int32)
    said = numbers([], [], [1], [0], [1], [])
    text = TEXT.format(l="5x9", r="9x3", s="3", out="3x5x3", ls=left_split, rs=right_split, numbers=said)
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, contraction(left, right, sizes))


def test_a_ragged_batch() -> None:
    left, right, sizes = integers(4, 3, 6), integers(4, 6, 5), np.array([1, 1, 2], np.int32)
    said = numbers([0], [0], [2], [1], [0], [])
    split = "{devices=[4,1,1]<=[4]}"
    text = TEXT.format(l="4x3x6", r="4x6x5", s="3", out="4x3x5", ls=split, rs=split, numbers=said)
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, left @ right)


WORDS = {"chlo": ["DEFAULT", "HIGHEST"], "mhlo": ["HIGH", "DEFAULT"]}


@pytest.mark.parametrize("dialect", WORDS)
def test_a_precision_in_the_words_of_another_dialect(dialect: str) -> None:
    """JAX writes ``#chlo<precision DEFAULT>`` for a TPU; dot_general takes StableHLO's attribute alone."""
    said = numbers([], [], [1], [1], [0], [0])
    text = TEXT.format(l="9x6", r="3x6x5", s="3", out="9x5", ls="{devices=[4,1]<=[4]}", rs="{replicated}", numbers=said)
    words = ", ".join(f"#{dialect}<precision {word}>" for word in WORDS[dialect])
    text = text.replace("<{ragged_dot", f"<{{precision_config = [{words}], ragged_dot")
    if dialect == "mhlo":
        of_dot = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]"
        of_mhlo = (
            f"#mhlo.ragged_dot<dot_dimension_numbers = #mhlo.dot<{of_dot}>, lhs_ragged_dimensions = [0], "
            "rhs_group_dimensions = [0]>"
        )
        text = text.replace("chlo.ragged_dot", "mhlo.ragged_dot", 1).replace(f"#chlo.ragged_dot<{said}>", of_mhlo)
    module = str(shardpass.run_pipeline(text, "partition{effort=0}"))
    assert f"precision = [{', '.join(WORDS[dialect])}]" in module
    left, right, sizes = integers(9, 6), integers(3, 6, 5), np.array([4, 0, 3], np.int32)
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, rows(left, right, sizes))


def test_a_batch_that_mhlo_names() -> None:
    left, right, sizes = integers(4, 3, 6), integers(4, 6, 5), np.array([1, 1, 2], np.int32)
    split = "{devices=[4,1,1]<=[4]}"
    text = TEXT.format(l="4x3x6", r="4x6x5", s="3", out="4x3x5", ls=split, rs=split, numbers="")
    dot = (
        "#mhlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
        "rhs_contracting_dimensions = [1]>"
    )
    of_mhlo = f"#mhlo.ragged_dot<dot_dimension_numbers = {dot}, lhs_ragged_dimensions = [0]>"
    text = text.replace("chlo.ragged_dot", "mhlo.ragged_dot", 1).replace("#chlo.ragged_dot<>", of_mhlo)
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, left @ right)


def test_experts_stay_where_they_are() -> None:
    """Right sides split over groups, as experts are: each device multiplies by its own, and one sum joins the rows."""
    said = numbers([], [], [1], [1], [0], [0])
    text = TEXT.format(
        l="16x64", r="8x64x64", s="8", out="16x64", ls="{replicated}", rs="{devices=[4,1,1]<=[4]}", numbers=said
    )
    module = str(shardpass.run_pipeline(text, "partition{effort=0}"))
    assert module.count('"stablehlo.all_reduce"') == 1
    assert "stablehlo.all_gather" not in module
    left, right, sizes = integers(16, 64), integers(8, 64, 64), np.array([3, 1, 0, 5, 2, 2, 2, 1], np.int32)
    for found in run(text, left, right, sizes):
        np.testing.assert_array_equal(found, rows(left, right, sizes))


@pytest.mark.parametrize("kind", ["i8", "ui8", "i16", "ui16", "ui32", "i64", "ui64"])
@pytest.mark.parametrize("left_split", LEFT[:2])
def test_group_sizes_of_every_type(kind: str, left_split: str) -> None:
    """300 rows, which 8 bits do not count, in groups of which each fits; the last 5 belong to none."""
    sizes = np.array([100, 120, 0, 75], kind.replace("i", "int"))
    left, right = integers(300, 6), integers(4, 6, 5)
    said = numbers([], [], [1], [1], [0], [0])
    text = TEXT.format(l="300x6", r="4x6x5", s="4", out="300x5", ls=left_split, rs="{replicated}", numbers=said)
    for found in run(text.replace("xi32>", f"x{kind}>"), left, right, sizes):
        np.testing.assert_array_equal(found, rows(left, right, sizes))
