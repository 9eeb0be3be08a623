"""Collectives in groups of one device: identities, and zeros where nobody sends. Anything else is left."""

import numpy as np
import pytest

import shardpass
from shardpass import ShardpassError
from shardpass.runtime import compile

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ALONE = "replica_groups = dense<[[1], [0]]> : tensor<2x1xi64>"
REDUCER = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32> "stablehlo.return"(%s) : (tensor<f32>) -> () })"""
IDENTITIES = {
    "all_reduce": (f"{CHANNEL}, {ALONE}, use_global_device_ids", REDUCER),
    "reduce_scatter": (f"{CHANNEL}, {ALONE}, scatter_dimension = 0 : i64, use_global_device_ids", REDUCER),
    "all_gather": (f"{CHANNEL}, {ALONE}, all_gather_dim = 0 : i64, use_global_device_ids", ""),
    "all_to_all": (
        f"{CHANNEL}, {ALONE}, split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64",
        "",
    ),
    "collective_broadcast": (f"{CHANNEL}, {ALONE}", ""),
    "collective_permute": (f"{CHANNEL}, source_target_pairs = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>", ""),
}
OTHERS = {
    "two devices": ("collective_broadcast", f"{CHANNEL}, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>", ""),
    "a device in no group": ("collective_broadcast", f"{CHANNEL}, replica_groups = dense<[[0]]> : tensor<1x1xi64>", ""),
    "replicas and partitions": ("all_reduce", f"{CHANNEL}, {ALONE}", REDUCER),
    "one device sends": (
        "collective_permute",
        f"{CHANNEL}, source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>",
        "",
    ),
}


def program(kind, attributes, region):
    return f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: tensor<4xf32> {{mhlo.sharding = "{{devices=[2]<=[2]}}"}}) -> tensor<4xf32> {{
    %0 = "stablehlo.{kind}"(%x) <{{{attributes}}}> {region} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}"""


def result_of(text):
    (found,) = compile(shardpass.run_pipeline(text, "partition"))(np.arange(4, dtype=np.float32))
    return np.asarray(found).tolist()


@pytest.mark.parametrize("kind", IDENTITIES)
def test_a_group_of_one_has_its_own_value(kind):
    text = program(kind, *IDENTITIES[kind])
    assert result_of(text) == [0, 1, 2, 3]
    assert f"stablehlo.{kind}" not in str(shardpass.run_pipeline(text, "import"))


def test_nobody_sends():
    pairs = "source_target_pairs = dense<> : tensor<0x2xi64>"
    assert result_of(program("collective_permute", f"{CHANNEL}, {pairs}", "")) == [0, 0, 0, 0]


@pytest.mark.parametrize("name", OTHERS)
def test_others_differ_between_devices(name):
    with pytest.raises(ShardpassError) as error:
        shardpass.run_pipeline(program(*OTHERS[name]), "import")
    assert error.value.code == "SP226"
