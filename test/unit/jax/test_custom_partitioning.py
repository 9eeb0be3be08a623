"""``custom_partitioning``: the author's functions are called with the shardings that shardpass chose."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
X = np.arange(128, dtype=np.float32).reshape(8, 16) % 7
CALLS = []


def axes_of(argument):
    """The axis of each dimension."""
    spec = tuple(argument.sharding.spec)
    return spec + (None,) * (len(argument.shape) - len(spec))


def defined(function, partition, rule, infer=lambda mesh, args, result: args[0].sharding, static=(), **more):
    found = custom_partitioning(function, static_argnums=static)
    found.def_partition(partition, infer_sharding_from_operands=infer, sharding_rule=rule, **more)
    return found


def rows():
    """Rows are independent, and columns must be whole."""

    def partition(mesh, args, result):
        CALLS.append(axes_of(args[0]))
        here = NamedSharding(mesh, P(axes_of(args[0])[0], None))
        return mesh, jnp.fft.fft, here, (here,)

    return defined(lambda x: jnp.fft.fft(x), partition, "i j -> i j")


def normalized():
    """The sums of rows are joined by the author's own psum."""

    def partition(mesh, args, result):
        columns = axes_of(args[0])[1]
        CALLS.append(axes_of(args[0]))

        def tile(x):
            total = x.sum(1, keepdims=True)
            return x / (jax.lax.psum(total, columns) if columns else total)

        return mesh, tile, args[0].sharding, (args[0].sharding,)

    return defined(lambda x: x / x.sum(1, keepdims=True), partition, "i j -> i j")


def product():
    def partition(mesh, args, result):
        i, j = axes_of(args[0])
        CALLS.append((i, j))
        tile = lambda x, w: jax.lax.psum(x @ w, j) if j else x @ w  # noqa: E731
        shardings = NamedSharding(mesh, P(i, j)), NamedSharding(mesh, P(j, None))
        return mesh, tile, NamedSharding(mesh, P(i, None)), shardings

    def infer(mesh, args, result):
        return NamedSharding(mesh, P(axes_of(args[0])[0], None))

    def function(x, w):
        return x @ w

    found = defined(function, partition, "i j, j k -> i k", infer, reduction_factors=("j",))
    return lambda x: found(x, jnp.arange(64.0).reshape(16, 4))


def rolled():
    """A halo: the last row of the device before."""

    def partition(mesh, args, result):
        axis = axes_of(args[0])[0]
        CALLS.append(axes_of(args[0]))
        ring = [(i, (i + 1) % mesh.shape[axis]) for i in range(mesh.shape[axis])]
        tile = lambda x: jnp.concatenate([jax.lax.ppermute(x[-1:], axis, ring), x[:-1]])  # noqa: E731
        return mesh, tile, args[0].sharding, (args[0].sharding,)

    return defined(lambda x: jnp.roll(x, 1, 0), partition, "i j -> i j", permutation_factors=("i",))


def two_results():
    def partition(mesh, args, result):
        i, _ = axes_of(args[0])
        CALLS.append(axes_of(args[0]))
        results = NamedSharding(mesh, P(i, None)), NamedSharding(mesh, P(i))
        return mesh, lambda x: (x * 2, x.max(1)), results, (NamedSharding(mesh, P(i, None)),)

    def infer(mesh, args, result):
        i, _ = axes_of(args[0])
        return NamedSharding(mesh, P(i, None)), NamedSharding(mesh, P(i))

    found = defined(lambda x: (x * 2, x.max(1)), partition, "i j -> i j, i", infer)
    return lambda x: found(x)


def calls_of_functions():
    """The author's program holds calls, a loop and the number of the device."""

    def tile(x):
        softened = jax.lax.fori_loop(0, 2, lambda n, c: jax.nn.softmax(jax.nn.relu(c)) + n, x)
        return softened + 0 * jax.lax.axis_index("a")

    def partition(mesh, args, result):
        CALLS.append(axes_of(args[0]))
        here = NamedSharding(mesh, P(axes_of(args[0])[0], None))
        return mesh, tile, here, (here,)

    def function(x):
        return jax.lax.fori_loop(0, 2, lambda n, c: jax.nn.softmax(jax.nn.relu(c)) + n, x)

    return defined(function, partition, "i j -> i j", need_replication_factors=("j",))


