"""``shard_map`` inside of loops, branches and calls, with both notations; the witness is the sequential program."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
X = np.arange(64, dtype=np.float32).reshape(8, 8) % 5 - 2
TABLE = np.arange(8, dtype=np.float32) % 3


def over_both(x):
    """Each block of 2x4 and half the sum of the blocks below one another; ``TABLE`` is a constant of the region."""

    def tile(t):
        return t * jnp.asarray(TABLE)[:4] + jax.lax.psum(t, "a") / 2

    return jax.shard_map(tile, mesh=MESH, in_specs=P("a", "b"), out_specs=P("a", "b"), check_vma=False)(x)


def over_both_whole(x):
    sums = x.reshape(4, 2, 8).sum(0)
    return x * np.tile(TABLE[:4], 2) + np.tile(sums, (4, 1)) / 2


def over_one(x):
    """A loop with a constant before it in a region that is manual over ``a``, and in it a region over ``b`` too."""

    def inner(t):
        return t + jax.lax.psum(t, "b") * jax.lax.axis_index("b")

    def outer(t):
        nested = partial(jax.shard_map, in_specs=P(None, "b"), out_specs=P(None, "b"), axis_names={"b"})
        step = lambda c, _: (nested(inner, check_vma=False)(c) * 0.5 + jnp.ones(8), None)  # noqa: E731
        return jax.lax.scan(step, t, None, length=2)[0] + jax.lax.psum(t, "a")

    specs = {"in_specs": P("a"), "out_specs": P("a"), "axis_names": {"a"}}
    return jax.shard_map(outer, mesh=MESH, **specs, check_vma=False)(x)


def over_one_whole(x):
    c = x
    for _ in range(2):
        halves = c.reshape(8, 2, 4)
        c = (halves + halves.sum(1, keepdims=True) * np.arange(2).reshape(1, 2, 1)).reshape(8, 8) * 0.5 + 1
    return c + np.tile(x.reshape(4, 2, 8).sum(0), (4, 1))


def scanned(f, x):
    return jax.lax.scan(lambda c, _: (f(c) + 1, c.sum()), x, None, length=3)[0]


def captured(f, x):
    return jax.lax.scan(lambda c, _: (c + f(x), None), x, None, length=2)[0]


def repeated(f, x):
    more = lambda s: (s[1] < 2) & (f(s[0]).sum() < 1e9)  # noqa: E731
    return jax.lax.while_loop(more, lambda s: (f(s[0]), s[1] + 1), (x, 0))


def branched(f, x):
    return jax.lax.cond(x.sum() > 0, f, lambda y: y * 2, x) + jax.lax.switch(1, [jnp.sin, f, jnp.cos], x)


def called(f, x):
    return jax.jit(f)(jax.jit(f)(x) * 2)


def in_all(f, x):
    def step(c, _):
        return jax.lax.cond(c.sum() > -1e9, lambda y: jax.jit(f)(y) * 0.5, lambda y: y, c), None

    return jax.lax.scan(step, x, None, length=2)[0]


def checkpointed(f, x):
    return jax.grad(lambda x: jax.lax.scan(jax.checkpoint(lambda c, _: (f(c), None)), x, None, length=2)[0].sum())(x)


def placed(x):
    return jax.device_put(x, NamedSharding(MESH, P("a", "b")))


def sequential(name, f, x):
    """The same in NumPy."""
    if name == "scanned":
        for _ in range(3):
            x = f(x) + 1
        return [x]
    return {
        "captured": lambda: [x + 2 * f(x)],
        "repeated": lambda: [f(f(x)), 2],
        "branched": lambda: [(f(x) if x.sum() > 0 else 2 * x) + f(x)],
        "called": lambda: [f(f(x) * 2)],
        "in_all": lambda: [f(f(x) * 0.5) * 0.5],
    }[name]()


PROGRAMS = (scanned, captured, repeated, branched, called, in_all)
REGIONS = {"all axes": (over_both, over_both_whole), "some axes": (over_one, over_one_whole)}


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_region_inside_of_control_flow_is_partitioned(shardy, program, region):
    here, whole = REGIONS[region]
    with spj.use(strict=True):
        found = jax.jit(lambda x: program(here, x))(placed(X))
    wanted = sequential(program.__name__, whole, X)
    for mine, theirs in zip(jax.tree.leaves(found), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-5)


def test_a_gradient_through_a_loop_of_regions(shardy):
    """The map is linear: its gradient is the transposed matrix's, twice, of ones."""
    with spj.use(strict=True):
        found = jax.jit(lambda x: checkpointed(over_both, x))(placed(X))
    basis = np.eye(64, dtype=np.float32).reshape(64, 8, 8)
    matrix = np.stack([over_both_whole(e).reshape(64) for e in basis], axis=1)
    wanted = (matrix.T @ matrix.T @ np.ones(64, np.float32)).reshape(8, 8)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


def test_dimensions_left_open_inside_of_a_loop(shardy):
    """``P.UNCONSTRAINED`` of a constraint in a loop's body leaves the dimension to propagation."""
    open_rows = NamedSharding(MESH, P(P.UNCONSTRAINED, None))

    def step(c, _):
        return jax.lax.with_sharding_constraint(c + 1, open_rows), None

    x = jax.device_put(X, NamedSharding(MESH, P("a", None)))
    with spj.use(strict=True):
        jitted = jax.jit(lambda x: jax.lax.scan(step, x, None, length=3)[0])
        found, hlo = jitted(x), jitted.lower(x).compile().as_text()
    np.testing.assert_array_equal(np.asarray(found), X + 3)
    assert "all-gather" not in hlo
