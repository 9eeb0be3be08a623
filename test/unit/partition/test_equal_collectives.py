"""Collectives that send the same twice become one; those that differ in anything but their channel stay."""

from __future__ import annotations

import numpy as np
import pytest

import shardpass
from shardpass.ir.collectives import collectives

HANDLE = "channel_handle = #stablehlo.channel_handle<handle = {h}, type = 1>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids"
BOTH = f"<{{{{{HANDLE}, {GROUPS}}}}}>"
SUM = f"""
    %{{name}} = "stablehlo.all_reduce"(%{{x}}) {BOTH} ({{{{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.{{combiner}} %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}}}) : (tensor<8xf32>) -> tensor<8xf32>"""
GATHER = f"""
    %{{name}} = "stablehlo.all_gather"(%{{x}}) <{{{{all_gather_dim = 0 : i64, {HANDLE}, {GROUPS}}}}}>
      : (tensor<8xf32>) -> tensor<16xf32>"""


def program(second: str, between: str = "tanh") -> str:
    first = SUM.format(name="a", x="x", h=1, combiner="add")
    gathers = GATHER.format(name="e", x="c", h=3) + GATHER.format(name="f", x="d", h=4)
    return f"""
    module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func @main(
          %x: tensor<8xf32> {{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<8xf32>,
            shardpass.sharding = "{{replicated}}"}})
          -> (tensor<16xf32> {{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<16xf32>,
              shardpass.sharding = "{{replicated}}"}},
            tensor<16xf32> {{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<16xf32>,
              shardpass.sharding = "{{replicated}}"}}) {{
        {first} {second}
        %c = stablehlo.tanh %a : tensor<8xf32>
        %d = stablehlo.{between} %b : tensor<8xf32>
        {gathers}
        return %e, %f : tensor<16xf32>, tensor<16xf32>
      }}
    }}"""


def test_a_chain_of_equal_collectives_is_sent_once() -> None:
    module = shardpass.run_pipeline(program(SUM.format(name="b", x="x", h=2, combiner="add")), "shardpass-combine")
    assert sorted(use.kind for use in collectives(module)) == ["all_gather", "all_reduce"]
    x = np.arange(8, dtype=np.float32) / 8
    for result in shardpass.compile(module)(x):
        np.testing.assert_allclose(np.asarray(result), np.tile(np.tanh(2 * x), 2), rtol=1e-6)


@pytest.mark.parametrize(("x", "combiner", "between"), [("x", "maximum", "tanh"), ("x", "add", "negate")])
def test_what_differs_stays(x: str, combiner: str, between: str) -> None:
    text = program(SUM.format(name="b", x=x, h=2, combiner=combiner), between)
    module = shardpass.run_pipeline(text, "shardpass-combine")
    assert [use.kind for use in collectives(module)].count("all_gather") == 2
    x_ = np.arange(8, dtype=np.float32) / 8
    second = np.tanh(x_) if combiner == "maximum" else -2 * x_
    result = np.asarray(shardpass.compile(module)(x_)[1])
    np.testing.assert_allclose(result, np.tile(second, 2), rtol=1e-6)
