"""What each device holds of a partial sum, beside plain JAX's: ``addressable_data`` shows it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 3, devices=jax.devices()[:8])
COLLECTIVE = r" (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)(?:-start)?\("


def array(*shape):
    return (np.arange(np.prod(shape)) * 5 % 7 + 1).astype(np.float32).reshape(shape)


def placed(value, *spec, **more):
    return jax.device_put(value, NamedSharding(MESH, P(*spec, **more)))


def operands():
    return placed(array(4, 8), "x", "y"), placed(array(8, 4), "y", None)


def product(x, w):
    return jnp.einsum("ij,jk->ik", x, w, out_sharding=P("x", None, unreduced={"y"}))


def over(spec, equation="ij,jk->ik"):
    return lambda x, w: jnp.einsum(equation, x, w, out_sharding=spec)


def loss(x, w):
    return jnp.sin(jnp.einsum("ij,jk->ik", x, w, out_sharding=P("y", None))).sum()


def accumulated(w, xs):
    start = reshard(jnp.zeros((8, 4)), P(None, None, unreduced={"y"}))
    return lax.scan(lambda total, x: (total + jax.grad(loss, 1)(x, w), None), start, xs)[0]


def stacked(x, w):
    return lax.scan(lambda c, _: (c + 1, product(c, w)), x, None, length=2)[1]


def scattered(onto, rows, updates):
    return onto.at[rows].add(updates, out_sharding=P(unreduced={"y"}))


def looked_up(table, rows, spec):
    return table.at[rows].get(out_sharding=spec)


COMPUTED = {
    "a product": (product, operands),
    "a product over two axes": (
        over(P("x", None, unreduced={"y", "z"})),
        lambda: (placed(array(4, 8), "x", ("y", "z")), placed(array(8, 4), ("y", "z"), None)),
    ),
    "a product over two axes in another order": (
        over(P("x", None, unreduced={"y", "z"})),
        lambda: (placed(array(4, 8), "x", ("z", "y")), placed(array(8, 4), ("z", "y"), None)),
    ),
    "a product over two dimensions": (
        over(P("x", None, unreduced={"y", "z"}), "ijk,jkl->il"),
        lambda: (placed(array(4, 8, 4), "x", "z", "y"), placed(array(8, 4, 4), "z", "y", None)),
    ),
    "a product over all devices": (
        over(P(unreduced={"x", "y", "z"})),
        lambda: (placed(array(4, 8), None, ("x", "y", "z")), placed(array(8, 4), ("x", "y", "z"), None)),
    ),
    "a product of a constant": (
        lambda w: product(reshard(jnp.ones((4, 8)), P("x", "y")), w),
        lambda: operands()[1:],
    ),
    "a sum": (
        lambda x: lax.reduce_sum(x, axes=(1,), out_sharding=P("x", unreduced={"y"})),
        lambda: operands()[:1],
    ),
    "a sum over the second axis of two": (
        lambda x: lax.reduce_sum(x, axes=(1,), out_sharding=P("x", unreduced={"z"})),
        lambda: (placed(array(4, 8), "x", ("y", "z")),),
    ),
    "a sum of a partial sum": (
        lambda x, w: lax.reduce_sum(product(x, w), axes=(0,), out_sharding=P(None, unreduced={"x", "y"})),
        operands,
    ),
    "a segment sum": (
        lambda a, b: jax.ops.segment_sum(a, b, num_segments=4, out_sharding=P(unreduced={"y"})),
        lambda: (placed(np.arange(8, dtype=np.int32), "y"), placed(np.array([0, 0, 1, 1, 1, 2, 2, 3]), "y")),
    ),
    "a sum onto an array": (
        scattered,
        lambda: (placed(array(8)), placed(np.array([0, 3, 3, 4]), "y"), placed(array(4), "y")),
    ),
    "a gradient": (
        jax.grad(loss, 1),
        lambda: (placed(array(4, 8), "y", None), placed(array(8, 4), None, None, reduced={"y"})),
    ),
    "a gradient of a lookup": (
        jax.grad(lambda table, rows: (looked_up(table, rows, P("y", None, None)) ** 2).sum()),
        lambda: (placed(array(64, 8), None, None, reduced={"y"}), placed(np.arange(12).reshape(4, 3) * 5, "y", None)),
    ),
    "added": (lambda x, w: product(x, w) + product(x * 2, w), operands),
    "multiplied": (
        lambda x, w, r: product(x, w) * r,
        lambda: (*operands(), placed(array(4, 4), "x", None, reduced={"y"})),
    ),
    "transposed": (lambda x, w: product(x, w).T, operands),
    "reshaped": (lambda x, w: product(x, w).reshape(4, 2, 2), operands),
    "sliced": (lambda x, w: product(x, w)[:, 1:3], operands),
    "summed along a whole dimension": (lambda x, w: product(x, w).sum(1), operands),
    "converted": (lambda x, w: product(x, w).astype(jnp.bfloat16), operands),
    "side by side": (lambda x, w: jnp.concatenate([product(x, w), product(x + 1, w)], 1), operands),
    "updated": (
        lambda x, w: lax.dynamic_update_slice(product(x, w), product(x + 1, w)[:, :2], (0, 1)),
        operands,
    ),
    "selected": (lambda x, w: jnp.where(x.sum() > 0, product(x, w), product(x + 1, w)), operands),
    "in a branch": (
        lambda x, w: lax.cond(x.sum() > 0, lambda x: product(x, w), lambda x: product(x * 2, w), x),
        operands,
    ),
    "in a loop": (
        accumulated,
        lambda: (placed(array(8, 4), None, None, reduced={"y"}), placed(array(3, 4, 8), None, "y", None)),
    ),
    "of each turn": (stacked, operands),
    "of an argument": (lambda p: (p + p)[:, :2], lambda: (jax.jit(product)(*operands()),)),
    "leaving a shard_map": (
        lambda x: jax.shard_map(
            lambda t: lax.pcast(t.sum(1), "y", to="unreduced"),
            in_specs=P("x", "y"),
            out_specs=P("x", unreduced={"y"}),
        )(x),
        lambda: operands()[:1],
    ),
}

MOVED = {  # from, to, axes of the partial sum
    "whole": (("x", None), ("x", None), "y"),
    "split": (("x", "y"), ("x", None), "y"),
    "split, another dimension gathered": (("x", "y"), (None, None), "y"),
    "split, another dimension moved": (("x", "y"), ("z", None), "y"),
    "split by the last of two axes": (("x", ("z", "y")), ("x", "z"), "y"),
    "split by the first of two axes": (("x", ("y", "z")), ("x", "z"), "y"),
    "split by the first of two axes, which both go": (("x", ("y", "z")), ("x", None), "y"),
    "split by the last of two axes, which both go": (("x", ("y", "z")), ("x", None), "z"),
    "split by two axes": (("x", ("y", "z")), ("x", None), "yz"),
    "split by two axes in another order": (("x", ("z", "y")), ("x", None), "zy"),
    "split by one of two axes": (("x", "y"), ("x", None), "yz"),
    "two dimensions split": (("x", "y"), (None, None), "xy"),
    "split, and by another axis then": ((None, "y"), (None, "x"), "y"),
    "split by the middle of three": ((("x", "y", "z"), None), (("x", "z"), None), "y"),
    "split by the outer of three": ((("x", "y", "z"), None), (None, None), "xz"),
}


def moved(before, after, axes):
    spec = P(*after, unreduced=set(axes))
    return lambda x: reshard(x, spec), lambda: (placed(array(8, 8), *before),)


PROGRAMS = COMPUTED | {name: moved(*row) for name, row in MOVED.items()}
PROGRAMS["a partial sum over one axis, made one over two"] = (
    lambda x, w: reshard(product(x, w), P(None, None, unreduced={"x", "y"})),
    operands,
)
PROGRAMS["a whole product"] = (
    lambda x, w: reshard(over(P("x", None))(x, w), P("x", None, unreduced={"y"})),
    operands,
)


def on_devices(found):
    return [np.asarray(s.data, np.float32) for s in sorted(found.addressable_shards, key=lambda s: s.device.id)]


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_device_holds_what_it_holds_in_plain_jax(name):
    function, arguments = PROGRAMS[name]
    with jax.set_mesh(MESH):
        given = arguments()
        plain = jax.jit(lambda *a: function(*a))
        wanted, theirs = plain(*given), plain.lower(*given).compile().as_text()
        with spj.use(strict=True):
            ours = jax.jit(lambda *a: function(*a))
            found, hlo = ours(*given), ours.lower(*given).compile().as_text()
    assert found.sharding == wanted.sharding
    assert found.sharding.spec.unreduced
    for mine, other in zip(on_devices(found), on_devices(wanted), strict=True):
        np.testing.assert_array_equal(mine, other)
    if not re.search(COLLECTIVE, theirs):
        assert not re.search(COLLECTIVE, hlo)


def test_out_shardings_make_a_partial_sum():
    with jax.set_mesh(MESH):
        x = placed(array(4, 8), "x", "y")
        options = {"out_shardings": P("x", None, unreduced={"y"})}
        wanted = jax.jit(lambda x: x * 2, **options)(x)
        with spj.use(strict=True):
            found = jax.jit(lambda x: x * 2, **options)(x)
    for mine, other in zip(on_devices(found), on_devices(wanted), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_broadcast_of_a_partial_sum_is_one():
    """The witness is NumPy: plain JAX (0.10.2) gives the whole sum to each device, so that their sum is twice it."""
    with jax.set_mesh(MESH), spj.use(strict=True):
        found = jax.jit(lambda x, w: jnp.broadcast_to(product(x, w)[None], (3, 4, 4)))(*operands())
    x, w = array(4, 8), array(8, 4)
    for device, mine in enumerate(on_devices(found)):
        row, part = np.split(x, 2)[device // 4], device // 2 % 2
        local = np.split(row, 2, 1)[part] @ np.split(w, 2)[part]
        np.testing.assert_array_equal(mine, np.broadcast_to(local, (3, 2, 4)))


def test_no_axis_of_a_region_splits_what_the_region_takes_whole():
    """The gradient of a lookup adds rows to zeros, whose sharding nobody says; all devices are one axis."""
    line = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:2])
    table = jax.device_put(np.ones((2048, 64), np.float32), NamedSharding(line, P(None, None, reduced={"x"})))
    rows = jax.device_put(np.arange(512, dtype=np.int32).reshape(4, 128) % 7, NamedSharding(line, P("x", None)))
    function = jax.grad(lambda t, r: looked_up(t, r, P("x", None, None)).sum())
    with jax.set_mesh(line):
        wanted = jax.jit(lambda t, r: function(t, r))(table, rows)
        with spj.use(strict=True):
            found = jax.jit(lambda t, r: function(t, r))(table, rows)
    for mine, other in zip(on_devices(found), on_devices(wanted), strict=True):
        np.testing.assert_array_equal(mine, other)
