"""Work of per-device code counts in the seconds of plans and reports."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import shardpass
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import ShardpassError
from shardpass.pipeline.plan import plan_module

P = PartitionSpec
MESH = Mesh(np.array(jax.devices()[:8]), ("d",), axis_types=(AxisType.Auto,))
ROWS, WIDTH, TRIPS = 4096, 512, 10
X, W = jnp.ones((ROWS, WIDTH)), jnp.ones((WIDTH, WIDTH))


def product(x: Any, w: Any) -> Any:
    return x @ w


def in_turn(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, TRIPS, lambda _, x: x @ w, x)


def summed(x: Any, w: Any) -> Any:
    return jax.lax.psum(x @ w, "d")


@pytest.mark.parametrize(("body", "times"), [(product, 1), (in_turn, TRIPS), (summed, 1)])
def test_work_of_per_device_code_counts(body: Any, times: int) -> None:
    """Two flops for each point of the product's loop nest on a device's rows, which take longer than its bytes."""
    ideal = find_machine("ideal")
    out = P() if body is summed else P("d")
    mapped = jax.shard_map(body, mesh=MESH, in_specs=(P("d"), P()), out_specs=out, check_vma=False)
    report = shardpass.explain(jax.jit(mapped), X, W, machine="ideal")
    flops = times * 2 * (ROWS // 8) * WIDTH * WIDTH
    assert report.plan.compute_seconds() == pytest.approx(flops / ideal.rate("f32"), rel=0.05)
    assert report.compute_seconds == report.plan.compute_seconds()


def test_the_same_work_split_by_the_plan_and_by_hand() -> None:
    by_hand = jax.shard_map(in_turn, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    plans = [
        shardpass.explain(one, X, W, mesh=MESH, in_shardings=(P("d"), P()), out_shardings=P("d")).plan
        for one in (in_turn, by_hand)
    ]
    assert plans[0].compute_seconds() == pytest.approx(plans[1].compute_seconds())


def test_memory_of_loops_of_per_device_code() -> None:
    """The loop's rows take the place of the argument's copy, as where the plan splits the same loop."""
    by_hand = jax.shard_map(in_turn, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    plans = [
        shardpass.explain(one, X, W, mesh=MESH, in_shardings=(P("d"), P()), out_shardings=P("d")).plan
        for one in (in_turn, by_hand)
    ]
    rows, weight = ROWS // 8 * WIDTH * 4, WIDTH * WIDTH * 4
    for plan in plans:
        assert 2 * rows + weight <= plan.alive.peak <= 4 * rows + weight


def test_a_limit_with_loops_of_per_device_code() -> None:
    """The search within a limit looks at them too. All is placed by the user here, so nothing can be less."""
    by_hand = jax.shard_map(in_turn, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    rows, whole = NamedSharding(MESH, P("d")), NamedSharding(MESH, P())
    jitted = jax.jit(lambda x, w: by_hand(x, w) + 1, in_shardings=(rows, whole), out_shardings=rows)
    text = jitted.lower(X, W).as_text(debug_info=True)
    peak = plan_module(shardpass.run_pipeline(text, "propagate")).alive.peak
    with pytest.raises(ShardpassError, match=f"at least {peak} bytes"):
        shardpass.run_pipeline(text, f"propagate{{fit={peak - 1}}}")
