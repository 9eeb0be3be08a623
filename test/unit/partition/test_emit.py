"""What emit builds of each kind of step, run beside one device: loops, branches, manual regions, constraints, calls."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from support.differential import check_text
from support.split import check_split

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import SCOPE
from shardpass.ir.context import parse_module

X = np.arange(8 * 8, dtype=np.float32).reshape(8, 8) % 7 - 3
Y = np.arange(8 * 8, dtype=np.float32).reshape(8, 8) % 5 - 2


def test_a_loop_carries_tiles_and_takes_what_stands_around_it() -> None:
    """The carried matrix is gathered each turn, 192 of 256 bytes; the one from outside comes by columns."""

    def program(x, y):
        return lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ c) + y + i, x)

    seen = check_split(program, (X, Y), (P("x"), P(None, "x")), (4,), (P("x"),))
    assert ("all_gather", 192) in [(use.kind, use.bytes_each) for use in seen.collectives if use.times == 3]


def test_branches_return_the_same_tiles() -> None:
    """One transposes, one sums over the split dimension, one returns its operand: all by rows."""
    branches = (lambda x: x.T, lambda x: x + x.sum(axis=0), lambda x: x)
    for k in range(3):
        program = lambda x, k: lax.switch(k, branches, x)  # noqa: E731
        check_split(program, (X, np.int32(k)), (P("x"), P()), (4,), (P("x"),))


def test_results_that_main_returns_are_brought_to_their_shardings() -> None:
    """One value under three shardings, an argument that is returned as it is, and one that is not used."""
    specs = (P("x", "y"), P("y"), P())
    seen = check_split(lambda x, y, z: (x + 1, x + 1, x, y), (X, Y, Y), specs, (4, 2), (P(), P("y", "x"), P("x"), P()))
    assert seen.collectives


def mesh(*sizes: int) -> jax.sharding.Mesh:
    names = ("x", "y", "z")[: len(sizes)]
    return jax.make_mesh(
        sizes, names, axis_types=(AxisType.Auto,) * len(sizes), devices=jax.devices()[: np.prod(sizes)]
    )


def run(program, arguments, specs, grid) -> list[np.ndarray]:
    """The results of the partitioned program: of manual regions there is no program for one device to compare with."""
    shardings = tuple(NamedSharding(grid, spec) for spec in specs)
    text = jax.jit(program, in_shardings=shardings).lower(*arguments).as_text()
    found = shardpass.compile(shardpass.run_pipeline(text, "partition"))(*arguments)
    return [np.asarray(one) for one in found]


def test_a_region_that_is_manual_over_all_axes_stays_as_it_is() -> None:
    """Tiles go in and come out; the user's collective is over the user's groups."""
    grid = mesh(4, 2)

    def body(x):
        return lax.psum(x, "x") + lax.axis_index("y")

    program = jax.shard_map(body, mesh=grid, in_specs=P("x", "y"), out_specs=P(None, "y"))
    (found,) = run(program, (X,), (P("x", "y"),), grid)
    expected = X.reshape(4, 2, 8).sum(axis=0) + np.repeat([0, 1], 4)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("inner", [P("y"), P(None, "y")])
def test_in_a_region_that_is_manual_over_some_axes_the_others_split(inner: P) -> None:
    """Along x the user's code; along y a constraint moves tiles of the region, in each of its 4 parts alike."""
    grid = mesh(4, 2)

    def body(x):
        here = lax.with_sharding_constraint(x * 2, NamedSharding(grid, inner))
        return lax.with_sharding_constraint(here + lax.axis_index("x"), NamedSharding(grid, P()))

    program = jax.shard_map(body, mesh=grid, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}, check_vma=False)
    (found,) = run(program, (X,), (P("x", "y"),), grid)
    np.testing.assert_array_equal(found, 2 * X + np.repeat(range(4), 2)[:, None])


def test_a_sum_of_a_manual_region_is_taken_over_the_other_axes_alone() -> None:
    grid = mesh(2, 4)
    program = jax.shard_map(
        lambda x: x.sum(axis=1), mesh=grid, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}, check_vma=False
    )
    (found,) = run(program, (X,), (P("x", "y"),), grid)
    np.testing.assert_array_equal(found, X.sum(axis=1))


