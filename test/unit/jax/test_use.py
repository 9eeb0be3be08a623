"""``use()``: programs that shardpass partitions inside JAX give what JAX gives, with the shardings that it expects."""

import importlib.util
import inspect
import threading
import warnings
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import ShardpassError
from shardpass.ops import registry
from shardpass.ops.families import custom_call

PROGRAMS = Path(__file__).resolve().parents[3] / "examples" / "programs"


@pytest.fixture(params=[True, False], ids=["shardy", "gspmd"], autouse=True)
def shardy(request):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param)
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", before)


def make_mesh(kind=AxisType.Auto, **axes):
    count = int(np.prod(list(axes.values())))
    return jax.make_mesh(
        tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes), devices=jax.devices()[:count]
    )


@pytest.fixture
def mesh():
    return make_mesh(data=4, model=2)


def placed(mesh, array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


class Counts:
    """What was added to stats() since."""

    def __init__(self):
        self.before = spj.stats()

    def __getattr__(self, name):
        return spj.stats()[name] - self.before[name]


@pytest.fixture
def counts():
    return Counts()


def example(source):
    spec = importlib.util.spec_from_file_location(f"program_{source}", PROGRAMS / f"{source}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.turns(2)
@pytest.mark.parametrize("source", ["mlp", "transformer", "shard_map"])
def test_programs_of_the_examples(shardy, source, counts):
    module = example(source)
    mesh = make_mesh(**module.MESH)
    rng = np.random.default_rng(0)

    def value(kind):
        if kind.dtype == jnp.int32:
            return rng.integers(0, 8, kind.shape, dtype=np.int32)
        return rng.uniform(-1, 1, kind.shape).astype(kind.dtype)

    for function, kinds in module.programs(mesh).values():
        arguments = jax.tree.map(value, kinds)
        wanted = function(*arguments)
        with spj.use():
            found = function(*arguments)
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert mine.sharding.is_equivalent_to(theirs.sharding, mine.ndim)
            scale = np.abs(theirs).max()
            np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=0, atol=1e-5 * scale)
    assert counts.partitioned == len(module.programs(mesh))
    assert counts.fallback == 0


def test_a_training_loop_feeds_results_back(mesh, counts):
    """Shardings in and out agree from step to step, and donated buffers are given up."""
    rng = np.random.default_rng(1)
    w = rng.uniform(-1, 1, (8, 4)).astype(np.float32)
    x, y = rng.uniform(-1, 1, (16, 8)).astype(np.float32), rng.uniform(-1, 1, (16, 4)).astype(np.float32)

    def step(w, x, y):
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)

    jitted = jax.jit(step, donate_argnums=0)
    here = placed(mesh, w, None, "model")
    there = w
    with spj.use():
        for _ in range(5):
            given, here = here, jitted(here, placed(mesh, x, "data"), placed(mesh, y, "data"))
            there = step(there, x, y)
            assert given.is_deleted()
    np.testing.assert_allclose(np.asarray(here), there, rtol=1e-5)
    assert counts.partitioned >= 1
    assert counts.fallback == 0


def test_one_device_passes_through(counts):
    with spj.use():
        assert jax.jit(lambda x: x * 3 + 1)(2.0) == 7
    assert counts.passed_through >= 1
    assert counts.partitioned == counts.fallback == 0


def test_compiled_before_is_compiled_again_inside_alone(mesh, counts):
    traced = []

    @jax.jit
    def f(x):
        traced.append(1)
        return x + 1

    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    f(x)
    with spj.use():
        f(x)
        f(x)
    f(x)
    assert counts.partitioned == 1
    assert len(traced) == 2


def test_other_threads_are_left_alone(mesh, counts):
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    with spj.use():
        thread = threading.Thread(target=lambda: jax.jit(lambda x: x * 5)(x).block_until_ready())
        thread.start()
        thread.join()
    assert counts.partitioned == 0


def test_install_and_uninstall(mesh, counts):
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    f = jax.jit(lambda x: x * 7)
    f(x)
    spj.install()
    try:
        spj.install()  # twice is once
        np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(x) * 7)
        assert counts.partitioned >= 1
    finally:
        spj.uninstall()
    done = counts.partitioned
    f(x)
    assert counts.partitioned == done


