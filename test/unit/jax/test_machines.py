"""For which machine programs of JAX are decided: what the user says, the environment, or what the devices are."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.cost.chosen import VARIABLE
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.machines import module_machine
from shardpass.jax import here, hook
from shardpass.jax.here import machine_here

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])
ROWS, COLUMNS = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, "x"))


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.delenv(VARIABLE)
    here._of_kind.cache_clear()


def device(platform, kind, slice_index=0):
    return SimpleNamespace(platform=platform, device_kind=kind, slice_index=slice_index)


@pytest.mark.usefixtures("unsaid")
@pytest.mark.parametrize(
    ("platform", "kind", "machine"),
    [
        ("cpu", "cpu", "cpu"),
        ("gpu", "NVIDIA A100-SXM4-80GB", "a100"),
        ("gpu", "NVIDIA H100 80GB HBM3", "h100"),
        ("cuda", "NVIDIA H200", "h200"),
        ("gpu", "NVIDIA B200", "b200"),
        ("gpu", "NVIDIA GB200", "gb200"),
        ("rocm", "AMD Instinct MI300X", "mi300x"),
        ("tpu", "TPU v5 lite", "v5e"),
        ("tpu", "TPU v5e", "v5e"),
        ("tpu", "TPU v5", "v5p"),
        ("tpu", "TPU v5p", "v5p"),
        ("tpu", "TPU v6 lite", "v6e"),
    ],
)
def test_devices_say_which_machine_they_are(platform, kind, machine):
    with collect() as told:
        assert machine_here([device(platform, kind)] * 4) == machine
    assert told == []


@pytest.mark.usefixtures("unsaid")
def test_slices_are_machines_of_their_own():
    assert machine_here([device("tpu", "TPU v5p", n // 4) for n in range(8)]) == "v5p-slices"
    assert machine_here([device("gpu", "NVIDIA H100", n // 4) for n in range(8)]) == "h100"


@pytest.mark.usefixtures("unsaid")
@pytest.mark.parametrize("kind", ["NVIDIA GH200 480GB", "NVIDIA GeForce RTX 4090", "TPU v4"])
def test_devices_of_an_unknown_kind_are_told_once(kind):
    platform = "tpu" if "TPU" in kind else "gpu"
    with collect() as told:
        assert [machine_here([device(platform, kind)]) for _ in range(2)] == ["h100"] * 2
    (remark,) = told
    assert (remark.code, remark.severity) == ("SP906", "remark")
    assert kind in remark.message


@pytest.fixture
def seen(monkeypatch):
    """The machines of the programs that the hook partitions."""
    machines = []
    run = hook.run_steps

    def watched(module, steps):
        run(module, steps)
        machines.append(module_machine(module))

    monkeypatch.setattr(hook, "run_steps", watched)
    return machines


def function():
    """A new one, which JAX has not compiled."""
    return jax.jit(lambda x: jnp.tanh(x) + 1, in_shardings=ROWS, out_shardings=COLUMNS)


X = np.arange(64, dtype=np.float32).reshape(8, 8)


def test_use_decides_for_the_machine_that_is_said(seen):
    f, lab = function(), replace(find_machine("h100"), name="lab", memory=1e9)
    for machine in (None, "h100", "v5p", "h100", lab):
        with spj.use(strict=True, machine=machine):
            np.testing.assert_allclose(f(X), np.tanh(X) + 1, rtol=1e-6)
    assert seen[:3] == ["ideal", "h100", "v5p"]
    assert seen[3].startswith("lab@")
    assert len(seen) == 4  # one program for each machine: the second h100 takes that of the first


@pytest.mark.usefixtures("unsaid")
def test_without_a_word_it_is_the_machine_of_the_devices(seen):
    with spj.use(strict=True):
        function()(X)
    assert seen == ["cpu"]


def test_partition_decides_for_the_machine_that_is_said(seen):
    step = spj.partition(lambda x: x + 1, mesh=MESH, in_shardings=P("x"), out_shardings=P(None, "x"), machine="v5e")
    lowered = step.lower(X)
    assert lowered.machine == "v5e"
    assert module_machine(lowered.partitioned) == "v5e"
    assert lowered.explain().profile == "v5e"
    np.testing.assert_array_equal(step(X), X + 1)
    assert seen == ["v5e"]


def test_redistribute_plans_for_the_machine_that_is_said(monkeypatch):
    redistribute = sys.modules["shardpass.jax.redistribute"]  # the module, which the function of its name hides
    planned = []
    plan = redistribute.plan_redistribution

    def watched(*arguments, machine):
        planned.append(machine)
        return plan(*arguments, machine=machine)

    monkeypatch.setattr(redistribute, "plan_redistribution", watched)
    x = jax.device_put(np.arange(64 * 40, dtype=np.float32).reshape(64, 40), ROWS)
    for machine in ("h100", "v6e", None):
        moved = spj.redistribute(x, COLUMNS, machine=machine)
        np.testing.assert_array_equal(np.asarray(moved), np.asarray(x))
    gradient = jax.grad(lambda x: spj.redistribute(x, COLUMNS, source=ROWS, machine="h100").sum())(x)
    np.testing.assert_array_equal(np.asarray(gradient), np.ones((64, 40)))
    assert planned[:3] == ["h100", "v6e", "ideal"]
    assert set(planned[3:]) <= {"h100"}


@pytest.mark.parametrize("door", ["use", "partition", "redistribute", "explain", "suggest"])
def test_a_machine_that_is_none_is_refused_at_every_door(door):
    doors = {
        "use": lambda: spj.use(machine="abacus").__enter__(),
        "partition": lambda: spj.partition(lambda x: x, machine="abacus"),
        "redistribute": lambda: spj.redistribute(X, COLUMNS, machine="abacus"),
        "explain": lambda: shardpass.explain(lambda x: x, X, machine="abacus"),
        "suggest": lambda: shardpass.suggest(lambda x: x, X, mesh=MESH, machine="abacus"),
    }
    with pytest.raises(ShardpassError) as caught:
        doors[door]()
    assert caught.value.code == "SP901"


@pytest.mark.usefixtures("unsaid")
def test_explain_takes_the_machine_of_devices_that_are_there():
    """Of an abstract mesh there are none, and of a module's text none are known."""
    abstract = NamedSharding(AbstractMesh((8,), ("x",)), P("x"))
    shape = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    assert shardpass.explain(function(), X).profile == "cpu"
    assert shardpass.explain(function().lower(shape)).profile == "cpu"
    assert shardpass.explain(jax.jit(lambda x: x.T, in_shardings=abstract), shape).profile == "h100"
    text = function().lower(shape).as_text()
    assert shardpass.explain(text).profile == "h100"
    assert shardpass.explain(text, machine="v5p").profile == "v5p"


def test_explain_takes_the_machine_that_a_module_names():
    text = function().lower(X).as_text()
    for pipeline in ("propagate{machine=v6e}", "partition{machine=v6e}"):
        module = shardpass.run_pipeline(text, pipeline)
        assert shardpass.explain(module).profile == "v6e"
        assert shardpass.explain(module, machine="a100").profile == "a100"
