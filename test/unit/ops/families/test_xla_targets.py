"""Custom calls whose targets XLA knows: what they do on tiles, and that nothing is gathered for them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.collectives import collectives
from shardpass.ops.families.xla_targets import ANNOTATIONS

ONE = """
func.func @main(%x: tensor<8x4xf32> {{mhlo.sharding = "{{devices=[2,2]<=[4]}}"}}) -> tensor<8x4xf32> {{
  %0 = stablehlo.custom_call @{target}(%x) {{has_side_effect = true, backend_config = ""}}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}
"""
PORTABLE = """
func.func @main(%x: tensor<8x{size}xf32> {{mhlo.sharding = "{split}"}}) -> (tensor<8x4xf32>, tensor<8x4xi32>) {{
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = 4 : i64, largest = {largest}}}}}
      : (tensor<8x{size}xf32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xi32>
}}
"""
OTHER = """
func.func @main(%x: tensor<8x16xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) -> (tensor<8x4xf32>, tensor<8x4xi32>) {
  %0:2 = stablehlo.custom_call @TopK(%x) {called_computations = [@compare]}
      : (tensor<8x16xf32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xi32>
}
func.func private @compare(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
"""


def partitioned(text: str) -> tuple[Any, list[str]]:
    """The module, and the codes of what was reported."""
    with collect() as found:
        module = shardpass.run_pipeline(text, "partition{effort=0}")
    return module, [d.code for d in found]


@pytest.mark.parametrize("target", ANNOTATIONS)
def test_an_annotation_lets_any_split_through(target: str) -> None:
    module, codes = partitioned(ONE.format(target=target))
    assert collectives(module) == []
    assert "SP301" not in codes
    assert f'@{target}(%arg0) {{backend_config = "", has_side_effect = true}} : (tensor<4x2xf32>)' in str(module)


def test_a_layout_that_jax_asks_for() -> None:
    from jax.experimental.layout import Layout, with_layout_constraint

    def step(x: Any) -> Any:
        return with_layout_constraint(x * 2, Layout((1, 0))) + 1

    text = jax.jit(step).lower(jnp.zeros((8, 6), jnp.float32)).as_text()
    assert "@LayoutConstraint" in text
    text = text.replace("mhlo.num_partitions = 1", "mhlo.num_partitions = 4")
    text = text.replace("%arg0: tensor<8x6xf32>", '%arg0: tensor<8x6xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}')
    module, codes = partitioned(text)
    assert (collectives(module), codes) == ([], [])
    x = np.arange(48, dtype=np.float32).reshape(8, 6)
    np.testing.assert_array_equal(np.asarray(shardpass.compile(module)(x)[0]), x * 2 + 1)


@pytest.mark.parametrize(("split", "received"), [("{devices=[4,1]<=[4]}", 0), ("{devices=[1,4]<=[4]}", 3 * 8 * 4 * 8)])
def test_the_portable_form_of_top_k_is_split_as_top_k(split: str, received: int) -> None:
    """Along the ordered dimension each of 3 other devices sends 4 candidates of 8 rows, an f32 and an i32 each."""
    module, codes = partitioned(PORTABLE.format(split=split, largest="true", size=1600))
    assert "SP301" not in codes
    assert sum(use.bytes_received for use in collectives(module)) == received
    x = np.random.default_rng(3).permutation(12800).reshape(8, 1600).astype(np.float32)
    values, places = (np.asarray(v) for v in shardpass.compile(module)(x))
    expected = np.argsort(-x, axis=1)[:, :4]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


def test_the_least_elements_are_taken_row_by_row() -> None:
    module, codes = partitioned(PORTABLE.format(split="{devices=[4,1]<=[4]}", largest="false", size=16))
    assert (collectives(module), codes) == ([], [])


def test_rows_of_xlas_own_top_k_stay() -> None:
    module, codes = partitioned(OTHER)
    assert (collectives(module), codes) == ([], [])


@pytest.mark.parametrize(("split", "gathers"), [("[4,1]", 0), ("[1,4]", 1)])
def test_an_approximate_top_k(split: str, gathers: int) -> None:
    """Rows are a batch; along the ordered dimension the operand is gathered, as its choice is not one of candidates."""
    text = jax.jit(lambda x: jax.lax.approx_max_k(x, 4)).lower(jnp.zeros((8, 16), jnp.float32)).as_text()
    text = text.replace("mhlo.num_partitions = 1", "mhlo.num_partitions = 4")
    said = f'{{mhlo.sharding = "{{devices={split}<=[4]}}"}}'
    text = text.replace("%arg0: tensor<8x16xf32>", f"%arg0: tensor<8x16xf32> {said}")
    module, _ = partitioned(text)
    kinds = [use.kind for use in collectives(module)]
    assert (kinds != []) == bool(gathers)
    x = np.random.default_rng(4).permutation(128).reshape(8, 16).astype(np.float32)
    values, places = (np.asarray(v) for v in shardpass.compile(module)(x))
    expected = np.argsort(-x, axis=1)[:, :4]
    np.testing.assert_array_equal(np.sort(values), np.sort(np.take_along_axis(x, expected, 1)))
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)


@pytest.mark.parametrize(("operand", "results"), [("2", ("", "")), ("", ("", ""))])
def test_a_portable_top_k_of_other_shapes_is_computed_whole(operand, results):
    first, second = (
        f"tensor<{shape}x{of}>".replace("<x", "<") for shape, of in zip(results, ("f32", "i32"), strict=True)
    )
    given = f"tensor<{operand}xf32>".replace("<x", "<")
    module = f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func @main(%x: {given}) -> ({first}, {second}) {{
    %0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = 1 : i64, largest = true}}}} : ({given}) -> ({first}, {second})
    return %0#0, %0#1 : {first}, {second}
  }}
}}"""  # noqa: E501
    assert f": ({given}) -> ({first}, {second})" in str(shardpass.run_pipeline(module, "partition"))