def test_lowered_and_compiled_by_hand(mesh, counts):
    x = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(mesh, P("data")))
    with spj.use():
        compiled = jax.jit(lambda x: x.sum(axis=0)).lower(x).compile()
    assert "all-reduce" in compiled.as_text()
    assert counts.partitioned == 1
    a = placed(mesh, np.arange(32, dtype=np.float32).reshape(8, 4), "data")
    np.testing.assert_array_equal(np.asarray(compiled(a)), np.asarray(a).sum(axis=0))


@pytest.fixture
def refused(monkeypatch):
    """A function that nobody has compiled yet: it calls a target of which a wrong rule was registered."""
    registry.table()  # every family: none may come while others stand in for the targets
    monkeypatch.setattr(custom_call, "_targets", dict(custom_call._targets))
    shardpass.ops.register_custom_call("lapack_spotrf_ffi", "i -> i")

    def refused(x):
        one = jnp.linalg.cholesky(jnp.eye(4) * x.max() * 0 + jnp.eye(4))[0, 0]  # the line that the reason names
        return x * 2 * one

    return refused


def test_what_shardpass_cannot_do_is_left_to_xla_with_the_reason(mesh, counts, refused):
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    with spj.use(), pytest.warns(spj.FallbackWarning, match="SP308") as caught:
        y = jax.jit(refused)(x)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x) * 2)
    assert counts.fallback == 1
    assert "SP601" in str(caught[0].message)


@pytest.mark.parametrize("broken", ["run_steps", "wrap"])
def test_a_fault_of_ours_is_a_warning(mesh, counts, monkeypatch, broken):
    def fail(*args, **kwargs):
        raise KeyError("nobody thought of this")

    monkeypatch.setattr(f"shardpass.jax.hook.{broken}", fail)
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    with spj.use(), pytest.warns(spj.FallbackWarning, match="nobody thought of this"):
        y = jax.jit(lambda x: x * 9)(x)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x) * 9)
    assert counts.fallback == 1


def loop(x):
    return jax.lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x)


def scanned(x):
    return jax.lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(x.shape[1:], x.dtype), x)[1]


WIDER = {
    "loop": loop,
    "scan": scanned,
    "sort": lambda x: jnp.sort(x, axis=0),
    "cumsum": lambda x: jnp.cumsum(x, axis=0),
    "gather": lambda x: x[jnp.array([3, 1, 1, 0])],
    "max": lambda x: x.max(axis=0),
    "argmax": lambda x: jnp.argmax(x, axis=0),
    "softmax": lambda x: jax.nn.softmax(x, axis=0),
    "concatenate": lambda x: jnp.concatenate([x, x[::-1]], axis=0),
    "pad": lambda x: jnp.pad(x, ((1, 3), (0, 2))),
    "slice": lambda x: x[2:6, 1:3],
    "roll": lambda x: jnp.roll(x, 3, axis=0),
    "cond": lambda x: jax.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x),
    "reshape": lambda x: x.reshape(4, -1).T,
    "random": lambda x: x + jax.random.uniform(jax.random.key(0), x.shape),
    "dynamic update": lambda x: x.at[3].set(7.0),
    "scatter add": lambda x: jnp.zeros((5, 4)).at[jnp.array([0, 2, 2, 4, 1, 1, 0, 3])].add(x),
    "convolution": lambda x: jnp.convolve(x.ravel(), jnp.ones(3), mode="same"),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x, axis=1)),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(8)),
    "remat gradient": lambda x: jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum())(x),
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("function", WIDER.values(), ids=WIDER)
def test_right_whoever_partitions(mesh, function):
    """Partitioned by shardpass, or handed back: in either case the numbers of one device."""
    x = np.random.default_rng(2).uniform(-1, 1, (8, 4)).astype(np.float32)
    wanted = jax.jit(function)(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spj.FallbackWarning)
        with spj.use():
            found = jax.jit(function)(placed(mesh, x, "data", "model"))
    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=0, atol=2e-5 * scale)


