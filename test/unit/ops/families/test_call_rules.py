"""``register_custom_call``: rules that are text, on calls of JAX's FFI and of targets that nobody knows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError
from shardpass.ir.tensors import every_op
from shardpass.ops import registry
from shardpass.ops.families import custom_call

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:8])


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten."""
    registry.table()  # every family: none may come while others stand in for the targets
    monkeypatch.setattr(custom_call, "_targets", dict(custom_call._targets))


def cholesky(a: Any) -> Any:
    """LAPACK's own, called as a user of the FFI does. The upper half of columns is the lower half of rows."""
    kinds = jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct(a.shape[:-2], jnp.int32)
    call = jax.ffi.ffi_call("lapack_spotrf_ffi", kinds, vmap_method="broadcast_all", input_output_aliases={0: 0})
    return jnp.tril(call(a, uplo=np.uint8(ord("U")))[0])


def test_a_batch_of_ffi_calls_is_split_once_the_target_has_a_rule() -> None:
    """vmap leaves one call with a dimension more, of which the program says nothing."""
    eyes = np.stack([np.eye(6, dtype=np.float32) * (n + 1) + 0.5 for n in range(8)])
    wanted = np.asarray(jnp.linalg.cholesky(eyes))  # which also loads LAPACK
    x = jax.device_put(eyes, NamedSharding(MESH, P("a")))

    def partitioned() -> tuple[Any, str]:
        with spj.use():
            jitted = jax.jit(lambda x: jax.vmap(cholesky)(x))
            return jitted(x), jitted.lower(x).compile().as_text()

    without, gathered = partitioned()
    shardpass.ops.register_custom_call("lapack_spotrf_ffi", "... i j -> ... i j, ...")
    found, hlo_text = partitioned()
    assert "all-gather" in gathered
    assert "all-gather" not in hlo_text
    assert "f32[2,6,6]" in hlo_text
    for array in (without, found):
        np.testing.assert_allclose(np.asarray(array), wanted, rtol=1e-5, atol=1e-6)


PRODUCT = """
module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<6x{k}xf32> {{mhlo.sharding = "{left}"}},
                  %y: tensor<{k}x4xf32> {{mhlo.sharding = "{right}"}}) -> tensor<6x4xf32> {{
    %0 = stablehlo.custom_call @my.product(%x, %y) : (tensor<6x{k}xf32>, tensor<{k}x4xf32>) -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }}
}}
"""


def as_product(module: Any) -> Any:
    """The partitioned module with a product in the place of each call: what the target is meant to compute."""
    with module.context:
        for op in [op for op in every_op(module.operation) if op.name == "stablehlo.custom_call"]:
            assert ir.StringAttr(op.attributes["call_target_name"]).value == "my.product"
            numbers = hlo.DotDimensionNumbers.get([], [], [1], [0])
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(hlo.dot_general(op.results[0].type, *op.operands, numbers))
            op.erase()
    return module


@pytest.mark.parametrize("k", [8, 10])  # 10 over 4 devices is padded to 12
@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("{devices=[1,4]<=[4]}", "{devices=[4,1]<=[4]}", "all_reduce"),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "{replicated}", ""),
    ],
)
def test_parts_of_a_product_are_summed(k: int, left: str, right: str, kind: str) -> None:
    shardpass.ops.register_custom_call("my.product", "i j, j k -> i k", reduction_factors=["j"])
    module = shardpass.run_pipeline(PRODUCT.format(k=k, left=left, right=right), "partition{effort=0}")
    names = {op.name for op in every_op(module.operation)}
    assert {name for name in names if "all_" in name} == ({f"stablehlo.{kind}"} if kind else set())
    x, y = np.arange(6 * k, dtype=np.float32).reshape(6, k), np.arange(4 * k, dtype=np.float32).reshape(k, 4)
    (found,) = shardpass.compile(as_product(module))(x, y)
    np.testing.assert_array_equal(found, x @ y)


def rule_of(text: str, operands: Any, results: Any, **more: Any) -> Any:
    from shardpass.ops.families import call_rules

    names = [frozenset(more.pop(key, ())) for key in ("reduction_factors", "need_replication_factors")]
    return call_rules._fitted(call_rules.read_rule(text, *names, more), operands, results).rule


@pytest.mark.parametrize(
    ("text", "operands", "results", "more", "split"),
    [
        ("i j -> i k", ((4, 6),), ((4, 8),), {}, {(0, 0)}),  # a device cannot know which part of k is asked for
        ("i j -> i j", ((4, 6),), ((4, 6),), {"need_replication_factors": ["j"]}, {(0, 0)}),
        ("... i -> ... i", ((2, 3, 4),), ((2, 3, 4),), {}, {(0, 0), (0, 1), (0, 2)}),
        ("... i -> ... i", ((4,),), ((4,),), {}, {(0, 0)}),
        ("... i, ... i -> ... i", ((3, 4), (1, 4)), ((3, 4),), {}, {(0, 0), (0, 1), (1, 1)}),
        ("(a b) -> a", ((12,),), ((4,),), {"b": 3}, {(0, 0)}),
        ("i, -> i", ((4,), ()), ((4,),), {}, {(0, 0)}),
    ],
)
def test_which_dimensions_may_be_cut(text: str, operands: Any, results: Any, more: Any, split: Any) -> None:
    from shardpass.ops.splits.factors import Kind

    rule = rule_of(text, operands, results, **more)
    found = {
        (index, dim)
        for index, dims in enumerate(rule.operands)
        for dim, factors in enumerate(dims)
        if rule.factors[factors[0]].kind is Kind.PARALLEL
    }
    assert found == split


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("i j", {}, "0 arrows"),
        ("i + j -> i", {}, "'\\+' is no part"),
        ("i (a) -> i", {}, "two factors or more"),
        ("i (a b -> i", {}, "not closed"),
        ("i ... -> i", {}, "before the other dimensions"),
        ("(a b) -> a", {}, "pass b=SIZE"),
        ("a -> a", {"a": 3}, "a is a whole dimension"),
        ("i -> i", {"reduction_factors": ["k"]}, "names k"),
        ("i j -> i", {"reduction_factors": ["j"], "need_replication_factors": ["j"]}, "j is both"),
    ],
)
def test_a_rule_that_cannot_be_read(text: str, more: Any, reason: str) -> None:
    with pytest.raises(ShardpassError, match=reason) as caught:
        shardpass.ops.register_custom_call("mine", text, **more)
    assert caught.value.diagnostics[0].code == "SP307"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("i, j k -> i k", "operand 0 has 2 dimensions, and 1 in the rule"),
        ("i j -> i j", "the rule has 1 operands, and the call 2"),
        ("i j, i k -> i k", "i is 6 in one place and 8 in another"),
    ],
)
def test_a_rule_that_does_not_fit_the_call(text: str, reason: str) -> None:
    shardpass.ops.register_custom_call("my.product", text)
    with pytest.raises(ShardpassError, match=reason) as caught:
        shardpass.run_pipeline(PRODUCT.format(k=8, left="{replicated}", right="{replicated}"), "partition")
    assert caught.value.diagnostics[0].code == "SP308"
    assert "my.product" in str(caught.value)
