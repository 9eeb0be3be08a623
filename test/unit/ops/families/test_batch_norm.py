"""Batch norms split over any dimension: equal to XLA's own op on one device, and to NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.runtime import interpret

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(23)
EPSILON = 0.125

TEXT = """
module attributes {{mhlo.num_partitions = {devices} : i32}} {{
func.func @main(%x: tensor<{x}> {{mhlo.sharding = "{split}"}}, %s: tensor<{f}>, %o: tensor<{f}>, %m: tensor<{f}>,
    %v: tensor<{f}>, %g: tensor<{x}>)
    -> (tensor<{x}>, tensor<{x}>, tensor<{f}>, tensor<{f}>, tensor<{x}>, tensor<{f}>, tensor<{f}>) {{
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{{epsilon = {e} : f32, feature_index = {d} : i64}}>
      : (tensor<{x}>, tensor<{f}>, tensor<{f}>, tensor<{f}>, tensor<{f}>) -> tensor<{x}>
  %1:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{{epsilon = {e} : f32, feature_index = {d} : i64}}>
      : (tensor<{x}>, tensor<{f}>, tensor<{f}>) -> (tensor<{x}>, tensor<{f}>, tensor<{f}>)
  %2:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) <{{epsilon = {e} : f32, feature_index = {d} : i64}}>
      : (tensor<{x}>, tensor<{f}>, tensor<{f}>, tensor<{f}>, tensor<{x}>)
      -> (tensor<{x}>, tensor<{f}>, tensor<{f}>)
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1, %2#2 : tensor<{x}>, tensor<{x}>, tensor<{f}>, tensor<{f}>,
      tensor<{x}>, tensor<{f}>, tensor<{f}>
}}
}}
"""


def program(shape: tuple[int, ...], feature: int, split: str, devices: int, element: str = "f32") -> str:
    x = "x".join(map(str, shape))
    return TEXT.format(
        x=f"{x}x{element}", f=f"{shape[feature]}x{element}", split=split, devices=devices, d=feature, e=EPSILON
    )


def arguments(shape: tuple[int, ...], feature: int, dtype: str = "float32") -> list[np.ndarray]:
    n = shape[feature]
    x, g = RNG.standard_normal(shape) * 3 + 1, RNG.standard_normal(shape)
    s, o, m, v = (RNG.standard_normal(n) for _ in range(4))
    return [a.astype(dtype) for a in (x, s, o, m, v * v, g)]


def by_numpy(feature: int, *given: np.ndarray) -> list[np.ndarray]:
    """The gradients by the chain rule, not by the specification's formula, where the two could share a mistake."""
    x, s, o, m, v, g = (a.astype(np.float64) for a in given)
    others = tuple(d for d in range(x.ndim) if d != feature)
    column = [1] * x.ndim
    column[feature] = -1

    def spread(a: np.ndarray) -> np.ndarray:
        return a.reshape(column)

    def normalised(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return (x - spread(mean)) / np.sqrt(spread(variance) + EPSILON)

    count = x.size // x.shape[feature]
    mean, variance = x.mean(others), x.var(others)
    hat = normalised(m, v)
    upstream = g * spread(s)
    inner = upstream - spread(upstream.sum(others) / count) - hat * spread((upstream * hat).sum(others) / count)
    return [
        hat * spread(s) + spread(o),
        normalised(mean, variance) * spread(s) + spread(o),
        mean,
        variance,
        inner / np.sqrt(spread(v) + EPSILON),
        (g * hat).sum(others),
        g.sum(others),
    ]


CASES = [
    ((6, 4, 8), 2, "{devices=[4,1,1]<=[4]}", 4),
    ((6, 4, 8), 2, "{devices=[1,1,4]<=[4]}", 4),
    ((5, 7, 3), 2, "{devices=[2,2,1]<=[4]}", 4),
    ((5, 7, 3), 1, "{devices=[2,1,3]<=[6]}", 6),
    ((5, 7, 3), 0, "{devices=[1,1,2,3]<=[6] last_tile_dim_replicate}", 6),
    ((7, 3), 1, "{devices=[3,2]<=[2,3]T(1,0)}", 6),
]


@pytest.mark.parametrize(("shape", "feature", "split", "devices"), CASES)
def test_any_dimension_may_be_split(shape: tuple[int, ...], feature: int, split: str, devices: int) -> None:
    given = arguments(shape, feature)
    text = program(shape, feature, split, devices)
    seen = check_text(text, given)
    executable = shardpass.compile(seen.module)
    for found, expected in zip(executable(*given), by_numpy(feature, *given), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-4, atol=2e-4)


def test_the_reference_interpreter_agrees() -> None:
    """It has no batch norms of its own; the program is made of what it has."""
    given = arguments((5, 7, 3), 2)
    module = shardpass.run_pipeline(program((5, 7, 3), 2, "{devices=[2,2,1]<=[4]}", 4), "partition")
    found = interpret(module, *given)
    for one, expected in zip(found, by_numpy(2, *given), strict=True):
        np.testing.assert_allclose(np.asarray(one), expected, rtol=2e-4, atol=2e-4)


def test_only_one_number_a_feature_is_sent() -> None:
    """The operand and its gradient stay split: four sums of 8 features over four devices are reduced.

    With the gradient whole on each device, an all_gather of 24 bytes would replace an all_reduce of 48, and a device
    would store 1.6 times as much.
    """
    text = program((16, 32, 8), 2, "{devices=[4,1,1]<=[4]}", 4)
    module = shardpass.run_pipeline(text, "partition")
    seen = check_text(text, arguments((16, 32, 8), 2))
    sent = sorted((use.kind, use.bytes_received) for use in seen.collectives)
    features = 8 * 4  # bytes
    assert sent == [("all_reduce", 2 * features * 3 // 4)] * 4, str(module)


REGION = """
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%x: tensor<10x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>},
    %s: tensor<6xf32>) -> (tensor<10x6xf32>, tensor<12xf32>) {
  %0:2 = sdy.manual_computation(%x, %s) in_shardings=[<@m, [{"x"}, {}]>, <@m, [{}]>]
      out_shardings=[<@m, [{"x"}, {}]>, <@m, [{"x"}]>] manual_axes={"x"} (%a: tensor<5x6xf32>, %b: tensor<6xf32>) {
    %r = sdy.sharding_constraint %a <@m, [{"y"}, {}]> : tensor<5x6xf32>
    %1:3 = "stablehlo.batch_norm_training"(%r, %b, %b) <{epsilon = 0.125 : f32, feature_index = 1 : i64}>
        : (tensor<5x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<5x6xf32>, tensor<6xf32>, tensor<6xf32>)
    sdy.return %1#0, %1#1 : tensor<5x6xf32>, tensor<6xf32>
  } : (tensor<10x6xf32>, tensor<6xf32>) -> (tensor<10x6xf32>, tensor<12xf32>)
  return %0#0, %0#1 : tensor<10x6xf32>, tensor<12xf32>
}
"""


def test_in_a_region_that_is_manual_over_some_axes() -> None:
    """Each half of the batch has statistics of its own; its 5 rows are split further, in tiles of 3."""
    x, s = RNG.standard_normal((10, 6)).astype(np.float32), RNG.standard_normal(6).astype(np.float32)
    found = shardpass.compile(shardpass.run_pipeline(REGION, "partition"))(x, s)
    halves = [h.astype(np.float64) for h in (x[:5], x[5:])]
    expected = [(h - h.mean(0)) / np.sqrt(h.var(0) + EPSILON) * s + s for h in halves]
    np.testing.assert_allclose(np.asarray(found[0]), np.concatenate(expected), rtol=2e-4, atol=2e-4)
    means = np.concatenate([h.mean(0) for h in halves])
    np.testing.assert_allclose(np.asarray(found[1]), means, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_narrow_floats_are_summed_wide(element: str) -> None:
    """A mean of 100,000 elements of size 1 is 1, though neither type holds the count, or the sum, exactly."""
    text = f"""
module attributes {{mhlo.num_partitions = 4 : i32}} {{
func.func @main(%x: tensor<100000x2x{element}> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}, %s: tensor<2x{element}>)
    -> (tensor<2x{element}>, tensor<2x{element}>) {{
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{{epsilon = 1.0 : f32, feature_index = 1 : i64}}>
      : (tensor<100000x2x{element}>, tensor<2x{element}>, tensor<2x{element}>)
      -> (tensor<100000x2x{element}>, tensor<2x{element}>, tensor<2x{element}>)
  return %0#1, %0#2 : tensor<2x{element}>, tensor<2x{element}>
}}
}}
"""
    executable = shardpass.compile(shardpass.run_pipeline(text, "partition"))
    dtype = executable.signature.arguments[0].dtype
    mean, variance = executable(np.ones((100000, 2), dtype), np.ones(2, dtype))
    np.testing.assert_array_equal(np.asarray(mean).astype(np.float32), np.ones(2, np.float32))
    np.testing.assert_array_equal(np.asarray(variance).astype(np.float32), np.zeros(2, np.float32))
