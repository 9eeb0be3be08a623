"""``spj.pin``: XLA partitions, with constraints of shardpass."""

import re
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj
from shardpass.advise.pin import pin as pin_room
from shardpass.diagnostics import ShardpassError, collect
from shardpass.jax import pinned as pinned_programs


@pytest.fixture
def mesh():
    return Mesh(np.array(jax.devices()[:8]).reshape(8), ("data",))


def product(x, w):
    return jax.nn.relu(x @ w)


def arguments(mesh):
    """Rows over devices, and a small weight split along the same axis: one of the two has to move."""
    x = jnp.arange(256 * 16, dtype=jnp.float32).reshape(256, 16) / 4096
    w = jnp.arange(16 * 8, dtype=jnp.float32).reshape(16, 8) / 128 - 0.4
    return jax.device_put(x, NamedSharding(mesh, P("data"))), jax.device_put(w, NamedSharding(mesh, P(None, "data")))


def test_constraints_stand_in_the_program_that_xla_gets(mesh):
    x, w = arguments(mesh)
    pinned = spj.pin(product, verify=False)
    text = pinned.lower(x, w).as_text()
    # gathering w receives 7/8 of 512 B, gathering x 7/8 of 16 KiB: w is brought whole, and the product is split by rows
    assert re.search(r"sdy.sharding_constraint %arg1 <@mesh, \[\{\}, \{\}\]> : tensor<16x8xf32>", text)
    assert re.search(r'sdy.sharding_constraint %\d+ <@mesh, \[\{"data"\}, \{\}\]> : tensor<256x8xf32>', text)
    hlo = pinned.lower(x, w).compile().as_text()
    assert "f32[16,8]" in next(line for line in hlo.splitlines() if " all-gather(" in line)
    report = str(pinned.report(x, w))
    assert "with_sharding_constraint(w, P())" in report
    assert "P('data', None)" in report
    line = product.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in report


@pytest.mark.parametrize("shardy", [True, False])
def test_results_are_those_of_the_function(mesh, shardy):
    x, w = arguments(mesh)

    def loss(w, x):
        return jnp.mean(product(x, w) ** 2)

    def scanned(w, x):
        return jax.lax.scan(lambda c, _: (c * 0.5 + jnp.mean(product(x, w)), c), 0.0, None, length=3)

    pinned = spj.pin(loss, verify=False)
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", spj.FallbackWarning)
            for ours, plain in (
                (pinned, loss),
                (jax.jit(pinned), jax.jit(loss)),
                (jax.jit(jax.grad(pinned)), jax.jit(jax.grad(loss))),
                (jax.jit(jax.grad(jax.checkpoint(pinned))), jax.jit(jax.grad(loss))),
                (jax.jit(spj.pin(scanned, verify=False)), jax.jit(scanned)),
                (spj.pin(jax.jit(loss), verify=False), loss),
            ):
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), ours(w, x), plain(w, x))
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)


def test_what_is_no_array_stays_as_it_is(mesh):
    x, w = arguments(mesh)

    @jax.jit
    def step(x, w):
        out = spj.pin(lambda x, options: {"y": product(x, options["w"]), "name": options["name"]}, verify=False)(
            x, {"w": w, "name": "relu"}
        )
        assert out["name"] == "relu"
        return out["y"]

    np.testing.assert_allclose(step(x, w), product(np.asarray(x), np.asarray(w)), rtol=1e-5)


def test_a_method_is_pinned(mesh):
    class Model:
        scale = 2.0

        @spj.pin
        def apply(self, x):
            return x * self.scale

    x, _ = arguments(mesh)
    np.testing.assert_allclose(jax.jit(Model().apply)(x), 2 * np.asarray(x))


def test_the_outcome_is_kept_for_the_next_program_alike(mesh, monkeypatch):
    x, w = arguments(mesh)
    made = []
    original = pin_room.pin_module
    monkeypatch.setattr(pinned_programs, "_known", {})
    monkeypatch.setattr(pin_room, "pin_module", lambda *a, **k: made.append(1) or original(*a, **k))
    pinned = spj.pin(product, verify=False)
    pinned(x, w)
    pinned.report(x, w)
    pinned.lower(x, w).compile()
    assert len(made) == 1


def test_a_program_that_cannot_be_decided_is_compiled_as_it_is(mesh, monkeypatch):
    from shardpass.diagnostics.table_runtime import PEER_FAILED

    def fails(*_, **__):
        raise PEER_FAILED.error(way="xla", reason="the device is on fire")

    x, w = arguments(mesh)
    monkeypatch.setattr(pinned_programs, "_known", {})
    monkeypatch.setattr(pin_room, "pin_module", fails)
    with pytest.warns(spj.FallbackWarning, match=r"SP614"):
        found = spj.pin(product)(x, w)
    np.testing.assert_allclose(found, product(np.asarray(x), np.asarray(w)), rtol=1e-5)


