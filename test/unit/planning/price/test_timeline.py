"""The schedule of a plan: that of the module which is built from it; plans are decided by it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.report.explanation import Explanation

MESH = AbstractMesh((8,), ("d",), axis_types=(AxisType.Auto,))


def array(*shape: int, axes: tuple[str | None, ...] = ("d",)):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(MESH, P(*axes)))


def gated(x, layers):
    for up, gate, down in layers:
        x = x + (jax.nn.silu(x @ up) * (x @ gate)) @ down
    return x


def looped(x, layers):
    return jax.lax.scan(lambda x, layer: (gated(x, [layer]), None), x, layers)[0]


def perceptron(x, layers):
    for up, _, down in layers:
        x = jax.nn.gelu(x @ up) @ down
    return x


LAYER = array(4096, 14336), array(4096, 14336), array(14336, 4096)
STACKED = tuple(array(4, *one.shape, axes=(None, "d")) for one in LAYER)
PROGRAMS = {
    "gated": (gated, [LAYER] * 2),
    "gated gradient": (lambda x, layers: jax.grad(lambda layers: jnp.mean(gated(x, layers)))(layers), [LAYER] * 2),
    "looped": (looped, STACKED),
    "perceptron": (perceptron, [LAYER] * 3),
}


def explained(name: str, machine: str, effort: int) -> Explanation:
    step, layers = PROGRAMS[name]
    text = jax.jit(step).trace(array(16384, 4096), layers).lower(lowering_platforms=("cpu",)).as_text()
    return shardpass.explain(text, machine=machine, effort=effort)


def plan_of(report: Explanation) -> ProgramPlan:
    assert isinstance(report.plan, ProgramPlan)
    return report.plan


@pytest.mark.parametrize("machine", ["h100", "v5p"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_effort_takes_longer_and_the_plan_takes_what_the_built_module_does(name: str, machine: str) -> None:
    before, after = (explained(name, machine, effort) for effort in (0, 1))
    for report in (before, after):
        assert report.schedule is not None
        # passes behind the plan move an all_reduce past a transpose, or put a slice between: a few percent
        assert plan_of(report).makespan == pytest.approx(report.schedule.seconds, rel=0.03)
    assert before.schedule is not None
    assert after.schedule is not None
    assert after.schedule.seconds <= before.schedule.seconds * (1 + 1e-9)


def test_gathers_of_weights_run_beside_products() -> None:
    """Gated layers of FSDP on 8 H100s. Exchanges of activations have the lesser sum, and hold up each layer; gathers of
    weights wait for nothing: all but the first are hidden, so the step is the products and one gather.
    """
    report = explained("gated", "h100", 1)
    assert {row.kind for row in report.rows} == {"all_gather"}
    assert report.schedule is not None
    assert report.schedule.seconds < 1.3 * (report.compute_seconds or 0)


def test_nothing_overlaps_on_a_machine_that_overlaps_nothing() -> None:
    plan = plan_of(explained("perceptron", "ideal", 1))
    assert plan.makespan == pytest.approx(plan.step_seconds())
    assert plan.stored == plan.alive.peak