def with_a_static_argument():
    def partition(power, mesh, args, result):
        CALLS.append(axes_of(args[0]))
        return mesh, lambda x: x**power, args[0].sharding, (args[0].sharding,)

    found = defined(lambda x, power: x**power, partition, "i j -> i j", lambda n, m, a, r: a[0].sharding, (1,))
    return lambda x: found(x, 3)


def in_a_loop():
    inner = normalized()
    return lambda x: jax.lax.scan(lambda c, _: (inner(c) + 1, None), x, None, length=3)[0]


PROGRAMS = {
    "rows": (rows, {"all-gather"}),
    "a sum of its own": (normalized, {"all-reduce"}),
    "a contraction": (product, {"all-reduce"}),
    "a halo": (rolled, {"collective-permute"}),
    "two results": (two_results, None),
    "calls of functions": (calls_of_functions, None),
    "a static argument": (with_a_static_argument, set()),
    "in a loop": (in_a_loop, {"all-reduce"}),
}


@pytest.mark.parametrize(("make", "kinds"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_authors_program_is_what_a_device_runs(shardy, make, kinds):
    function = make()
    x = jax.device_put(X + 1, NamedSharding(MESH, P("a", "b")))
    with jax.set_mesh(MESH):
        wanted = jax.jit(lambda x: function(x))(x)
        CALLS.clear()
        before = spj.stats()
        with spj.use():
            jitted = jax.jit(lambda x: function(x))
            found, called = jitted(x), list(CALLS)
            hlo = jitted.lower(x).compile().as_text()
    assert spj.stats()["fallback"] == before["fallback"]
    assert spj.stats()["partitioned"] > before["partitioned"]
    # once; and columns, which a rule says must be whole, are
    assert len(called) == 1
    assert called[0][1] == (None if shardy and make is calls_of_functions else "b")
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-5)
    if shardy and kinds is not None:
        made = set(re.findall(r" (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)\(", hlo))
        assert made == kinds


def test_padding_of_a_contraction_is_zero():
    """6 columns over 4 devices are padded to 8. The author's sum adds what is there."""

    def partition(mesh, args, result):
        i, j = axes_of(args[0])
        tile = lambda x: jax.lax.psum(x.sum(1), j) if j else x.sum(1)  # noqa: E731
        return mesh, tile, NamedSharding(mesh, P(i)), (NamedSharding(mesh, P(i, j)),)

    sums = defined(lambda x: x.sum(1), partition, "i j -> i", reduction_factors=("j",))
    columns = NamedSharding(MESH, P(None, "a"))
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    with spj.use():
        found = jax.jit(lambda x: sums(jax.lax.with_sharding_constraint(x[:, :6] + 1, columns)))(x)
    np.testing.assert_array_equal(np.asarray(found), (X[:, :6] + 1).sum(1))


def test_an_error_of_the_author_is_named():
    def partition(mesh, args, result):
        raise TypeError("not today")

    fails = defined(lambda x: x * 2, partition, "i j -> i j")
    x = jax.device_put(X, NamedSharding(MESH, P("a", "b")))
    with pytest.raises(ShardpassError, match=r"TypeError: not today \[SP309\]"), spj.use(strict=True):
        jax.jit(lambda x: fails(x))(x)


def test_a_text_of_another_process_is_refused():
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(MESH, P("a", "b")))
    text = re.sub(r'backend_config = "\d+"', 'backend_config = "1"', jax.jit(rows()).lower(x).as_text())
    with pytest.raises(ShardpassError, match=r"lowered by another process.*\[SP309\]"):
        shardpass.run_pipeline(text, "partition")
