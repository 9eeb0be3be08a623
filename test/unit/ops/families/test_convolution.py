"""convolution split every way, against the whole program on one device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text, draw
from support.split import check_split

import shardpass
from shardpass.ir.collectives import collectives
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import every_op
from shardpass.ops.registry import find

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(7)
KERNEL = (3, 3, 8, 4)
SPLITS = {
    "batch": ((8,), P("x")),
    "rows": ((8,), P(None, "x")),
    "rows and columns": ((4, 2), P(None, "x", "y")),
    "features": ((4, 2), P(None, None, None, "x")),
    "batch and rows": ((2, 4), P("x", "y")),
    "rows and features": ((4, 2), P(None, "x", None, "y")),
    "batch and columns by three": ((2, 3), P("x", None, "y")),
}

EVEN = ("batch", "rows and columns", "features", "batch and columns by three")
UNEVEN = ("rows", "batch and rows", "rows and features")


def conv(x: Any, k: Any, strides: Any = (1, 1), padding: Any = "SAME", **options: Any) -> Any:
    return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


FORMS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "same": (lambda x, k: conv(x, k), KERNEL),
    "strided": (lambda x, k: conv(x, k, (2, 2)), KERNEL),
    "kernel dilated": (lambda x, k: conv(x, k, (1, 1), "VALID", rhs_dilation=(2, 2)), KERNEL),
    "transposed": (lambda x, k: conv(x, k, (1, 1), [(1, 2), (1, 2)], lhs_dilation=(2, 2)), KERNEL),
    "dilated, strided, cropped": (lambda x, k: conv(x, k, (2, 2), [(1, 2), (-1, 3)], lhs_dilation=(3, 3)), KERNEL),
    "feature groups": (lambda x, k: conv(x, k, feature_group_count=4), (3, 3, 2, 8)),
    "depthwise": (lambda x, k: conv(x, k, feature_group_count=8), (3, 3, 1, 16)),
    "batch groups": (lambda x, k: conv(x, k, batch_group_count=4), (3, 3, 8, 8)),
    "gradients": (jax.grad(lambda x, k: (conv(x, k, (2, 2)) ** 2).sum(), argnums=(0, 1)), KERNEL),
    "gradients of groups": (
        jax.grad(lambda x, k: (conv(x, k, feature_group_count=4) * x).sum(), argnums=(0, 1)),
        (3, 3, 2, 8),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [(16, 12), (13, 7)])
def test_equal_to_one_device(form: str, size: tuple[int, int]) -> None:
    function, kernel = FORMS[form]
    arguments = [draw(RNG, (8, *size, 8), np.float32), draw(RNG, kernel, np.float32)]
    for name in EVEN if size == (16, 12) else UNEVEN:
        mesh, spec = SPLITS[name]
        check_split(function, arguments, [spec, P()], mesh)


@pytest.mark.parametrize("form", ["strided", "transposed", "dilated, strided, cropped", "feature groups"])
def test_on_the_reference_interpreter(form: str) -> None:
    function, kernel = FORMS[form]
    arguments = [draw(RNG, (1, 9, 6, 8), np.float32), draw(RNG, kernel, np.float32)]
    check_split(function, arguments, [P(None, "x"), P()], (4,), [P(None, "x")], interpreter=True)


@pytest.mark.parametrize("kernel", [P(None, None, "x"), P(None, None, None, "x"), P("x"), P("x", None, "y")])
def test_split_kernels(kernel: P) -> None:
    arguments = [draw(RNG, (2, 10, 6, 8), np.float32), draw(RNG, (4, 3, 8, 6), np.float32)]
    check_split(lambda x, k: conv(x, k), arguments, [P(), kernel], (4, 2))


def test_turned_kernels() -> None:
    """window_reversal, slid over (4 of 9) and contracted (7 of 3)."""
    for rows in (4, 7):
        check_text(_reversed_text(rows), interpreter=True)


def _reversed_text(rows: int) -> str:
    made = 9 - rows + 1
    split = "{devices=[1,4,1,1]<=[4]}"
    return f"""
