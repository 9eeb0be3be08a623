"""Random numbers: those of one device, or one device's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from support.split import check_split

import shardpass
from shardpass.diagnostics import collect

pytestmark = pytest.mark.turns(2)

MESHES = [(8,), (4, 2), (2, 3)]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
@pytest.mark.parametrize("dtype", ["uint32", "uint8"])
def test_bits_are_those_of_one_device(mesh: tuple[int, ...], algorithm: str, dtype: str) -> None:
    def bits(key: Any) -> Any:
        how = getattr(lax.RandomAlgorithm, algorithm)
        return lax.rng_bit_generator(key, (26, 10), dtype=np.dtype(dtype), algorithm=how)

    y = "y" if len(mesh) > 1 else None
    key = np.array([1, 2, 3, 4], np.uint32)
    seen = check_split(bits, [key], [P()], mesh, [P(), P("x", y)])
    assert seen.kinds == []


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_every_generator_of_jax(implementation: str) -> None:
    def draws(seed: Any) -> Any:
        key = jax.random.key(seed, impl=implementation)
        one, other = jax.random.split(key)
        return jax.random.normal(one, (50, 6)), jax.random.permutation(other, 24), jax.random.bernoulli(key, 0.3, (48,))

    seen = check_split(draws, [np.uint32(7)], [P()], (8,), [P("x"), P(), P("x")])
    assert not [d for d in seen.diagnostics if "has no rule" in d.message]


@pytest.mark.parametrize(
    "sharding", ["{replicated}", "{devices=[4,1]<=[4]}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"]
)
@pytest.mark.parametrize(
    ("element", "low", "high", "how"),
    [("f32", "0.0", "1.0", "UNIFORM"), ("i32", "0", "1000000", "UNIFORM"), ("f32", "5.0", "1.0", "NORMAL")],
)
def test_rng_is_one_drawing(sharding: str, element: str, low: str, high: str, how: str) -> None:
    """Every copy of an element is the same, and no two tiles are."""
    s, r = f"tensor<{element}>", f"tensor<8x6x{element}>"
    text = f"""
      module attributes {{mhlo.num_partitions = 4 : i32}} {{
        func.func @main() -> ({r} {{mhlo.sharding = "{sharding}"}}, {r} {{mhlo.sharding = "{{replicated}}"}}) {{
          %a = stablehlo.constant dense<{low}> : {s}
          %b = stablehlo.constant dense<{high}> : {s}
          %c = stablehlo.constant dense<[8, 6]> : tensor<2xi64>
          %0 = stablehlo.rng %a, %b, %c, distribution = {how} : ({s}, {s}, tensor<2xi64>) -> {r}
          return %0, %0 : {r}, {r}
        }}
      }}"""
    with collect():
        executable = shardpass.compile(shardpass.run_pipeline(text, "partition"))
    split, copies = executable()
    expected = np.asarray(copies)
    for shard in [*copies.addressable_shards, *split.addressable_shards]:
        np.testing.assert_array_equal(np.asarray(shard.data), expected[shard.index])
    assert len(np.unique(expected)) > 40
    if how == "UNIFORM":
        assert expected.min() >= float(low)
        assert expected.max() < float(high)
