"""``partition(f, ...)``: the numbers and shardings of ``jax.jit(f, ...)``, and every step on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import main_of
from shardpass.ops import registry
from shardpass.ops.families import custom_call

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])


def layer(params, x):
    y = jax.lax.with_sharding_constraint(x @ params["w"], P("a", None))
    return {"y": jnp.tanh(y + params["b"]), "mean": y.mean()}


RNG = np.random.default_rng(0)
PARAMS = {
    "w": RNG.integers(-3, 4, (16, 8)).astype(np.float32),
    "b": RNG.integers(-3, 4, (8,)).astype(np.float32),
}
X = RNG.integers(-3, 4, (16, 16)).astype(np.float32)
SPECS = ({"w": P("b", None), "b": None}, P("a", "b"))


@pytest.fixture
def step():
    return spj.partition(layer, mesh=MESH, in_shardings=SPECS, out_shardings={"y": P("a"), "mean": None})


def test_it_is_called_as_the_jitted_function(step):
    before = spj.stats()["partitioned"]
    found = step(PARAMS, X)
    product = X @ PARAMS["w"]
    np.testing.assert_allclose(np.asarray(found["y"]), np.tanh(product + PARAMS["b"]), rtol=1e-6)
    np.testing.assert_allclose(found["mean"], product.mean(), rtol=1e-5)
    assert found["y"].sharding.is_equivalent_to(NamedSharding(MESH, P("a")), 2)
    assert spj.stats()["partitioned"] == before + 1
    step(PARAMS, X)
    assert spj.stats()["partitioned"] == before + 1  # compiled once
    assert step.__name__ == "layer"


def test_each_step_can_be_looked_at(step):
    lowered = step.lower(PARAMS, jax.ShapeDtypeStruct((16, 16), jnp.float32))
    assert "stablehlo.dot_general" in str(lowered.stablehlo)
    tiles = main_of(lowered.partitioned).attributes["function_type"].value
    assert [str(kind) for kind in tiles.inputs][-1] == "tensor<4x8xf32>"
    explained = lowered.explain()
    assert sum(use.bytes_received for use in explained.rows) <= lowered.plan.bytes_received
    assert {"all_reduce"} == {use.kind for use in explained.rows}
    assert "test_partition.py" in str(explained)
    assert lowered.check() == ()
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(PARAMS, jax.device_put(X, NamedSharding(MESH, P("a", "b"))))["mean"],
                               (X @ PARAMS["w"]).mean(), rtol=1e-5)  # fmt: skip
    assert "all-reduce" in compiled.as_text()


def test_what_is_moved_for_a_result_is_of_the_users_line():
    """A result's place is that of the call, which lies in this file and not in shardpass."""
    turned = spj.partition(lambda x: x * 2, mesh=MESH, in_shardings=P("a"), out_shardings=P(None, "a"))
    (use,) = turned.lower(X).explain().rows
    assert use.reason == "result 0 is given back as P(None, 'a'), as annotated"
    assert use.place.file.endswith("test_partition.py")


def test_another_pipeline():
    given = NamedSharding(MESH, P("a", "b"))
    pipeline = "shardpass-import,shardpass-propagate,shardpass-partition,shardpass-redistribute{planner=rink}"
    turn = spj.partition(lambda x: x.T, in_shardings=given, out_shardings=given, pipeline=pipeline)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(np.asarray(turn(x)), x.T)
    broken = spj.partition(lambda x: x.T, in_shardings=given, pipeline="shardpass-import,no-such-pass")
    with pytest.raises(ShardpassError, match="no-such-pass"):
        broken(x)


def test_an_open_result_is_one_of_jax():
    cut = spj.partition(lambda x: x[:12] * 2, mesh=MESH, in_shardings=P(("a", "b")))
    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(cut(x)), x[:12] * 2)


def test_it_raises_where_use_would_fall_back(monkeypatch):
    """A wrong rule of a target that the program calls."""
    registry.table()  # every family: none may come while others stand in for the targets
    monkeypatch.setattr(custom_call, "_targets", dict(custom_call._targets))
    shardpass.ops.register_custom_call("lapack_spotrf_ffi", "i -> i")
    with pytest.raises(ShardpassError, match="SP607"):
        spj.partition(jnp.linalg.cholesky, mesh=MESH, in_shardings=P("a"))(np.eye(8, dtype=np.float32))
