"""Collectives of several operands in manual regions: against NumPy, as XLA's own reading of them is another."""

import numpy as np
import pytest

import shardpass

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GROUPS = f"replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {CHANNEL}"
REDUCER = """({ ^bb0(%p: tensor<i32>, %q: tensor<i32>):
    %s = stablehlo.add %p, %q : tensor<i32> "stablehlo.return"(%s) : (tensor<i32>) -> () })"""
KINDS = {
    "all_to_all": ("split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, ", "", 4),
    "all_gather": ("all_gather_dim = 0 : i64, use_global_device_ids, ", "", 8),
    "all_reduce": ("use_global_device_ids, ", REDUCER, 4),
}


def module_of(kind):
    """x and y of 8 numbers, split in two; what the collective gives each device of its halves, side by side."""
    attributes, region, n = KINDS[kind]
    split, both = '{mhlo.sharding = "{devices=[2]<=[2]}"}', 2 * n
    lines = []
    for name in "xy":
        lines += [
            f"%c{name} = stablehlo.custom_call @Sharding(%{name}) {split} : (tensor<8xi32>) -> tensor<8xi32>",
            f"%l{name} = stablehlo.custom_call @SPMDFullToShardShape(%c{name}) "
            f'{{mhlo.sharding = "{{manual}}"}} : (tensor<8xi32>) -> tensor<4xi32>',
        ]
    lines.append(
        f'%r:2 = "stablehlo.{kind}"(%lx, %ly) <{{{attributes}{GROUPS}}}> {region} '
        f": (tensor<4xi32>, tensor<4xi32>) -> (tensor<{n}xi32>, tensor<{n}xi32>)"
    )
    for k in range(2):
        lines += [
            f"%m{k} = stablehlo.custom_call @Sharding(%r#{k}) "
            f'{{mhlo.sharding = "{{manual}}"}} : (tensor<{n}xi32>) -> tensor<{n}xi32>',
            f"%f{k} = stablehlo.custom_call @SPMDShardToFullShape(%m{k}) {split} "
            f": (tensor<{n}xi32>) -> tensor<{both}xi32>",
        ]
    body = "\n    ".join(lines)
    return f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<8xi32> {split}, %y: tensor<8xi32> {split})
      -> (tensor<{both}xi32> {split}, tensor<{both}xi32> {split}) {{
    {body}
    return %f0, %f1 : tensor<{both}xi32>, tensor<{both}xi32>
  }}
}}"""


def wanted(kind, x):
    halves = x.reshape(2, 4)
    if kind == "all_to_all":  # device d has block d of each half
        return np.concatenate([halves[:, 2 * d : 2 * d + 2].ravel() for d in range(2)])
    return np.tile(x, 2) if kind == "all_gather" else np.tile(halves.sum(0), 2)


@pytest.mark.parametrize("kind", KINDS)
def test_each_operand_goes_its_own_way(kind):
    values = [np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) * 10 + 100]
    assert str(shardpass.run_pipeline(module_of(kind), "import")).count(f'"stablehlo.{kind}"') == 2
    final = shardpass.run_pipeline(module_of(kind), "partition")
    for got, value in zip(shardpass.compile(final)(*values), values, strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted(kind, value))