def test_vmapped_and_differentiated_shard_map(shardy, mesh, counts):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("data"), out_specs=P())
    def total(block):
        return jax.lax.psum(block.sum(0), "data")

    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    with spj.use():
        y = jax.jit(jax.grad(lambda x: (total(x) ** 2).sum()))(placed(mesh, x, "data"))
    np.testing.assert_allclose(np.asarray(y), np.broadcast_to(2 * x.sum(0), x.shape), rtol=1e-6)
    assert counts.partitioned + counts.fallback >= 1


def test_shard_map_over_some_of_the_axes(shardy, mesh, counts):
    """Per-device code over "data"; "model" is left to the partitioner inside it."""

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("data"), P()), out_specs=P(), axis_names={"data"})
    def product(x, w):
        return jax.lax.psum(x.T @ x @ w, "data")

    rng = np.random.default_rng(3)
    x, w = rng.integers(-3, 4, (16, 8)).astype(np.float32), rng.integers(-3, 4, (8, 6)).astype(np.float32)
    with spj.use():
        y = jax.jit(product)(placed(mesh, x, "data"), placed(mesh, w, None, "model"))
    np.testing.assert_array_equal(np.asarray(y), x.T @ x @ w)
    assert counts.fallback == 0


def test_a_mesh_of_explicit_axes(counts):
    mesh = make_mesh(AxisType.Explicit, data=4, model=2)
    rng = np.random.default_rng(4)
    x, w = rng.uniform(-1, 1, (16, 8)).astype(np.float32), rng.uniform(-1, 1, (8, 6)).astype(np.float32)

    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).sum()

    with jax.set_mesh(mesh), spj.use():
        found = jax.jit(jax.grad(loss))(placed(mesh, w, None, "model"), placed(mesh, x, "data"))
    assert found.sharding.spec == P(None, "model")
    np.testing.assert_allclose(np.asarray(found), jax.grad(loss)(w, x), rtol=1e-5, atol=1e-5)
    assert counts.fallback == 0
    assert counts.partitioned >= 1


def test_outside_of_jit(mesh, counts):
    """Single operations on sharded arrays are programs too."""
    x = placed(mesh, np.arange(32, dtype=np.float32).reshape(8, 4), "data", "model")
    with spj.use():
        y = jnp.dot(x + 1, x.T)
    np.testing.assert_array_equal(np.asarray(y), (np.asarray(x) + 1) @ np.asarray(x).T)
    assert counts.partitioned >= 2
    assert counts.fallback == 0


def test_what_jax_would_raise_too_is_no_fallback(mesh, counts):
    lowered = jax.jit(lambda x: x * 2).lower(placed(mesh, np.ones(8, np.float32), "data"))
    for strict in (False, True):
        with spj.use(strict=strict), pytest.raises(jax.errors.JaxRuntimeError, match="No such compile option"):
            lowered.compile(compiler_options={"no_such_option": "1"})
    assert counts.fallback == 0


def test_the_warning_stands_at_the_users_call(mesh, refused):
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    with spj.use(), pytest.warns(spj.FallbackWarning) as caught:
        jax.jit(refused)(x)  # here
    (warning,) = caught
    assert warning.filename == __file__
    assert Path(__file__).read_text().splitlines()[warning.lineno - 1].strip() == "jax.jit(refused)(x)  # here"
    told = str(warning.message)
    line = inspect.getsourcelines(refused)[1] + 1
    assert told.startswith(f"{__file__}:{line}:")
    assert "XLA partitions refused instead of shardpass" in told
    assert "[SP308]" in told
    assert "correct the rule" in told  # what to change


def test_strict_raises_where_it_would_fall_back(mesh, counts, refused):
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    with pytest.warns(spj.FallbackWarning), spj.use():
        jax.jit(refused)(x)  # what was compiled before does not serve
    with spj.use(strict=True):
        with pytest.raises(ShardpassError, match=r"SP308[\s\S]*SP607"):
            jax.jit(refused)(x)
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x * 3)(x)), np.asarray(x) * 3)
    assert (counts.partitioned, counts.fallback) == (1, 1)


def test_stats_lists_reasons(mesh, refused):
    x = placed(mesh, np.arange(8.0, dtype=np.float32), "data")
    before = spj.stats()["reasons"].get("SP308", {}).get("refused", 0)
    with spj.use(), pytest.warns(spj.FallbackWarning):
        jax.jit(refused)(x)
    assert spj.stats()["reasons"]["SP308"]["refused"] == before + 1
