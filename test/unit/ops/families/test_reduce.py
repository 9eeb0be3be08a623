"""Reductions of several operands, with any reducer and any initial value, against one device."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.differential import check_text, draw
from support.split import check_split

from shardpass.element_types import element_type

pytestmark = pytest.mark.turns(2)

MESHES = [(8,), (4, 2), (2, 3)]
RNG = np.random.default_rng(5)


def both(x: Any) -> Any:
    return jnp.argmax(x, axis=1), jnp.argmin(x, axis=1)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("size", [960, 963])
def test_arg_max_over_a_split_dimension(mesh: tuple[int, ...], size: int) -> None:
    """Values repeat, so the lower position must win across devices; the parts are gathered, not the operand."""
    x = draw(RNG, (4, size), np.float32)
    seen = check_split(both, [x], [P(None, "x")], mesh, interpreter=True)
    assert set(seen.kinds) == {"all_gather"}
    # of the two reductions, the others' 4 values and 4 places each
    assert sum(use.bytes_received for use in seen.collectives) == 2 * (mesh[0] - 1) * 4 * (4 + 4)


@pytest.mark.parametrize("size", [24, 26])
def test_arg_max_beside_a_split_dimension(size: int) -> None:
    seen = check_split(both, [draw(RNG, (size, 9), np.int32)], [P("x")], (8,), [P("x"), P("x")])
    assert seen.kinds == []


def test_parts_that_are_all_padding() -> None:
    """9 over 8 devices: tiles of 2, three devices have nothing. Every value is below the padding's."""
    x = -np.arange(1, 55, dtype=np.float32).reshape(6, 9) - 1000
    check_split(both, [x], [P(None, "x")], (8,), interpreter=True)
    check_split(both, [x], [P("x", "y")], (4, 2), interpreter=True)


def test_nan_and_infinities() -> None:
    x = np.full((3, 50), -np.inf, np.float32)
    x[1, 37] = np.nan
    x[2, 20:] = np.inf
    check_split(both, [x], [P(None, "x")], (8,))


def test_all_dimensions_at_once() -> None:
    x = draw(RNG, (12, 10), np.int32)
    check_split(lambda x: jnp.argmax(x), [x], [P("x", "y")], (4, 2))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("reducer", [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lambda a, b: a * b])
def test_reducers_without_an_all_reduce(mesh: tuple[int, ...], reducer: Any) -> None:
    """With an initial value that is no identity: it counts once."""
    x = RNG.integers(1, 200, (50, 4)).astype(np.int32)

    def function(x: Any) -> Any:
        return lax.reduce(x, np.int32(7), reducer, (0,))

    check_split(function, [x], [P("x")], mesh, interpreter=True)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize(("reducer", "start"), [(lax.add, 100.0), (lax.mul, 2.0), (lax.max, 1.0), (lax.min, -1.0)])
def test_an_initial_value_counts_once(mesh: tuple[int, ...], reducer: Any, start: float) -> None:
    x = RNG.choice([-1.0, 1.0], (26, 6)).astype(np.float32)

    def function(x: Any, start: Any) -> Any:
        return lax.reduce(x, start, reducer, (0,)), lax.reduce(x, start, reducer, (0, 1))

    seen = check_split(function, [x, np.float32(start)], [P("x"), P()], mesh, interpreter=True)
    assert set(seen.kinds) == {"all_reduce"}


def test_an_initial_value_counts_where_tiles_are_one_element() -> None:
    """XLA drops the initial value of a reduction of one element; here each device has one."""
    seen = check_split(
        lambda x: lax.reduce(x, np.float32(3), lax.add, (1,)), [draw(RNG, (400, 6), np.float32)], [P(None, "x")], (6,)
    )
    assert seen.kinds == ["all_reduce"]


def reduce_text(element: str, body: str, init: str) -> str:
    x, s, r = f"tensor<500x{element}>", f"tensor<{element}>", f"tensor<{element}>"
    return f"""
      module attributes {{mhlo.num_partitions = 6 : i32}} {{
        func.func @main(%x: {x} {{mhlo.sharding = "{{devices=[6]<=[6]}}"}}) -> {r} {{
          %i = stablehlo.constant dense<{init}> : {s}
          %0 = stablehlo.reduce(%x init: %i) across dimensions = [0] : ({x}, {s}) -> {r}
            reducer(%a: {s}, %b: {s}) {{
              {body}
              stablehlo.return %1 : {s}
            }}
          return %0 : {r}
        }}
      }}"""


def test_a_reducer_that_does_not_commute() -> None:
    """The last element: parts are joined in order, whatever the initial value is."""
    body = "%c = stablehlo.constant dense<0> : tensor<i32>\n%1 = stablehlo.add %b, %c : tensor<i32>"
    seen = check_text(reduce_text("i32", body, "5"), [np.arange(500, dtype=np.int32)], interpreter=True)
    assert seen.kinds == ["all_gather"]


@pytest.mark.parametrize("element", ["i1", "i8", "ui8", "i64", "ui64", "f16", "bf16", "f64", "complex<f32>", "f8E5M2"])
def test_every_element_type(element: str) -> None:
    """A reducer that no collective knows: keep the left operand; the initial value is that."""
    s = f"tensor<{element}>"
    body = f"%t = stablehlo.constant dense<true> : tensor<i1>\n%1 = stablehlo.select %t, %a, %b : tensor<i1>, {s}"
    init = {"i1": "true", "complex<f32>": "(2.0, 1.0)"}.get(element, "2" if "i" in element else "2.0")
    seen = check_text(reduce_text(element, body, init), [draw(RNG, (500,), element_type(element).dtype)])
    assert seen.kinds == ["all_gather"]