func.func @main(%x: tensor<2x9x5x2xf32> {{mhlo.sharding = "{split}"}}, %k: tensor<{rows}x2x2x3xf32>)
    -> tensor<2x{made}x4x3xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{stride = [1, 1], pad = [[0, 0], [0, 0]], reverse = [true, false]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<2x9x5x2xf32>, tensor<{rows}x2x2x3xf32>) -> tensor<2x{made}x4x3xf32>
  return %0 : tensor<2x{made}x4x3xf32>
}}
"""


def test_halos_are_the_rows_that_are_missing() -> None:
    """3x3 over tiles of 8 rows: one row from each side, and no gather."""
    arguments = [draw(RNG, (4, 64, 16, 8), np.float32), draw(RNG, KERNEL, np.float32)]
    seen = check_split(lambda x, k: conv(x, k), arguments, [P(None, "x"), P()], (8,), [P(None, "x")])
    assert seen.kinds == ["collective_permute"] * 2
    row = 4 * 16 * 8 * 4
    assert [use.bytes_received for use in seen.collectives] == [row, row]
    assert not seen.diagnostics


def test_strided_windows_need_one_side() -> None:
    arguments = [draw(RNG, (4, 64, 16, 8), np.float32), draw(RNG, KERNEL, np.float32)]
    seen = check_split(lambda x, k: conv(x, k, (2, 2)), arguments, [P(None, "x"), P()], (8,), [P(None, "x")])
    assert seen.kinds == ["collective_permute"]


def test_the_kernel_gradient_of_split_rows_is_a_partial_sum() -> None:
    """Neither image is gathered: halos, and one all_reduce of the kernel."""
    arguments = [draw(RNG, (2, 64, 16, 8), np.float32), draw(RNG, (2, 64, 16, 4), np.float32)]

    def gradient(x: Any, g: Any) -> Any:
        return jax.linear_transpose(lambda k: conv(x, k), np.zeros(KERNEL, np.float32))(g)[0]

    seen = check_split(gradient, arguments, [P(None, "x"), P(None, "x")], (8,))
    assert seen.kinds == ["all_reduce", "collective_permute", "collective_permute"]


def test_groups_stay_where_they_are() -> None:
    arguments = [draw(RNG, (2, 6, 6, 8), np.float32), draw(RNG, (3, 3, 2, 8), np.float32)]
    specs = [P(None, None, None, "x"), P(None, None, None, "x")]
    seen = check_split(lambda x, k: conv(x, k, feature_group_count=4), arguments, specs, (4, 2), [specs[0]])
    assert seen.kinds == []


@pytest.mark.parametrize("form", ["same", "feature groups", "depthwise", "batch groups"])
def test_factors_of_features_make_up_the_dimensions(form: str) -> None:
    """Of the input's features, and of what the kernel takes and makes: groups times what each group has."""
    function, kernel = FORMS[form]
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((8, 16, 12, 8), kernel)]
    module = parse_module(jax.jit(function).lower(*shapes).as_text())
    (op,) = (op for op in every_op(module.operation) if op.name == "stablehlo.convolution")
    rule = find(op.name).rule(op)
    dims = (rule.operands[0][3], rule.operands[1][2], rule.operands[1][3], rule.results[0][3])
    sizes = [math.prod(rule.factors[factor].size for factor in dim) for dim in dims]
    assert sizes == [8, *kernel[2:], kernel[3]]


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.complex64])
def test_element_types(dtype: Any) -> None:
    arguments = [draw(RNG, (2, 9, 5, 4), dtype), draw(RNG, (3, 3, 4, 2), dtype)]
    check_split(lambda x, k: conv(x, k), arguments, [P(None, "x", None, "y"), P()], (2, 2))


