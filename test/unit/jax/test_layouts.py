"""Layouts that the user asks for: they are kept, and cost no gather."""

import jax
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout, with_layout_constraint
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass.jax as spj

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
HERE = NamedSharding(MESH, P("a", "b"))
TURNED = Layout(major_to_minor=(1, 0))


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda x: with_layout_constraint(x * 2, TURNED) + 1, {}),
        (lambda x: x * 2, {"out_shardings": Format(TURNED, HERE)}),
    ],
    ids=["of a value", "of a result"],
)
def test_a_layout_is_kept(function, options):
    x = jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), HERE)
    wanted = jax.jit(lambda x: function(x), **options)(x)
    before = spj.stats()["partitioned"]
    with spj.use():
        jitted = jax.jit(lambda x: function(x), **options)
        found, hlo = jitted(x), jitted.lower(x).compile().as_text()
    assert spj.stats()["partitioned"] > before
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    assert found.format == wanted.format
    assert "f32[2,4]{0,1}" in hlo
    assert "all-gather" not in hlo
