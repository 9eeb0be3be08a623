"""Slices of what was only put together: simpler, and the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import shardpass
from shardpass.ir.tensors import operation, walk_blocks
from shardpass.runtime.interpreter import evaluate

X = np.arange(80, dtype=np.float32).reshape(10, 8)
Y = -np.arange(48, dtype=np.float32).reshape(6, 8)


def imported(function: Callable[..., Any], *arguments: Any, text: str = "") -> Any:
    text = text or jax.jit(function).lower(*arguments).as_text()
    return shardpass.run_pipeline(text, "shardpass-import")


def ops(module: Any) -> Counter[str]:
    main = module.body.operations[0]
    blocks = walk_blocks(operation(main))
    return Counter(str(operation(o).name).removeprefix("stablehlo.") for block in blocks for o in block.operations)


def values(module: Any, *arguments: Any) -> list[np.ndarray]:
    return evaluate(str(module.operation).encode(), arguments)


def wrapped(x: Any) -> Any:
    return jnp.pad(x, 1, mode="wrap")


# what is left of slices, pads and concatenates, and the same in NumPy
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any, dict[str, int]]] = {
    "all of it": (lambda x: lax.slice(x, (0, 0), (10, 8)), (X,), X, {}),
    "a slice of a slice": (lambda x: x[1:9:2, 2:][1:, ::3], (X,), X[1:9:2, 2:][1:, ::3], {"slice": 1}),
    "the inside of a pad": (lambda x: jnp.pad(x, 1)[1:-1, 1:-1], (X,), X, {}),
    "a pad moved": (lambda x: jnp.pad(x, 1)[:-2, 1:-1], (X,), np.pad(X, 1)[:-2, 1:-1], {"pad": 1}),
    "less than the inside": (lambda x: jnp.pad(x, 2)[3:-4, 2:-2], (X,), X[1:-2], {"slice": 1}),
    "only padding": (lambda x: jnp.pad(x, 3)[:2], (X,), np.pad(X, 3)[:2], {"pad": 1, "slice": 1}),
    "every other of a pad": (lambda x: jnp.pad(x, 1)[::2], (X,), np.pad(X, 1)[::2], {"pad": 1, "slice": 1}),
    "one part": (lambda x, y: jnp.concatenate([x, y])[12:15], (X, Y), Y[2:5], {"slice": 1}),
    "a whole part": (lambda x, y: jnp.concatenate([x, y])[10:], (X, Y), Y, {}),
    "two parts": (
        lambda x, y: jnp.concatenate([x, y, x])[4:16],
        (X, Y),
        np.concatenate([X[4:], Y]),
        {"slice": 1, "concatenate": 1},
    ),
    "along another dimension": (
        lambda x, y: jnp.concatenate([x, y])[:, 1:],
        (X, Y),
        np.concatenate([X, Y])[:, 1:],
        {"slice": 1, "concatenate": 1},
    ),
    "an array wrapped round and moved": (
        lambda x: wrapped(x)[:-2, 1:-1],
        (X,),
        np.roll(X, 1, 0),
        {"slice": 2, "concatenate": 1},
    ),
    "wrapped round and moved in the last dimension": (
        lambda x: wrapped(x)[1:-1, 2:],
        (X,),
        np.roll(X, -1, 1),
        {"slice": 2, "concatenate": 1},
    ),
    "wrapped round and moved in both": (
        lambda x: wrapped(x)[:-2, :-2],
        (X,),
        np.roll(X, (1, 1), (0, 1)),
        {"slice": 4, "concatenate": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name: str) -> None:
    function, arguments, expected, left = CASES[name]
    module = imported(function, *arguments)
    found = ops(module)
    assert {n: found[n] for n in ("slice", "pad", "concatenate") if found[n]} == left
    np.testing.assert_array_equal(values(module, *arguments)[0], expected)


def test_a_whole_that_others_use_is_not_put_together_again() -> None:
    def function(x: Any, y: Any) -> Any:
        both = jnp.concatenate([x, y])
        return both[1:], both[:-1], both[2:5]

    module = imported(function, X, Y)
    assert ops(module)["concatenate"] == 1
    both = np.concatenate([X, Y])
    for found, expected in zip(values(module, X, Y), (both[1:], both[:-1], both[2:5]), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_says_its_own_sharding_stays() -> None:
    text = """
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.pad %x, %c, low = [1], high = [1], interior = [0] {mhlo.sharding = "{devices=[2]<=[2]}"}
           : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
      %1 = stablehlo.slice %0 [2:10] : (tensor<10xf32>) -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }"""
    assert ops(imported(len, text=text))["slice"] == 1
    free = text.replace('{mhlo.sharding = "{devices=[2]<=[2]}"}', "").replace(
        "%x: tensor<8xf32>", '%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}'
    )
    assert ops(imported(len, text=free))["slice"] == 0


def test_a_pad_outside_of_the_loop_stays_there() -> None:
    def function(x: Any) -> Any:
        p = jnp.pad(x, 1)
        return lax.fori_loop(0, 3, lambda _, u: u + p[:-2, 1:-1], x)

    module = imported(function, X)
    found = ops(module)
    assert found["pad"] == 1
    assert found["slice"] == 1
    np.testing.assert_array_equal(values(module, X)[0], X + 3 * np.pad(X, 1)[:-2, 1:-1])


@st.composite
def chains(draw: st.DrawFn) -> tuple[tuple[int, int], list[tuple[str, Any]]]:
    """A shape and a few cuts, pads and joins, each as (kind, numbers)."""
    shape = [draw(st.integers(1, 6)), draw(st.integers(1, 6))]
    start, steps = (shape[0], shape[1]), []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["slice", "slice", "pad", "join"]))
        dim = draw(st.integers(0, 1))
        if kind == "slice":
            first = draw(st.integers(0, shape[dim]))
            last = draw(st.integers(first, shape[dim]))
            step = draw(st.sampled_from([1, 1, 1, 2, 3]))
            steps.append((kind, (dim, first, last, step)))
            shape[dim] = -(-(last - first) // step)
        elif kind == "pad":
            low, high, inside = draw(st.integers(-2, 3)), draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 1]))
            size = shape[dim] + low + high + inside * max(shape[dim] - 1, 0)
            if size >= 0:
                steps.append((kind, (dim, low, high, inside)))
                shape[dim] = size
        else:
            steps.append((kind, (dim, draw(st.booleans()))))
            shape[dim] *= 2
    return start, steps


@given(chains())
def test_the_same_values(chain: tuple[tuple[int, int], list[tuple[str, Any]]]) -> None:
    """Before and after, in the reference interpreter."""
    shape, steps = chain

    def function(x: Any) -> Any:
        for kind, numbers in steps:
            dim = numbers[0]
            row = [(0, 0, 0), (0, 0, 0)]
            if kind == "slice":
                x = lax.slice_in_dim(x, numbers[1], numbers[2], numbers[3], dim)
            elif kind == "pad":
                row[dim] = numbers[1:]
                x = lax.pad(x, np.float32(7), row)
            else:
                x = jnp.concatenate([x, -x if numbers[1] else x], dim)
        return x

    x = np.arange(1, shape[0] * shape[1] + 1, dtype=np.float32).reshape(shape)
    text = jax.jit(function).lower(x).as_text()
    expected = evaluate(text.encode(), [x])[0]
    np.testing.assert_array_equal(values(imported(function, text=text), x)[0], expected)