def test_garbage_in_padding_is_never_seen() -> None:
    """13 rows over 4: the padding holds log(0) - log(0), which is NaN, and the sum over features would spread it."""
    arguments = [np.abs(draw(RNG, (2, 13, 6, 8), np.float32)) + 1, draw(RNG, KERNEL, np.float32)]
    check_split(lambda x, k: conv(np.log(8.0) * (1 / x), k), arguments, [P(None, "x"), P()], (4,))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("sharding", ["{devices=[2,1,1,1]<=[2]}", "{replicated}", "{devices=[1,1,2,1]<=[2]}"])
def test_padding_that_cuts_on_one_side_and_pads_on_the_other(groups, sharding):
    """XLA on CPU reads past the input, on one device too: the witness convolves what the cut leaves."""
    rng = np.random.default_rng(groups)
    x = rng.standard_normal((2, 2, 4, 6)).astype(np.float32)
    k = rng.standard_normal((2, 2 // groups, 2, 4)).astype(np.float32)
    text = f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
      func.func public @main(%x: tensor<2x2x4x6xf32> {{mhlo.sharding = "{sharding}"}},
                             %k: tensor<2x{2 // groups}x2x4xf32> {{mhlo.sharding = "{{replicated}}"}})
          -> tensor<2x2x4x3xf32> {{
        %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
          window = {{stride = [1, 1], pad = [[-1, 2], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}}
          {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
          : (tensor<2x2x4x6xf32>, tensor<2x{2 // groups}x2x4xf32>) -> tensor<2x2x4x3xf32>
        return %0 : tensor<2x2x4x3xf32>
      }}
    }}"""
    (got,) = shardpass.compile(shardpass.run_pipeline(text, "partition"))(x, k)
    padded = np.pad(x[:, :, 1:], ((0, 0), (0, 0), (0, 2), (0, 0)))
    want = np.zeros((2, 2, 4, 3), np.float64)
    for o in range(2):
        part = padded[:, o : o + 1] if groups == 2 else padded
        for i in range(4):
            for j in range(3):
                want[:, o, i, j] = (part[:, :, i : i + 2, j : j + 4] * k[o]).sum((1, 2, 3))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cropped", [(-6, 78), (-40, 44), (3, -70), (-33, -33), (31, 31), (-340, -380)])
@pytest.mark.parametrize("split", [("x",), ("x", "y")])
def test_what_lies_between_elements_is_not_sent(cropped: tuple[int, int], split: tuple[str, ...]) -> None:
    """31 places lie between two of 24 elements: no device receives more than the elements that it lacks of the input.

    The witness dilates and crops first: XLA on CPU reads past an input that is cropped on one side alone.
    """
    rank = len(split)
    sizes, kernel = (24, 10)[:rank], (16, 11)[:rank]
    padding, steps = [cropped, (-3, 7)][:rank], (32, 4)[:rank]
    numbers = ("NHC", "HIO", "NHC") if rank == 1 else ("NHWC", "HWIO", "NHWC")

    def dilated(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (1,) * rank, padding, lhs_dilation=steps, dimension_numbers=numbers)

    def padded(x: Any, k: Any) -> Any:
        sides = [(0, 0, 0), *((*side, step - 1) for side, step in zip(padding, steps, strict=True)), (0, 0, 0)]
        whole = lax.pad(x, np.float32(0), sides)
        return lax.conv_general_dilated(whole, k, (1,) * rank, "VALID", dimension_numbers=numbers)

    x, k = draw(RNG, (2, *sizes, 3), np.float32), draw(RNG, (*kernel, 3, 2), np.float32)
    devices = np.array(jax.devices()[: 2**rank]).reshape((2,) * rank)
    rows = jax.sharding.NamedSharding(jax.sharding.Mesh(devices, ("x", "y")[:rank]), P(None, *split))
    module = shardpass.run_pipeline(jax.jit(dilated, in_shardings=(rows, None)).lower(x, k), "partition{effort=0}")
    (made,) = shardpass.compile(module)(x, k)
    np.testing.assert_allclose(np.asarray(made), np.asarray(jax.jit(padded)(x, k)), rtol=1e-5, atol=1e-5)
    with module.context:
        assert sum(use.bytes_received for use in collectives(module) if "result" not in use.reason) <= x.size * 4
