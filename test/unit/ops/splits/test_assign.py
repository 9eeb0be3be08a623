"""The choice of a split: what candidates there are, what they cost, and that the cheapest is chosen."""

from __future__ import annotations

import itertools
from math import prod

import pytest

from shardpass.element_types import element_type
from shardpass.ops.splits.assign import (
    Assignment,
    Completion,
    Known,
    Pricing,
    Side,
    assign,
    complete,
    scatter_dims,
    settle,
)
from shardpass.ops.splits.factors import DimAxes, Kind, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.sharding import Mesh

X, Y = 0, 1
F32 = element_type("f32")
LATENCY_BYTES, WORK_PER_BYTE = 512, 4  # of a machine whose seconds are bytes that it receives
MESH = prime_mesh(Mesh((("x", 2), ("y", 2))))


def matmul(m: int, k: int, n: int) -> Rule:
    """ik,kj->ij"""
    build = RuleBuilder([2, 2], [2])
    i, c, j = build.factor(m), build.factor(k, Kind.REDUCTION), build.factor(n)
    build.operand(0, 0, i)
    build.operand(0, 1, c)
    build.operand(1, 0, c)
    build.operand(1, 1, j)
    build.result(0, 0, i)
    build.result(0, 1, j)
    return build.build(combiner="add")


def choose(
    m: int, k: int, n: int, left: DimAxes, right: DimAxes, result: DimAxes, mesh: PrimeMesh = MESH
) -> Assignment:
    """A matmul of f32 with what a plain gather (or a free slice) costs as the price of a move."""
    rule = matmul(m, k, n)
    shapes = ((m, k), (k, n), (m, n))
    sides = [
        Side(s, d, a, F32)
        for s, d, a in zip(shapes, (*rule.operands, *rule.results), (left, right, result), strict=True)
    ]

    def received(shape: tuple[int, ...], source: DimAxes, target: DimAxes) -> int:
        if source == target or all(t[: len(s)] == s for s, t in zip(source, target, strict=True)):
            return 0
        have = prod(mesh.tile(shape, source))
        return 4 * max(0, prod(mesh.tile(shape, target)) - have) or 4 * have

    def sent(count: int) -> float:
        return count + LATENCY_BYTES if count else 0.0

    pricing = Pricing(
        lambda i, dims: sent(received(shapes[i], (left, right)[i], dims)),
        lambda i, dims: sent(received(shapes[2], dims, result)),
        lambda factors: m * k * n / prod(mesh.count(axes) for axes in factors.values()) / WORK_PER_BYTE,
        lambda done: sent(done.bytes),
        lambda i, count: count / WORK_PER_BYTE,
    )
    return assign(rule, sides[:2], sides[2:], mesh, pricing)


