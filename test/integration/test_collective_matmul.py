"""A weight-gathered layer, forward and backward, with its products in turn with the collectives.

Witnesses: the unpartitioned program on one device, and the memory that XLA's compiler reports.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
import shardpass.jax as spj
from shardpass.diagnostics import collect
from shardpass.jax.hook import for_jax
from shardpass.runtime import compile_single
from shardpass.runtime.compare import compare
from shardpass.runtime.hlo import added_by_xla

SHAPES = (256, 1024), (1024, 256), (256, 256)  # two weights, a batch
MESHES = [(8, 1), (4, 2), (2, 4)]
forms = pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])


@cache
def lowered(shape: tuple[int, int], backward: bool) -> str:
    mesh = jax.make_mesh(shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])

    def over(*spec):
        return NamedSharding(mesh, P(*spec))

    pinned = jax.lax.with_sharding_constraint

    def layer(weights, x):
        one, other = pinned(weights[0], over(None, "y")), pinned(weights[1], over("y", None))
        hidden = pinned(jax.nn.relu(x @ one), over("x", "y"))
        return pinned(hidden @ other, over("x", None))

    def loss(weights, x):
        return (layer(weights, x) ** 2).mean()

    one, other, given = (jax.ShapeDtypeStruct(s, jnp.float32) for s in SHAPES)
    weights, batch = (over("x", "y"), over("y", "x")), over("x", None)
    function, out = (jax.grad(loss), weights) if backward else (layer, batch)
    jitted = jax.jit(function, in_shardings=(weights, batch), out_shardings=out)
    return str(jitted.lower((one, other), given).as_text(debug_info=True))


def partitioned(shape, backward, options=""):
    with collect() as remarks:
        module = shardpass.run_pipeline(lowered(shape, backward), f"partition{options}")
    return module, remarks


def arguments():
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) / 16).astype(np.float32) for shape in SHAPES]


@forms
@pytest.mark.parametrize("shape", MESHES, ids=str)
def test_equal_to_one_device(shape, backward):
    module, remarks = partitioned(shape, backward, "{matmul-loops=all}")
    assert any(remark.code == "SP310" for remark in remarks)
    executable = shardpass.compile(module)
    found = executable(*arguments())
    expected = compile_single(lowered(shape, backward))(*arguments())
    wrong = [str(d) for d in compare(found, expected) if not d.passed]
    assert not wrong
    assert added_by_xla(executable.hlo_text(), module) == []


def test_no_gathered_weight_is_made_and_memory_falls():
    """Over 8 devices each of the two weights would be gathered: 1 MiB each."""
    plain, _ = partitioned((8, 1), False)
    in_turn, _ = partitioned((8, 1), False, "{matmul-loops=all matmul-one-way}")
    assert "all_gather" in str(plain)
    assert "all_gather" not in str(in_turn)
    held = [shardpass.compile(module).memory_stats().temp_size_in_bytes for module in (plain, in_turn)]
    assert held[1] < 0.5 * held[0]


def test_off_unless_asked_for():
    module, remarks = partitioned((8, 1), False)
    assert "collective_permute" not in str(module)
    assert not [remark for remark in remarks if remark.code in ("SP310", "SP311", "SP312")]


def test_inside_jax():
    """An open result of 12 rows is still given whole axes, which divide it; the weight goes round in tiles."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:8])

    def function(x, w):
        return jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("x", None)))[:12] * 2

    split = P("x", None)
    step = spj.partition(function, mesh=mesh, in_shardings=(split, split), pipeline="partition{matmul-loops=all}")
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 64), (64, 32)))
    np.testing.assert_allclose(np.asarray(step(x, w)), (x @ w)[:12] * 2, rtol=1e-5, atol=1e-5)
    assert "collective_permute" in str(step.lower(x, w).partitioned)
    assert "shardpass-whole-axes,shardpass-check" in for_jax("partition{matmul-loops=all}")
