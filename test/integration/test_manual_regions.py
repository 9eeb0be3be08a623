"""shard_map over all axes of the mesh and over some: partitioned by shardpass, beside JAX on the same devices.

The witnesses: JAX's own execution of the shard_map (XLA's partitioner), and NumPy where the region is simple enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from support.differential import assert_same

import shardpass
from shardpass.ir.collectives import collectives

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])


@pytest.fixture(params=[True, False], ids=["sdy", "gspmd"])
def annotation(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param)
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", before)


def run_both(
    function: Callable[..., Any], arguments: list[np.ndarray], specs: list[Any], *, by_xla: bool = True
) -> tuple[list[Any], Any]:
    """Results of shardpass's program, each checked against JAX's where XLA can run it; and shardpass's module."""
    shardings = tuple(NamedSharding(MESH, s) for s in specs)
    jitted = jax.jit(function, in_shardings=shardings)
    expected = jax.tree.leaves(jitted(*arguments)) if by_xla else []
    module = shardpass.run_pipeline(jitted.lower(*arguments).as_text(), "partition")
    found = shardpass.compile(module)(*arguments)
    for index, (one, other) in enumerate(zip(found, expected, strict=by_xla)):
        assert_same(one, other, f"result {index}")
    return found, module


def whole(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)


def test_manual_over_one_axis_leaves_the_other_to_the_partitioner(annotation: bool) -> None:
    @partial(jax.shard_map, mesh=MESH, in_specs=(P("x"), P(None, None)), out_specs=P("x"), axis_names={"x"})
    def region(a: Any, b: Any) -> Any:
        h = lax.with_sharding_constraint(a @ b, P(None, "y"))
        return h + lax.psum(h, "x") + lax.ppermute(h, "x", [(k, (k + 1) % 4) for k in range(4)])

    a, b = whole(8, 16), whole(16, 32)
    found, module = run_both(lambda a, b: region(a * 2, b), [a, b], [P("x"), P(None, "y")])
    h = (2 * a @ b).reshape(4, 2, 32)
    np.testing.assert_array_equal(found[0], (h + h.sum(0) + np.roll(h, 1, 0)).reshape(8, 32))
    assert "tensor<2x16xf32>" in str(module)  # a row block over x, halved over y


def test_a_redistribution_inside_a_region_does_not_mix_its_copies(annotation: bool) -> None:
    """The region's arrays differ over x; one of them moves from rows over y to columns over y."""

    @partial(jax.shard_map, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def region(a: Any) -> Any:
        a = lax.with_sharding_constraint(a * (1 + lax.axis_index("x")), P("y", None))
        a = jnp.cumsum(a, axis=1)
        return lax.with_sharding_constraint(a, P(None, "y"))

    a = whole(16, 8)
    found, module = run_both(region, [a], [P("x")])
    expected = np.cumsum(a.reshape(4, 4, 8) * np.arange(1, 5).reshape(4, 1, 1), axis=2).reshape(16, 8)
    np.testing.assert_array_equal(found[0], expected)
    assert [use.kind for use in collectives(module)] == ["all_to_all"]


def test_contraction_over_a_free_axis_is_completed_inside(annotation: bool) -> None:
    @partial(jax.shard_map, mesh=MESH, in_specs=(P("x"), P(None, None)), out_specs=P("x"), axis_names={"x"})
    def region(a: Any, b: Any) -> Any:
        return lax.with_sharding_constraint(a, P(None, "y")) @ lax.with_sharding_constraint(b, P("y", None))

    a, b = whole(8, 16), whole(16, 4)
    found, module = run_both(region, [a, b], [P("x", "y"), P("y", None)])
    np.testing.assert_array_equal(found[0], a @ b)
    assert [use.kind for use in collectives(module)] == ["all_reduce"]


def test_collectives_along_the_manual_axis(annotation: bool) -> None:
    @partial(
        jax.shard_map,
        mesh=MESH,
        in_specs=P("x", None),
        out_specs=(P(None), P("x"), P("x")),
        axis_names={"x"},
        check_vma=False,
    )
    def region(a: Any) -> Any:
        a = lax.with_sharding_constraint(a, P(None, "y"))
        gathered = lax.all_gather(a, "x", axis=0, tiled=True)
        scattered = lax.psum_scatter(gathered, "x", scatter_dimension=0, tiled=True)
        return gathered, scattered, lax.all_to_all(a, "x", 0, 0, tiled=True)

    a = whole(16, 8)
    # XLA's partitioner aborts on an all_gather in a partly manual region (jaxlib 0.10.2, GSPMD form): NumPy alone
    found, _ = run_both(region, [a], [P("x", "y")], by_xla=False)
    np.testing.assert_array_equal(found[0], a)
    np.testing.assert_array_equal(found[1], 4 * a)
    np.testing.assert_array_equal(found[2], a.reshape(4, 4, 8).swapaxes(0, 1).reshape(16, 8))


def test_nested_regions(annotation: bool) -> None:
    @partial(jax.shard_map, mesh=MESH, in_specs=P("x", None), out_specs=P("x", None), axis_names={"x"})
    def outer(a: Any) -> Any:
        @partial(jax.shard_map, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
        def inner(b: Any) -> Any:
            return b + lax.psum(b, "y") * lax.axis_index("y")

        return inner(a * 2) - lax.psum(a, "x")

    a = whole(8, 8)
    found, _ = run_both(outer, [a], [P("x", "y")])
    halves = (2 * a).reshape(8, 2, 4)
    inner = (halves + halves.sum(1, keepdims=True) * np.arange(2).reshape(1, 2, 1)).reshape(8, 8)
    sums = np.tile(a.reshape(4, 2, 8).sum(0), (4, 1))
    np.testing.assert_array_equal(found[0], inner - sums)


def test_scan_inside_a_region(annotation: bool) -> None:
    @partial(jax.shard_map, mesh=MESH, in_specs=(P("x"), P(None, None)), out_specs=P("x"), axis_names={"x"})
    def region(a: Any, w: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return jnp.clip(c @ w, -9, 9), None

        return lax.scan(body, a, None, length=3)[0]

    a, w = whole(8, 4), whole(4, 4)
    found, _ = run_both(region, [a, w], [P("x"), P(None, "y")])
    for _ in range(3):
        a = np.clip(a @ w, -9, 9)
    np.testing.assert_array_equal(found[0], a)


def test_manual_over_all_axes_with_a_constant_shared_with_the_outside(annotation: bool) -> None:
    @partial(jax.shard_map, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"))
    def region(a: Any) -> Any:
        return a + lax.psum(a, ("x", "y")) + 1

    a = whole(8, 8)
    found, _ = run_both(lambda a: region(a + 1) + 1, [a], [P("x", "y")])
    blocks = (a + 1).reshape(4, 2, 2, 4)
    np.testing.assert_array_equal(found[0], a + 1 + np.tile(blocks.sum((0, 2)), (4, 2)) + 2)
