"""What works on Auto axes works on explicit ones and on a mesh of both kinds: the same program, said in both ways."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
KINDS = {"auto": (AUTO, AUTO), "explicit": (EXPLICIT, EXPLICIT), "mixed": (EXPLICIT, AUTO)}


@pytest.fixture(params=KINDS)
def mesh(request):
    made = jax.make_mesh((4, 2), ("data", "model"), axis_types=KINDS[request.param], devices=jax.devices()[:8])
    with jax.set_mesh(made):
        yield made


def arrays(mesh):
    draw = np.random.default_rng(3)
    specs = {(16, 32): P("data"), (32, 64): P(None, "model"), (64, 32): P("model")}
    return [
        jax.device_put(draw.standard_normal(shape).astype(np.float32), NamedSharding(mesh, spec))
        for shape, spec in specs.items()
    ]


def to(x, *names):
    """A reshard over explicit axes, and a constraint over the others."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.explicit_axes:
        x = reshard(x, P(*(name if name in mesh.explicit_axes else None for name in names)))
    if mesh.auto_axes:
        names = tuple(name if name in mesh.auto_axes else P.UNCONSTRAINED for name in names)
        x = jax.lax.with_sharding_constraint(x, P(*names))
    return x


def layer(x, up, down):
    h = to(jnp.tanh(x @ up), "data", "model")
    mesh = jax.sharding.get_abstract_mesh()
    needed = {"out_sharding": P("data", None)} if "model" in mesh.explicit_axes else {}
    return to(jnp.matmul(h, down, **needed), "data", None)


def expected(x, up, down):
    return np.tanh(np.asarray(x) @ np.asarray(up)) @ np.asarray(down)


ALL_REDUCE = 2 * (16 // 4) * 32 * 4 // 2  # bytes of a tile of the result, to and from the other device of the pair


@pytest.mark.parametrize("partitioner", ["shardpass", "xla"])
def test_explain(mesh, partitioner):
    report = shardpass.explain(layer, *arrays(mesh), partitioner=partitioner)
    assert [(row.kind, row.axes, row.bytes_received) for row in report.rows] == [("all_reduce", ("model",), ALL_REDUCE)]


def summed(x):
    specs = {"in_specs": P("data", "model"), "out_specs": P("data", None)}
    return jax.shard_map(lambda tile: jax.lax.psum(tile, "model"), **specs)(to(x, "data", "model"))


def test_replica_groups_as_jax_writes_them(mesh):
    """Lists of devices with jax 0.10, and axes of the mesh with jax 0.12."""
    (x, *_) = arrays(mesh)
    text = jax.jit(summed).lower(x).as_text()
    by_axes = 'axes = [#stablehlo.axis_ref<name = "model">]' in text
    assert by_axes == (jax.__version_info__ >= (0, 12))
    report = shardpass.explain(text, machine="ideal")
    sums = [(row.kind, row.axes, row.bytes_received) for row in report.rows]
    assert sums == [("all_reduce", ("model",), 2 * (16 // 4) * (32 // 2) * 4 // 2)]


def test_check(mesh):
    lowered = jax.jit(layer).lower(*arrays(mesh)).as_text()
    assert "all_reduce" in str(shardpass.run_pipeline(lowered, "check, shardpass-partition"))


def test_suggest_by_shardpass(mesh):
    found = shardpass.suggest(layer, *arrays(mesh), memory_limit="none")
    assert found.figures.bytes <= ALL_REDUCE


def test_pin(mesh):
    given = arrays(mesh)
    np.testing.assert_allclose(jax.jit(spj.pin(layer))(*given), expected(*given), rtol=1e-4, atol=1e-4)


def test_use(mesh):
    given = arrays(mesh)
    with spj.use():
        found = jax.jit(layer)(*given)
    np.testing.assert_allclose(found, expected(*given), rtol=1e-4, atol=1e-4)


def test_redistribute(mesh):
    (x, *_) = arrays(mesh)
    moved = spj.redistribute(x, NamedSharding(mesh, P(None, "data")))
    assert moved.sharding.spec == P(None, "data")
    np.testing.assert_array_equal(moved, x)
