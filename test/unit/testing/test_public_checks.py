"""Checks that public projects write by searching the text of compiled HLO, restated as assertions.

Each names the collectives that the project expects, with arithmetic for the bytes: in a ring a device receives
2(n-1)/n of an all_reduce, and n-1 tiles of an all_gather. The text searches of these projects broke where XLA wrote
asynchronous, combined or fused collectives, or other replica groups. The assertions have one verdict with all
supported versions of jax.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from shardpass.testing import CollectivesError, assert_collectives

GATHERS = ("all_gather", "all_to_all", "collective_permute")


def mesh(**axes: int) -> AbstractMesh:
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


RING, PAIRS = mesh(x=8), mesh(dp=2, tp=2)


def f32(over: AbstractMesh, spec: P, *shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(over, spec))


# ---------------------------------------------------------------- TransformerEngine#3398, #3412, #3425

NORMS = mesh(dp=4, tp=2)


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return jnp.mean(((x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias) ** 2)


def test_a_layer_norm_sums_its_loss_and_the_gradients_of_its_weights() -> None:
    given = f32(NORMS, P("dp"), 64, 64), f32(NORMS, P(), 64), f32(NORMS, P(), 64)
    step = jax.jit(
        jax.value_and_grad(layer_norm, (0, 1, 2)), out_shardings=(None, tuple(one.sharding for one in given))
    )
    expect = {("all_reduce", ("dp",)): 3}
    assert_collectives(step, *given, expect=expect, never=GATHERS, at_most=(4 + 2 * 64 * 4) * 2 * 3 // 4)


def test_a_layer_norm_over_tensor_parallel_devices_sends_nothing() -> None:
    over = mesh(tp=8)
    given = f32(over, P(), 64, 64), f32(over, P(), 64), f32(over, P(), 64)
    assert_collectives(jax.jit(jax.value_and_grad(layer_norm, (0, 1, 2))), *given, at_most=0)


# ---------------------------------------------------------------- jax#36354, jax#31112, jax#34434, jax#40572

PRODUCTS = [  # specs of the left side, the right side and the result; the collective, and its operand's floats
    (P("dp", None, "tp"), P("dp", None, "tp"), P("dp"), "all_reduce", 512 * 512),
    (P("dp", None, "tp"), P("dp", "tp"), P("dp", None, "tp"), "all_gather", 512 * 512),
    (P("dp"), P("dp", "tp"), P("dp", None, "tp"), "", 0),
    (P("dp", "tp"), P("dp", "tp"), P("dp", "tp"), "all_gather", 256 * 1024),
]


@pytest.mark.parametrize(("left", "right", "result", "kind", "floats"), PRODUCTS)
def test_batched_products_have_the_collective_of_their_specs(
    left: P, right: P, result: P, kind: str, floats: int
) -> None:
    product = jax.jit(lambda a, b: jnp.einsum("bmk,bnk->bmn", a, b), out_shardings=NamedSharding(PAIRS, result))
    given = f32(PAIRS, left, 2, 512, 1024), f32(PAIRS, right, 2, 512, 1024)
    # of two devices each receives its operand's bytes, by a gather and by a sum
    assert_collectives(product, *given, expect={(kind, ("tp",)): 1} if kind else {}, at_most=floats * 4)


# ---------------------------------------------------------------- sglang-jax#1083

EMBEDDING = mesh(data=4, tensor=2)


def embed(spec: P, table: Any, tokens: Any) -> Any:
    rows = jnp.take(table, tokens, axis=0, mode="clip")
    return jax.lax.with_sharding_constraint(rows, NamedSharding(EMBEDDING, spec))


def test_an_embedding_gathers_over_data_only_where_its_result_asks_for_it() -> None:
    tokens = jax.ShapeDtypeStruct((16,), jnp.int32, sharding=NamedSharding(EMBEDDING, P("data")))
    given = f32(EMBEDDING, P("tensor"), 64, 32), tokens
    wanted: Any = {"expect": {("all_reduce", ("tensor",)): 1}, "never": [("all_gather", ("data",))]}
    assert_collectives(jax.jit(partial(embed, P("data"))), *given, **wanted)
    with pytest.raises(CollectivesError, match="all_gather over data: expected never, got 1"):
        assert_collectives(jax.jit(partial(embed, P())), *given, **wanted)


# ---------------------------------------------------------------- flash_attn_jax#10

NEXT = [(device, (device + 1) % 8) for device in range(8)]


@partial(jax.shard_map, mesh=RING, in_specs=(P("x"),) * 3, out_specs=P("x"))
def ring_attention(q: Any, k: Any, v: Any) -> Any:
    def turn(carried: Any, _: None) -> Any:
        out, k, v = carried
        return (out + jax.nn.softmax(q @ k.T) @ v, *(jax.lax.ppermute(one, "x", NEXT) for one in (k, v))), None

    (out, k, v), _ = jax.lax.scan(turn, (jnp.zeros_like(q), k, v), None, length=7)
    return out + jax.nn.softmax(q @ k.T) @ v


def test_ring_attention_sends_keys_and_values_to_seven_neighbors_in_its_loop() -> None:
    given = [f32(RING, P("x"), 64, 16)] * 3
    expect = {("collective_permute", ("x",)): 14}
    assert_collectives(jax.jit(ring_attention), *given, expect=expect, never=["all_gather"], at_most=14 * 8 * 16 * 4)


# ---------------------------------------------------------------- marin#8370


@partial(jax.shard_map, mesh=RING, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
def mean_in_each_layer(x: Any, weights: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        x = jnp.tanh(x @ w)
        return x, jax.lax.pmean(jnp.mean(x, 0), "x")

    return jax.lax.scan(layer, x, weights)


@partial(jax.shard_map, mesh=RING, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
def mean_after_the_layers(x: Any, weights: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        x = jnp.tanh(x @ w)
        return x, jnp.mean(x, 0)

    x, means = jax.lax.scan(layer, x, weights)
    return x, jax.lax.pmean(means, "x")


def test_statistics_of_layers_are_summed_once() -> None:
    given = f32(RING, P("x"), 64, 16), f32(RING, P(), 6, 16, 16)
    assert_collectives(jax.jit(mean_after_the_layers), *given, expect={("all_reduce", ("x",)): 1})
    with pytest.raises(CollectivesError, match=r"all_reduce over x: expected 1, got 6"):
        assert_collectives(jax.jit(mean_in_each_layer), *given, expect={("all_reduce", ("x",)): 1})


# ---------------------------------------------------------------- Enzyme-JAX#2092, Enzyme-JAX#2095


def test_a_stencil_sends_its_two_borders_and_gathers_nothing() -> None:
    field = f32(RING, P("x"), 64, 32)
    step = jax.jit(lambda x: x + jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0), out_shardings=field.sharding)
    never = ["all_gather", "all_to_all", "all_reduce"]
    assert_collectives(step, field, expect={"collective_permute": 2}, never=never, at_most=2 * 32 * 4)


# ---------------------------------------------------------------- jax#35650


def test_an_argsort_gathers_once_whoever_reshards() -> None:
    values = f32(RING, P("x"), 64)
    first = jax.jit(lambda x: jnp.argsort(jax.lax.with_sharding_constraint(x, NamedSharding(RING, P()))))
    for sort in (jax.jit(jnp.argsort), first):
        assert_collectives(sort, values, expect={("all_gather", ("x",)): 1}, at_most=7 * 8 * 4)
