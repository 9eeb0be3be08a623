"""``redistribute``: the same numbers in another sharding, eagerly and under every transformation of JAX."""

import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError, table_sharding
from shardpass.jax.notation import from_jax
from shardpass.redistribute import plan_redistribution
from shardpass.runtime.hlo import collectives_in


def make_mesh(axes, kind=AxisType.Auto, devices=None):
    count = int(np.prod(list(axes.values())))
    return jax.make_mesh(
        tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes), devices=devices or jax.devices()[:count]
    )


MESH = make_mesh({"x": 4, "y": 2})


def on(*spec, mesh=MESH):
    return NamedSharding(mesh, P(*spec))


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 127).astype(dtype)


def assert_moved(found, sharding, wanted):
    """Every shard is where the sharding says, and holds what it should."""
    assert found.sharding.is_equivalent_to(sharding, found.ndim), found.sharding
    for shard in found.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), wanted[shard.index])
    assert {s.device: s.index for s in found.addressable_shards} == sharding.devices_indices_map(wanted.shape)


DIMS = [None, "x", "y", ("x", "y"), ("y", "x")]
SPECS = [
    (a, b)
    for a, b in itertools.product(DIMS, DIMS)
    if len([axis for d in (a, b) if d for axis in ([d] if isinstance(d, str) else d)])
    == len({axis for d in (a, b) if d for axis in ([d] if isinstance(d, str) else d)})
]
PAIRS = [pair for k, pair in enumerate(itertools.product(SPECS, SPECS)) if k % 7 == 0]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_eager(source, target):
    x = numbers(16, 24)
    assert_moved(spj.redistribute(jax.device_put(x, on(*source)), on(*target)), on(*target), x)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.int8, np.bool_, np.complex64, np.uint32])
def test_element_types(dtype):
    x = numbers(8, 16, dtype=dtype)
    assert_moved(spj.redistribute(jax.device_put(x, on("x", "y")), on(None, ("y", "x"))), on(None, ("y", "x")), x)


@pytest.mark.parametrize("shape", [(), (8,), (0, 8), (2, 4, 6, 8)])
def test_ranks(shape):
    source, target = on(*[None] * len(shape)), on(*[None] * (len(shape) - 1), *["x"][: len(shape)])
    x = numbers(*shape)
    y = spj.redistribute(jax.device_put(x, source), target)
    assert_moved(y, target, x)
    assert_moved(spj.redistribute(y, source), source, x)


def test_from_the_host_and_from_one_device():
    x = numbers(8, 4)
    for given in (x, jnp.asarray(x), jax.device_put(x, jax.devices()[5])):
        assert_moved(spj.redistribute(given, on("x")), on("x"), x)


def test_to_other_devices():
    other = make_mesh({"x": 4, "y": 2}, devices=jax.devices()[11:3:-1])
    x = numbers(8, 4)
    y = spj.redistribute(jax.device_put(x, on("x")), on("x", mesh=other))
    assert_moved(y, on("x", mesh=other), x)


def test_jit_with_a_known_source_runs_the_plan_and_nothing_else(shardy):
    source, target = on("x", "y"), on(None, ("y", "x"))
    f = jax.jit(lambda x: spj.redistribute(x, target, source=source), in_shardings=source)
    x = numbers(16, 16)
    assert_moved(f(x), target, x)
    plan = plan_redistribution((16, 16), "f32", from_jax(source, 2), from_jax(target, 2))
    hlo = f.lower(x).compile().as_text()
    kinds = [step.kind for step in plan.steps if step.kind != "dynamic_slice"]
    assert kinds
    assert sorted(c.kind for c in collectives_in(hlo, 8)) == sorted(kinds)


def test_jit_without_a_source(shardy):
    f = jax.jit(lambda x: spj.redistribute(x * 2, on(None, "x")))
    x = numbers(8, 8)
    assert_moved(f(jax.device_put(x, on("x"))), on(None, "x"), x * 2)
    before = spj.stats()
    with spj.use():
        assert_moved(f(jax.device_put(x, on("x"))), on(None, "x"), x * 2)
    assert spj.stats()["partitioned"] == before["partitioned"] + 1


@pytest.mark.parametrize("source", [None, on("x")], ids=["unknown", "known"])
def test_grad(shardy, source):
    x = numbers(8, 8)

    def loss(x):
        y = spj.redistribute(x * x, on(None, "x"), source=source)
        return jnp.sum(y * jnp.arange(8.0))

    for gradient in (jax.grad(loss), jax.jit(jax.grad(loss))):
        found = gradient(jax.device_put(x, on("x")))
        np.testing.assert_array_equal(np.asarray(found), 2 * x * np.arange(8.0))
    (tangent,) = jax.jvp(lambda x: spj.redistribute(x, on(None, "x")), (x,), (2 * x,))[1:]
    np.testing.assert_array_equal(np.asarray(tangent), 2 * x)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap(shardy, axis):
    x = numbers(8, 8, 8)
    source = P(*[*["x", None][:axis], None, *["x", None][axis:]])
    target = P(*[*[None, "x"][:axis], None, *[None, "x"][axis:]])

    def move(row):
        return spj.redistribute(row, on(None, "x"), source=on("x", None))

    batched = jax.vmap(move, in_axes=axis, out_axes=axis)
    for f in (batched, jax.jit(batched)):
        assert_moved(f(jax.device_put(x, on(*source))), on(*target), x)


