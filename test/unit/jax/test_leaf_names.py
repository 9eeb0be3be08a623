"""Leaves of libraries that flatten trees have the paths that users write, in the program of a script."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from shardpass.advise.find.propose.program import Context
from shardpass.advise.place.sites import Sites, read
from shardpass.advise.suggest.take import take
from shardpass.cli.script import program_of
from shardpass.jax.leaf_names import set_leaf_names
from shardpass.report.naming import Sources

NNX = """
import jax, jax.numpy as jnp, optax
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(4, 4, use_bias=False, rngs=rngs) for _ in range(2)])
        self.head = nnx.Linear(4, 2, use_bias=False, rngs=rngs)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

@nnx.jit
def step(model, optimizer, x):
    grads = nnx.grad(lambda model: jnp.sum(model(x) ** 2))(model)
    optimizer.update(model, grads)

model = Net(nnx.Rngs(0))
step(model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param), jax.device_put(jnp.ones((8, 4)), PLACE))
"""
EQUINOX = """
import equinox as eqx, jax, jax.numpy as jnp, optax

class Net(eqx.Module):
    layers: list
    head: jax.Array

    def __call__(self, x):
        for layer in self.layers:
            x = jnp.tanh(x @ layer)
        return x @ self.head

tx = optax.adam(1e-3)

@eqx.filter_jit
def step(model, state, x, *, y):
    grads = eqx.filter_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    updates, state = tx.update(grads, state, model)
    return eqx.apply_updates(model, updates), state

model = Net([jnp.ones((4, 4))] * 2, jnp.ones((4, 2)))
step(model, tx.init(model), jax.device_put(jnp.ones((8, 4)), PLACE), y=jnp.ones((8, 2)))
"""
PLACE = 'jax.NamedSharding(jax.make_mesh((2,), ("d",), (jax.sharding.AxisType.Auto,)), jax.P("d"))'


def sites_of(text: str, folder: Path) -> Sites:
    file = folder / "train.py"
    file.write_text(text.replace("PLACE", PLACE))
    data, name = program_of(f"{file}:step")
    return Sites(read(data, name, Sources()))


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "moments", "others"),
    [(NNX, "optimizer.opt_state[0].{}", {"x"}), (EQUINOX, "state[0].{}", {"x", "y"})],
    ids=["nnx", "equinox"],
)
def test_leaves_have_the_paths_that_users_write(text: str, moments: str, others: set[str], tmp_path: Path) -> None:
    sites = sites_of(text, tmp_path)
    weights = {".layers[*].kernel", ".head.kernel"} if "nnx" in text else {".layers[*]", ".head"}
    roots = ["model", *(moments.format(name) for name in ("mu", "nu"))]
    patterns = {site.pattern for site in sites.arguments}
    assert patterns == {root + weight for root in roots for weight in weights} | others
    with sites.reading.module.context:
        updated = {argument.pattern for argument in Context(sites).updated.values()}
    assert updated == {site.pattern for site in sites.arguments} - others


def test_a_tree_of_another_form_keeps_its_names_and_tells_so(capfd: pytest.CaptureFixture[str]) -> None:
    """Of nnx, without the graph beside the leaves: as a release with another class would give it."""

    class Node:
        states = ({"kernel": 1.0},)

    Node.__module__ = "flax.nnx.of_another_release"
    lowered = jax.jit(lambda model, x: x).lower(1.0, 2.0)
    module = lowered.compiler_ir()
    before = str(module)
    set_leaf_names(module, lambda model, x: x, (Node(), 2.0), {})
    assert str(module) == before
    assert "_graphdef" in capfd.readouterr().err


def test_what_equinox_jits_is_a_program() -> None:
    """Its ``lower`` returns a class of its own, whose text has no places."""
    jitted = eqx.filter_jit(jnp.sin)
    for given in (take(jitted, (jnp.ones(4),), {}), take(jitted.lower(jnp.ones(4)), (), {})):
        assert "stablehlo.sine" in given.data
        assert "loc(" in given.data
