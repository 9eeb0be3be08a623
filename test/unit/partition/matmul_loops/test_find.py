"""Which products stand beside which collectives: what makes a candidate, and what does not."""

from __future__ import annotations

import pytest

from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.ir.walk import read_blocks
from shardpass.partition.matmul_loops.find import candidates
from shardpass.partition.matmul_loops.product import product_of

GROUPS = "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"


def gather(name, of, dim, before, after, groups=GROUPS):
    return (
        f'%{name} = "stablehlo.all_gather"(%{of}) <{{all_gather_dim = {dim} : i64, replica_groups = {groups}, '
        f"{CHANNEL}}}> : (tensor<{before}>) -> tensor<{after}>\n"
    )


def scatter(name, of, dim, before, after, combiner="add"):
    return (
        f'%{name} = "stablehlo.reduce_scatter"(%{of}) <{{scatter_dimension = {dim} : i64, replica_groups = {GROUPS}, '
        f"{CHANNEL}}}> ({{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %r = stablehlo.{combiner} %p, %q : tensor<f32> "
        f"stablehlo.return %r : tensor<f32> }}) : (tensor<{before}>) -> tensor<{after}>\n"
    )


def dot(name, left, right, shapes="8x16xf32 16x12xf32 8x12xf32", numbers="contracting_dims = [1] x [0]"):
    one, other, result = shapes.split()
    return (
        f"%{name} = stablehlo.dot_general %{left}, %{right}, {numbers}"
        f" : (tensor<{one}>, tensor<{other}>) -> tensor<{result}>\n"
    )


def found(body, devices=4, arguments="%x: tensor<2x16xf32>, %y: tensor<16x12xf32>, %w: tensor<8x16xf32>"):
    text = f"module attributes {{mhlo.num_partitions = 4 : i32}} {{ func.func @main({arguments}) {{ {body} return }} }}"
    module = parse_module(text)
    with module.context:
        block = read_blocks(main_of(module))[0]
        return candidates(block, devices), module


NEGATED = "%n = stablehlo.negate %d : tensor<8x12xf32>\n"
GATHERED = gather("g", "x", 0, "2x16xf32", "8x16xf32")


def test_the_facts_of_a_product():
    numbers = "batching_dims = [1] x [0], contracting_dims = [2] x [2]"
    body = dot("d", "a", "b", "5x3x7xf32 3x6x7xf32 3x5x6xf32", numbers)
    _, module = found(body, arguments="%a: tensor<5x3x7xf32>, %b: tensor<3x6x7xf32>")
    op = next(op for op in main_of(module).regions[0].blocks[0].operations if "dot" in op.operation.name).operation
    product = product_of(op)
    assert product.shapes == ((5, 3, 7), (3, 6, 7))
    assert product.result == (3, 5, 6)
    assert product.batch == ((1,), (0,))
    assert product.contract == ((2,), (2,))


def test_a_gather_that_products_take():
    (one,), _ = found(GATHERED + dot("d", "g", "y") + dot("e", "g", "y"))
    assert one.is_gather
    assert (one.count, len(one.parts), one.bytes) == (4, 2, 8 * 16 * 4)


@pytest.mark.parametrize(
    ("between", "taken"),
    [
        ("%t = stablehlo.convert %g : (tensor<8x16xf32>) -> tensor<8x16xbf16>\n", "8x16xbf16"),
        ("%t = stablehlo.reshape %g : (tensor<8x16xf32>) -> tensor<8x16xf32>\n", "8x16xf32"),
    ],
)
def test_through_what_stands_between(between, taken):
    (one,), _ = found(GATHERED + between + dot("d", "t", "y", f"{taken} 16x12xf32 8x12xf32"))
    assert one.parts[0].tiles.dim == 0


def test_a_gather_along_columns_is_followed_through_its_transpose():
    body = "%l = stablehlo.reshape %x : (tensor<2x16xf32>) -> tensor<1x2x16xf32>\n"
    body += gather("g", "l", 0, "1x2x16xf32", "4x2x16xf32")
    body += "%t = stablehlo.transpose %g, dims = [1, 0, 2] : (tensor<4x2x16xf32>) -> tensor<2x4x16xf32>\n"
    body += "%r = stablehlo.reshape %t : (tensor<2x4x16xf32>) -> tensor<2x64xf32>\n"
    body += dot("d", "r", "z", "2x64xf32 64x3xf32 2x3xf32")
    (one,), _ = found(body, arguments="%x: tensor<2x16xf32>, %z: tensor<64x3xf32>")
    assert one.parts[0].tiles.dim == 1


@pytest.mark.parametrize(
    "body",
    [
        GATHERED,  # nobody takes it
        GATHERED + "%n = stablehlo.negate %g : tensor<8x16xf32>\n" + dot("d", "g", "y"),  # another takes it too
        GATHERED + dot("d", "g", "g", "8x16xf32 8x16xf32 8x8xf32", "contracting_dims = [1] x [1]"),  # on both sides
        gather("g", "x", 0, "2x16xf32", "4x16xf32", "dense<[[0, 1]]> : tensor<1x2xi64>")  # not every device
        + dot("d", "g", "y", "4x16xf32 16x12xf32 4x12xf32"),
        gather("g", "w", 0, "8x16xf32", "8x16xf32", "dense<[[0], [1], [2], [3]]> : tensor<4x1xi64>")  # no other
        + dot("d", "g", "y"),
        dot("d", "w", "y") + scatter("s", "d", 0, "8x12xf32", "2x12xf32", "maximum"),  # no sum
        dot("d", "w", "y") + NEGATED + scatter("s", "d", 0, "8x12xf32", "2x12xf32"),
        scatter("s", "w", 0, "8x16xf32", "2x16xf32"),  # of an argument
    ],
    ids=["unused", "other use", "both sides", "some devices", "groups of one", "maximum", "used twice", "argument"],
)
def test_what_is_no_candidate(body):
    assert found(body)[0] == []


@pytest.mark.parametrize(("dim", "tile"), [(0, "2x12xf32"), (1, "8x3xf32")])
def test_a_product_that_is_scattered(dim, tile):
    (one,), _ = found(dot("d", "w", "y") + scatter("s", "d", dim, "8x12xf32", tile))
    assert not one.is_gather
    assert (one.count, one.bytes) == (4, 8 * 12 * 4)


def test_the_largest_array_comes_first():
    small = gather("k", "v", 0, "2x8xf32", "8x8xf32") + dot("e", "k", "u", "8x8xf32 8x4xf32 8x4xf32")
    arguments = "%x: tensor<2x16xf32>, %y: tensor<16x12xf32>, %v: tensor<2x8xf32>, %u: tensor<8x4xf32>"
    ordered, _ = found(small + GATHERED + dot("d", "g", "y"), arguments=arguments)
    assert [one.bytes for one in ordered] == [8 * 16 * 4, 8 * 8 * 4]