def test_inside_a_loop(shardy):
    def body(_, x):
        y = spj.redistribute(x + 1, on(None, "x"), source=on("x", None))
        return spj.redistribute(y, on("x", None), source=on(None, "x"))

    x = numbers(8, 8)
    y = jax.jit(lambda x: jax.lax.fori_loop(0, 3, body, x))(jax.device_put(x, on("x")))
    np.testing.assert_array_equal(np.asarray(y), x + 3)


def test_explicit_axes(shardy):
    """Where shardings are part of types, the source is known under jit, and the result's type says the target."""
    mesh = make_mesh({"x": 4, "y": 2}, AxisType.Explicit)
    x, types = numbers(8, 8), []

    def move(x):
        y = spj.redistribute(x, on(None, "x", mesh=mesh))
        types.append(jax.typeof(y).sharding.spec)
        return y

    with jax.set_mesh(mesh):
        given = jax.device_put(x, on("x", mesh=mesh))
        assert_moved(jax.jit(move)(given), on(None, "x", mesh=mesh), x)
        hlo = jax.jit(move).lower(given).compile().as_text()
        assert_moved(move(given), on(None, "x", mesh=mesh), x)
    assert set(types) == {P(None, "x")}
    assert [c.kind for c in collectives_in(hlo, 8)] == ["all_to_all"]


BAD = [
    ("SP610", jax.sharding.SingleDeviceSharding(jax.devices()[0]), "SingleDeviceSharding"),
    ("SP610", P("x"), "PartitionSpec"),
    ("SP610", on("x", P.UNCONSTRAINED), "UNCONSTRAINED"),
    (table_sharding.RANK.id, on("x", None, None), "3"),
    ("SP611", on(None, "x"), "dimension 1 of shape [8, 6] has size 6, which 4 tiles"),
]


@pytest.mark.parametrize(("code", "sharding", "says"), BAD)
def test_bad_targets(code, sharding, says):
    x = numbers(8, 6)
    for call in (spj.redistribute, jax.jit(spj.redistribute, static_argnums=1)):
        with pytest.raises(ShardpassError) as caught:
            call(x, sharding)
        assert caught.value.code == code
        assert says in str(caught.value)


def test_jit_without_arguments(shardy):
    """Nothing but the redistribution says on which devices the program runs."""
    known = jax.jit(lambda: spj.redistribute(jnp.arange(16.0), on(None), source=on("x")))()
    assert_moved(known, on(None), np.arange(16.0))
    said = jax.jit(lambda: spj.redistribute(jnp.arange(16.0), on(("x", "y"))))()
    assert_moved(said, on(("x", "y")), np.arange(16.0))


@pytest.mark.parametrize("inside", [False, True], ids=["by XLA", "by shardpass"])
def test_jit_of_a_gradient_that_uses_no_argument(shardy, inside):
    x = jax.device_put(numbers(16), on("x"))

    def f(x):
        return spj.redistribute(x, on("y"), source=on("x")).sum()

    if inside:
        with spj.use():
            found = jax.jit(jax.grad(f))(x)
    else:
        found = jax.jit(jax.grad(f))(x)
    assert_moved(found, on("x"), np.ones(16, np.float32))


def test_an_eager_gradient_goes_back_without_being_told():
    x = jax.device_put(numbers(16, 8), on("x", "y"))
    gradient = jax.grad(lambda x: (spj.redistribute(x, on(None, ("y", "x"))) ** 2).sum())(x)
    assert_moved(gradient, on("x", "y"), 2 * numbers(16, 8))
    primal, tangent = jax.jvp(lambda x: spj.redistribute(x, on(None)), (x,), (x + 1,))
    assert_moved(primal, on(None), numbers(16, 8))
    assert_moved(tangent, on(None), numbers(16, 8) + 1)


def test_trees():
    tree = {"w": numbers(16, 4), "b": (numbers(8), numbers(8))}
    everywhere = spj.redistribute(tree, on("x"))
    assert_moved(everywhere["w"], on("x"), tree["w"])
    assert_moved(everywhere["b"][1], on("x"), tree["b"][1])
    each = spj.redistribute(everywhere, {"w": on(None, "y"), "b": on("y")}, source={"w": on("x"), "b": on("x")})
    assert_moved(each["w"], on(None, "y"), tree["w"])
    assert_moved(each["b"][0], on("y"), tree["b"][0])
    traced = jax.jit(lambda t: spj.redistribute(t, {"w": on("y", "x"), "b": on("y")}))(everywhere)
    assert_moved(traced["w"], on("y", "x"), tree["w"])


def test_a_tree_of_shardings_that_does_not_fit():
    with pytest.raises(ShardpassError, match="SP612"):
        spj.redistribute({"w": numbers(16)}, {"b": on("x")})


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_a_partition_spec_under_a_mesh(shardy, kind):
    mesh = make_mesh({"x": 4, "y": 2}, kind)
    with jax.set_mesh(mesh):
        eager = spj.redistribute(numbers(16, 4), P("x", "y"))
        traced = jax.jit(lambda x: spj.redistribute(x, P(None, "y")))(eager)
        known = jax.jit(lambda x: spj.redistribute(x, P("y"), source=P("x", "y")))(eager)
    assert_moved(eager, on("x", "y", mesh=mesh), numbers(16, 4))
    assert_moved(traced, on(None, "y", mesh=mesh), numbers(16, 4))
    assert_moved(known, on("y", mesh=mesh), numbers(16, 4))


def test_a_partition_spec_without_a_mesh():
    with pytest.raises(ShardpassError, match=r"SP610[\s\S]*jax.set_mesh"):
        spj.redistribute(numbers(16), P("x"))