def test_under_strict_that_is_an_error(mesh, monkeypatch):
    from shardpass.diagnostics.table_runtime import PEER_FAILED

    def fails(*_, **__):
        raise PEER_FAILED.error(way="xla", reason="the device is on fire")

    monkeypatch.setattr(pinned_programs, "_known", {})
    monkeypatch.setattr(pin_room, "pin_module", fails)
    x, w = arguments(mesh)
    with spj.use(partitioner="xla", strict=True), pytest.raises(ShardpassError, match=r"on fire") as raised:
        jax.jit(lambda x, w: product(x, w))(x, w)  # a function that no test before has compiled
    assert raised.value.diagnostics[0].code == "SP607"


def test_a_block_pins_what_others_jit(mesh, monkeypatch):
    known = {}
    monkeypatch.setattr(pinned_programs, "_known", known)
    x, w = arguments(mesh)
    original = pin_room.pin_module
    monkeypatch.setattr(pin_room, "pin_module", lambda *a, **k: original(*a, **{**k, "verify": False}))
    with spj.use(partitioner="xla"):
        found = jax.jit(lambda x, w: product(x, w))(x, w)
    np.testing.assert_allclose(found, product(np.asarray(x), np.asarray(w)), rtol=1e-5)
    ((_, pins),) = known.values()
    assert pins.constraints


def test_another_partitioner_is_named():
    with pytest.raises(ShardpassError, match=r"partitioner") as raised, spj.use(partitioner="shardy"):
        pass
    assert raised.value.diagnostics[0].code == "SP140"


def test_a_program_on_one_device_is_left_alone():
    pinned = spj.pin(product, verify=False)
    np.testing.assert_allclose(pinned(jnp.ones((4, 4)), jnp.ones((4, 4))), np.full((4, 4), 4.0))
    assert not pinned.report(jnp.ones((4, 4)), jnp.ones((4, 4))).constraints


def test_specs_in_the_function_are_over_the_mesh_under_jit_too(mesh):
    x, w = arguments(mesh)

    def constrained(x, w):
        return jax.lax.with_sharding_constraint(product(x, w), P(None, "data"))

    pinned = spj.pin(constrained, mesh=mesh, verify=False)
    wanted = product(np.asarray(x), np.asarray(w))
    for found in (
        pinned(x, w),
        jax.jit(pinned)(x, w),
        jax.jit(lambda: pinned(x, w))(),
        jax.vmap(lambda row: pinned(row, w))(x.reshape(2, 128, 16)).reshape(256, 8),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_what_others_jitted_is_pinned_and_reported(mesh):
    """``jax.jit``, ``pin`` and equinox lower to objects of their own, around that of JAX."""
    x, w = arguments(mesh)
    for jitted in (product, jax.jit(product), spj.pin(product, verify=False), eqx.filter_jit(product)):
        pinned = spj.pin(jitted, verify=False)
        np.testing.assert_allclose(pinned(x, w), product(np.asarray(x), np.asarray(w)), rtol=1e-5)
        constraints = pinned.report(x, w).constraints
        assert {re.search(r"P\(.*?\)", text)[0] for text in constraints} == {"P()", "P('data', None)"}


@pytest.mark.parametrize("wrong", [{"f": 3}, {"mesh": 8}, {"verify": 1}, {"trials": 0}, {"trials": "many"}])
def test_wrong_arguments_are_named(wrong):
    given = {"f": product, **wrong}
    with pytest.raises(ShardpassError) as raised:
        spj.pin(given.pop("f"), **given)
    assert raised.value.diagnostics[0].code == "SP140"
    assert next(iter(wrong)) in raised.value.diagnostics[0].message


def test_verified_in_a_child_nothing_is_above_plain(mesh):
    """XLA gathers the small weight by itself: no constraint is cheaper, and a remark says that."""
    x, w = arguments(mesh)
    with collect() as remarks:
        jax.jit(spj.pin(product, trials=3))(x, w)
    pins = spj.pin(product, trials=3).report(x, w)
    assert pins.compiled <= 3
    assert pins.after.bytes <= pins.before.bytes == 7 * 16 * 4
    assert pins.after.temporaries <= pins.before.temporaries
    assert bool(pins.constraints) or [remark.code for remark in remarks] == ["SP615"]
