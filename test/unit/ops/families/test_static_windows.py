"""Updates of a window at a known place: right on tiles, and only what crosses a border is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.split import check_split

import shardpass

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(3)
ROW = 16 * 4  # bytes of a row of 16 numbers


def grid(rows: int, dtype: Any = np.float32) -> Any:
    """Numbers with a -0.0 among them, where the type has one."""
    found = np.round(RNG.normal(size=(rows, 16)) * 8)
    found[0, 0] = found[rows // 2, 3] = -0.0
    return (found + 1j * found[::-1]).astype(dtype) if np.dtype(dtype).kind == "c" else found.astype(dtype)


def laplace(x: Any) -> Any:
    return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]


FORMS: dict[str, Callable[[Any], Any]] = {
    "set, rows": lambda x: x.at[1:-1].set(x[2:] + x[:-2]),
    "set, both dimensions": lambda x: x.at[1:-1, 1:-1].set(laplace(x)),
    "set, the first rows": lambda x: x.at[:-3].set(x[3:]),
    "set, all": lambda x: x.at[:].set(x + x),
    "add": lambda x: x.at[1:-1].add(x[2:]),
    "multiply": lambda x: x.at[2:].multiply(x[:-2]),
    "maximum": lambda x: x.at[2:].max(x[:-2]),
    "minimum": lambda x: x.at[:-1].min(x[1:]),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[2:] + x[:-2], (1, 0)),
    "dynamic_update_slice, clamped": lambda x: lax.dynamic_update_slice(x, x[2:] + x[:-2], (-7, 100)),
}


@pytest.mark.parametrize(("mesh", "spec"), [((8,), P("x")), ((4, 2), P("x", "y")), ((2, 3), P("y", "x"))])
@pytest.mark.parametrize("rows", [32, 21])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_split_gives_what_one_device_gives(form: Any, rows: int, mesh: tuple[int, ...], spec: P) -> None:
    check_split(form, [grid(rows)], [spec], mesh)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, jnp.bfloat16, np.complex64])
@pytest.mark.parametrize("form", ["set, both dimensions", "add"])
def test_element_types(form: str, dtype: Any) -> None:
    check_split(FORMS[form], [grid(24, dtype)], [P("x")], (8,))


@pytest.mark.parametrize("form", ["maximum", "minimum", "set, rows"])
def test_truth_values(form: str) -> None:
    """The greatest and the least truth value are true and false; beside the window nothing changes."""
    bits = RNG.integers(0, 2, (24, 16)).astype(bool)
    seen = check_split(FORMS[form], [bits], [P("x")], (8,), [P("x")])
    assert form != "set, rows" or "all_gather" not in seen.kinds


@pytest.mark.parametrize("body", ["", "%s = stablehlo.add %a, %b : tensor<f32>"])
def test_updates_of_another_element_type_stay_a_scatter(body: str) -> None:
    """StableHLO lets the body widen them; a pad takes one type."""
    text = f"""
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<16xf32> {{mhlo.sharding = "{{devices=[4]<=[4]}}"}}, %u: tensor<12xbf16>)
      -> tensor<16xf32> {{
    %i = stablehlo.constant dense<2> : tensor<1xi32>
    %0 = "stablehlo.scatter"(%x, %i, %u) <{{
      scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>
    }}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      {body}
      stablehlo.return {"%s" if body else "%b"} : tensor<f32>
    }}) : (tensor<16xf32>, tensor<1xi32>, tensor<12xbf16>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }}
}}"""
    module = shardpass.run_pipeline(text, "partition")  # verified after each pass; XLA itself takes no two types
    assert "stablehlo.scatter" in str(module)


def test_booleans() -> None:
    check_split(lambda x: x.at[1:-1].set(x[2:] ^ x[:-2]), [grid(24) > 0], [P("x")], (8,))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_device_receives_rows_of_its_neighbours_alone(form: Any) -> None:
    """At most 3 rows on either side; an update that is needed whole would be 7 tiles of 4 rows."""
    seen = check_split(form, [grid(32)], [P("x")], (8,), [P("x")])
    assert {use.kind for use in seen.collectives} <= {"collective_permute"}
    assert sum(use.bytes_received for use in seen.collectives) <= 6 * ROW


@pytest.mark.parametrize(("form", "cut"), [("set, rows", 1), ("set, both dimensions", 2)])
def test_places_are_compared_along_what_is_cut_alone(form: str, cut: int) -> None:
    """Of what the window has whole every place is inside."""
    text = expanded(jax.jit(FORMS[form]).lower(jax.ShapeDtypeStruct((32, 16), np.float32)).as_text())
    assert text.count("stablehlo.iota") == cut


def test_what_is_added_outside_of_the_window_keeps_the_sign_of_zero() -> None:
    """A scatter does not touch it; +0.0 would make 0.0 of -0.0."""
    x = jax.ShapeDtypeStruct((8,), np.float32)
    text = jax.jit(lambda x: x.at[1:-1].add(x[2:])).lower(x).as_text()
    found = expanded(text)
    assert "stablehlo.scatter" not in found
    assert "dense<-0.000000e+00>" in found


def expanded(text: str) -> str:
    return str(shardpass.run_pipeline(text, "import"))


OUTSIDE = """func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}, %u: tensor<6xf32>) -> tensor<8xf32> {
  %i = stablehlo.constant dense<3> : tensor<1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""  # noqa: E501  IR is not wrapped


def test_a_window_that_is_not_inside_stays_a_scatter() -> None:
    """XLA drops it whole; a pad would write what is inside."""
    assert "stablehlo.scatter" in expanded(OUTSIDE)
    assert "stablehlo.scatter" not in expanded(OUTSIDE.replace("dense<3>", "dense<2>"))


@pytest.mark.parametrize("position", ["1", "p"])
@pytest.mark.parametrize("size", [3, 4])
def test_small_updates_and_unknown_places_stay(position: str, size: int) -> None:
    """Of 8 elements, 3 are written in place; 4 or more at a known place are padded."""
    start = 1 if position == "1" else None
    shapes = [jax.ShapeDtypeStruct((8,), np.float32), jax.ShapeDtypeStruct((size,), np.float32)]
    shapes += [] if position == "1" else [jax.ShapeDtypeStruct((), np.int32)]
    lowered = jax.jit(lambda x, u, p=start: lax.dynamic_update_slice(x, u, (p,))).lower(*shapes).as_text()
    stays = "stablehlo.dynamic_update_slice" in expanded(lowered)
    assert stays == (position == "p" or size == 3)