def test_nothing_to_move_is_free() -> None:
    chosen = choose(64, 64, 64, ((X,), ()), ((), (Y,)), ((X,), (Y,)))
    assert chosen.operands == (((X,), ()), ((), (Y,)))
    assert chosen.results == (((X,), (Y,)),)
    assert chosen.partial == ()
    assert chosen.price == (64**3 // 4) / WORK_PER_BYTE


def test_a_long_contraction_is_summed_over_devices() -> None:
    """The operands are 16 MiB each, the result 1 KiB: its parts are cheaper to add than an operand to gather."""
    chosen = choose(16, 2**18, 16, ((), (X,)), ((X,), ()), ((), ()))
    assert chosen.partial == (X,)
    assert chosen.operands == (((), (X,)), ((X,), ()))
    assert chosen.results == (((), ()),)


def test_a_small_operand_is_gathered_rather_than_a_large_result_summed() -> None:
    """Result 2048 x 2048 in rows: gathering the 64 x 2048 right operand is 1/16 of the result."""
    chosen = choose(2048, 64, 2048, ((X,), ()), ((X,), ()), ((X,), ()))
    assert chosen.partial == ()
    assert chosen.operands == (((X,), ()), ((), ()))


def test_work_is_not_done_many_times_over_to_save_a_latency() -> None:
    """Everything replicated, the result wanted in rows: cutting costs nothing and halves the work."""
    chosen = choose(64, 64, 64, ((), ()), ((), ()), ((X,), ()))
    assert chosen.operands == (((X,), ()), ((), ()))


def test_tiny_operands_are_gathered_where_the_latency_is_all_that_counts() -> None:
    """A contraction of 8: with whole operands one gather each, with parts one reduction: one latency less."""
    chosen = choose(8, 8, 8, ((), (X,)), ((X,), ()), ((), ()))
    assert chosen.partial == (X,)
    assert chosen.price < 2 * LATENCY_BYTES


@pytest.mark.parametrize("assigned", [{0: (X,), 1: (Y,)}, {0: (X,), 2: (Y,)}, {2: (X, Y)}])
def test_what_all_sides_can_say_settles_unchanged(assigned: dict[int, tuple[int, ...]]) -> None:
    rule = matmul(8, 8, 8)
    sides = [Side((8, 8), d, None, F32) for d in (*rule.operands, *rule.results)]
    assert settle(rule, sides, assigned, MESH.sizes) == assigned


def test_what_one_side_cannot_say_is_taken_from_all() -> None:
    """A merged dimension of 5 x 4 can be split by 2 in neither part: 5 does not divide, and 4 is the minor one."""
    build = RuleBuilder([2], [1])
    major, minor = build.factor(5), build.factor(4)
    build.operand(0, 0, major)
    build.operand(0, 1, minor)
    build.result(0, 0, major, minor)
    rule = build.build()
    sides = [Side((5, 4), rule.operands[0], None, F32), Side((20,), rule.results[0], None, F32)]
    assert settle(rule, sides, {major: (X,)}, MESH.sizes) == {}
    assert settle(rule, sides, {minor: (X,)}, MESH.sizes) == {}


def test_partial_sums_are_scattered_where_the_result_is_split_over_their_axes() -> None:
    assert scatter_dims((8, 8), ((Y,), (X,)), ((), ()), (X, Y), MESH) == ((0, (Y,)), (1, (X,)))
    # only the axes that follow directly on those that split the dimension already
    assert scatter_dims((8, 8), ((Y, X), ()), ((Y,), ()), (X,), MESH) == ((0, (X,)),)
    assert scatter_dims((8, 8), ((Y, X), ()), ((), ()), (X,), MESH) == ()
    # 5 rows do not divide
    assert scatter_dims((5, 8), ((X,), ()), ((), ()), (X,), MESH) == ()
    # a sharding that the mesh cannot say
    assert scatter_dims((8, 8), None, ((), ()), (X,), MESH) == ()


def test_what_completing_partial_sums_costs() -> None:
    """Of 256 bytes: a reduce_scatter over 2 receives 128, an all_reduce 2 x 128; both in turn 128 and 2 x 64."""
    whole, rows = ((), ()), ((X,), ())

    def side(wanted: DimAxes) -> Side:
        return Side((8, 8), ((0,), (1,)), wanted, F32)

    scattered, everywhere = Completion(0, (X,), "add", 128), Completion(None, (X,), "add", 256)
    assert complete(side(rows), whole, (X,), "add", MESH) == (rows, (scattered,))
    assert complete(side(whole), whole, (X,), "add", MESH) == (whole, (everywhere,))
    left = Completion(None, (Y,), "add", 128)
    assert complete(side(rows), whole, (X, Y), "add", MESH) == (rows, (scattered, left))


def test_what_is_known_of_equal_ops_changes_nothing() -> None:
    """The same choices, asked one after another with what the earlier ones knew, and each by itself."""
    rule = matmul(16, 32, 8)
    shapes = ((16, 32), (32, 8), (16, 8))
    splits: list[DimAxes] = [((), ()), ((X,), ()), ((), (X,)), ((X,), (Y,)), ((Y,), (X,)), ((X, Y), ())]
    known = Known()
    for left, right, result in itertools.product(splits, repeat=3):
        dims = (left, right, result)
        sides = [
            Side(shape, dim_map, one, F32)
            for shape, dim_map, one in zip(shapes, (*rule.operands, *rule.results), dims, strict=True)
        ]

        def price(have: DimAxes, want: DimAxes) -> int:
            return 0 if have == want else 7 * sum(map(len, have)) + 11 * sum(map(len, want)) + 100

        def asked(shared: Known | None, sides: list[Side] = sides, dims: tuple[DimAxes, ...] = dims) -> Assignment:
            pricing = Pricing(
                lambda i, to: price(dims[i], to),
                lambda _, start: price(start, dims[2]),
                lambda factors: 64 * len(factors) + 4096 / 2 ** len(factors),
                lambda done: done.bytes,
                lambda i, count: count,
            )
            return assign(rule, sides[:2], sides[2:], MESH, pricing, known=shared)

        assert asked(known) == asked(None)