@pytest.mark.parametrize("device", [0, 3])
def test_a_call_of_the_host_is_made_by_one_device(device: int) -> None:
    """The callback takes the whole array, once, and gives a sum a row; every device has the result."""
    calls = []

    def host(x):
        calls.append(x.shape)
        return x[::-1].sum(axis=1)

    grid = mesh(4)
    where = jax.devices()[device]

    def program(x):
        kind = jax.ShapeDtypeStruct((8,), np.float32)
        return jax.experimental.io_callback(host, kind, x, sharding=jax.sharding.SingleDeviceSharding(where))

    with shardpass.jax.use():
        done = jax.jit(program, in_shardings=NamedSharding(grid, P("x")), out_shardings=NamedSharding(grid, P("x")))
        np.testing.assert_array_equal(np.asarray(done(X)), X[::-1].sum(axis=1))
    assert calls == [(8, 8)]


def test_the_users_channels_are_not_taken_again() -> None:
    """A region with a collective beside a product that needs one: no two have one channel."""
    grid = mesh(4)

    def program(x, y):
        inside = jax.shard_map(lambda t: lax.psum(t, "x"), mesh=grid, in_specs=P("x"), out_specs=P())(x)
        return inside, x.T @ y

    shardings = (NamedSharding(grid, P("x")),) * 2
    text = jax.jit(program, in_shardings=shardings).lower(X, Y).as_text()
    module = str(shardpass.run_pipeline(text, "partition"))
    handles = re.findall(r"channel_handle<handle = (\d+)", module)
    assert len(handles) == len(set(handles)) >= 2
    found = shardpass.compile(parse_module(module))(X, Y)
    np.testing.assert_array_equal(np.asarray(found[0]), X.reshape(4, 2, 8).sum(axis=0))
    np.testing.assert_array_equal(np.asarray(found[1]), X.T @ Y)


HEAD = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"}) {
"""


def test_tiles_of_another_shape_than_the_regions_are_refused() -> None:
    """The region takes 2x8 of 4 devices; 4x8 is what it says that it takes."""
    body = """
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[4,1]<=[4]}"}
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}
        : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.custom_call @Sharding(%1) {mhlo.sharding = "{manual}"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{devices=[4,1]<=[4]}"}
        : (tensor<4x8xf32>) -> tensor<8x8xf32>
    return %3 : tensor<8x8xf32> } }"""
    with pytest.raises(ShardpassError) as error:
        shardpass.run_pipeline(HEAD + body, "partition")
    assert error.value.code == "SP302"
    assert "tensor<4x8xf32>" in str(error.value)
    assert "tensor<2x8xf32>" in str(error.value)


def test_what_is_computed_whole_takes_whole_arrays_and_gives_tiles() -> None:
    """No rule splits the reverse of an einsum of old; its region captures nothing, its result is wanted in rows."""
    body = """
    %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ab->ba"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.add %0, %x : tensor<8x8xf32>
    return %1 : tensor<8x8xf32> } }"""
    module = str(shardpass.run_pipeline(HEAD + body, "partition"))
    (einsum,) = [line for line in module.splitlines() if " = stablehlo.unary_einsum" in line]
    assert "(tensor<8x8xf32>) -> tensor<8x8xf32>" in einsum
    (total,) = [line for line in module.splitlines() if "stablehlo.add" in line]
    assert "tensor<2x8xf32>" in total


def test_padding_never_reaches_a_sum() -> None:
    """10 rows in tiles of 3: the third of the last device's rows and the fourth are padding, with a product around."""
    x = np.arange(10 * 6, dtype=np.float32).reshape(10, 6)
    check_split(lambda x: (x + 1).T @ x, (x,), (P("x"),), (4,), (P(),))
    check_split(lambda x: jnp.exp(x / 100).max(axis=0), (x - 70,), (P("x"),), (4,), (P(),))


def test_xla_and_the_reference_interpreter_agree() -> None:
    body = "%0 = stablehlo.reverse %x, dims = [0] : tensor<8x8xf32> return %0 : tensor<8x8xf32> } }"
    check_text(HEAD + body, (X,), interpreter=True)


def test_loops_and_branches_of_a_region_lose_what_marked_it() -> None:
    """The region is manual over x; y splits what is in it. What says so to partitioning means nothing afterwards."""

    def inner(x):
        turned = lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c) + i, x)
        return lax.cond(turned[0, 0] > 0, lambda c: c + 1, lambda c: c * 2, turned)

    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    program = jax.shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    split = NamedSharding(mesh, P("x", "y"))
    lowered = jax.jit(program, in_shardings=split).trace(jax.ShapeDtypeStruct((8, 8), "float32"))
    text = lowered.lower(lowering_platforms=("cpu",)).as_text()
    assert SCOPE in str(shardpass.run_pipeline(text, "shardpass-import"))
    module = str(shardpass.run_pipeline(text, "partition"))
    assert "stablehlo.while" in module
    assert "stablehlo.case" in module
    assert SCOPE not in module
