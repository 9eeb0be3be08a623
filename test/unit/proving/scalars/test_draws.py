"""Random numbers: device 0's stand for those of the whole program, and no other device's do."""

import re

import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.proving import prove
from shardpass.proving.verdict import DRAWS

WHOLE = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4xf32>, tensor<4xf32>) {
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<4> : tensor<1xi64>
    %p = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    %q = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    %r = stablehlo.add %x, %p : tensor<4xf32>
    %s = stablehlo.subtract %p, %q : tensor<4xf32>
    return %r, %s : tensor<4xf32>, tensor<4xf32>
  }
}"""  # noqa: E501


def local(text=WHOLE):
    with collect():
        return str(shardpass.run_pipeline(text, "partition"))


def test_what_one_device_draws_for_all_is_proved():
    verdict = prove(WHOLE, local(), refute=False)
    assert verdict.proved
    assert DRAWS in verdict.assumed


def test_a_program_without_draws_assumes_none():
    text = WHOLE.replace("stablehlo.add %x, %p", "stablehlo.add %x, %x").replace("%p, %q :", "%x, %x :")
    text = "\n".join(line for line in text.splitlines() if "stablehlo.rng" not in line)
    verdict = prove(text, local(text), refute=False)
    assert verdict.proved
    assert DRAWS not in verdict.assumed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"dense<0> : tensor<ui32>", "dense<1> : tensor<ui32>"),  # device 1's for all: another array
        (r"select %\d+, (%\d+), (%\w+) : tensor<i1>, ", r"add \1, \2 : "),  # the sum of what all devices draw
        (r"dense<1.000000e\+00>", "dense<2.000000e+00>"),  # other bounds
        (r"select (%\d+), %\d+, ", r"select \1, %0, "),  # one draw in the place of two
    ],
)
def test_other_draws_are_not(old, new):
    text = local()
    changed = re.sub(old, new, text)
    assert changed != text
    assert not prove(WHOLE, changed, refute=False).proved


REGION = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>) {
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<2> : tensor<1xi64>
    %a = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
    %b = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<2xf32>
    %p = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
    %c = stablehlo.add %b, %p : tensor<2xf32>
    %d = stablehlo.custom_call @Sharding(%c) {mhlo.sharding = "{manual}"} : (tensor<2xf32>) -> tensor<2xf32>
    %e = stablehlo.custom_call @SPMDShardToFullShape(%d) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<2xf32>) -> tensor<4xf32>
    return %e : tensor<4xf32>
  }
}"""  # noqa: E501


def test_a_draw_of_each_device_of_a_manual_region_is_unknown():
    found = prove(REGION, local(REGION), refute=False)
    assert found.unknown.op == "stablehlo.rng"
