"""The gains of planning by sub-axes over the paper's planner: each has a problem on which it must show."""

import collections
import itertools
import json
import math
from pathlib import Path

import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.candidates.sub_axes.assignments import SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.common_tile import through_common_tile
from shardpass.redistribute.candidates.sub_axes.detour import detours
from shardpass.redistribute.candidates.sub_axes.strategies import (
    common_tile_strategies,
    detour_strategies,
    strategies,
)
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.ends import final_state, held_under
from shardpass.redistribute.program.simulate import check
from shardpass.sharding import Mesh, Sharding

M222 = Mesh((("a", 2), ("b", 2), ("c", 2)))
M42 = Mesh((("x", 4), ("y", 2)))


def plans(mesh, shape, source, target):
    """rink and best; dims are strings of axes, major to minor."""
    sides = [Sharding.tiled(mesh, [tuple(dim) for dim in side]) for side in (source, target)]
    return [plan_redistribution(shape, "f32", *sides, planner=p) for p in ("rink", "best")]


def kinds(plan):
    return [step.kind for step in plan.steps]


def test_axes_change_their_order_as_they_move():
    """[ab, -] to [-, ba]: the paper keeps the order, and must permute after."""
    rink, best = plans(M222, (8, 8), ("ab", ""), ("", "ba"))
    assert kinds(rink) == ["all_to_all", "collective_permute"]
    assert kinds(best) == ["all_to_all"]
    assert best.bytes_received == best.lower_bound_bytes


def test_moves_between_several_dimensions_are_one_all_to_all():
    rink, best = plans(M222, (8, 8, 8, 8), ("a", "b", "", ""), ("", "", "a", "b"))
    assert kinds(best) == ["all_to_all"]
    assert best.steps[0].groups.shape == (2, 4)
    assert best.bytes_received == best.lower_bound_bytes < rink.bytes_received


def test_two_axes_into_one_dimension_are_one_all_to_all():
    """x from 2 to 1 and y from 0 to 1, on which XLA gives up and replicates."""
    _, best = plans(M42, (8, 16, 8), ("y", "", "x"), ("", "xy", ""))
    assert kinds(best) == ["all_to_all"]
    assert best.bytes_received == best.lower_bound_bytes


def test_gathers_over_several_dimensions_are_one():
    """P4 of the paper."""
    rink, best = plans(M222, (8,) * 6, ("c", "", "", "a", "", "b"), ("", "", "", "", "", "a"))
    assert kinds(best).count("all_gather") == 1
    assert best.bytes_received == best.lower_bound_bytes < rink.bytes_received


@pytest.mark.parametrize(
    ("shape", "source", "target"),
    [
        ((360, 368, 320), ("", "c", ""), ("ac", "", "b")),
        ((80, 80, 72, 64), ("", "c", "", ""), ("b", "", "c", "")),
        ((296, 360, 312), ("", "", "c"), ("cb", "a", "")),
    ],
    ids=["P1", "P2", "P3"],
)
def test_figure_13_without_a_permute(shape, source, target):
    rink, best = plans(M222, shape, source, target)
    assert kinds(best) == ["dynamic_slice", "all_to_all"]
    assert best.bytes_received == best.lower_bound_bytes <= rink.bytes_received


def test_a_swap_with_a_permute_takes_the_bytes_of_one():
    """a moves to dimension 1 while b takes its place: two steps of half a tile, not one and a half tiles."""
    rink, best = plans(M222, (2048, 2048), ("ab", ""), ("b", "a"))
    assert kinds(rink) == ["all_to_all", "collective_permute"]
    assert [step.bytes for step in best.steps] == [best.lower_bound_bytes // 2] * 2
    assert best.bytes_received == best.lower_bound_bytes
    assert rink.bytes_received == 1.5 * best.bytes_received


def test_small_arrays_take_few_steps_instead():
    """Where a latency costs more than the bytes that it saves."""
    mesh = Mesh((("a", 4), ("b", 4)))
    source, target = (Sharding.tiled(mesh, dims) for dims in (("ab", ()), ("b", "a")))
    small, large = (plan_redistribution((n, n), "f32", source, target) for n in (16, 8192))
    assert kinds(small) == ["all_to_all"] * 2
    assert kinds(large) == ["collective_permute"] * 4
    assert large.bytes_received == large.lower_bound_bytes


def test_a_profile_decides_between_few_steps_and_few_bytes():
    mesh = Mesh((("a", 4), ("b", 4)))
    source, target = (Sharding.tiled(mesh, dims) for dims in (("ab", ()), ("b", "a")))
    by = {name: plan_redistribution((256, 256), "f32", source, target, machine=name) for name in ("default", "paper")}
    assert len(by["default"].steps) == 2 < len(by["paper"].steps) == 4
    assert by["paper"].bytes_received == by["paper"].lower_bound_bytes < by["default"].bytes_received


def test_a_chain_is_peeled_from_its_end():
    """x leaves dimension 0 before y takes its place: an all_to_all each, 3/4 and 1/2 of the tile, and no permute."""
    mesh = Mesh((("x", 4), ("y", 2)))
    _, best = plans(mesh, (64, 64, 64), ("x", "y", ""), ("y", "", "x"))
    tile = math.prod(best.source_tile) * 4
    assert kinds(best) == ["all_to_all"] * 2
    assert best.bytes_received == tile * 3 // 4 + tile // 2


@pytest.mark.parametrize("sizes", [(2, 3), (2, 2, 2), (3, 4), (3, 2, 2)])
def test_every_form_of_every_problem_is_right(sizes):
    """Also those that lose: all pairs of shardings of rank 3 by all axes, and one of them by all but one."""
    names = "abc"[: len(sizes)]
    mesh = Mesh(tuple(zip(names, sizes, strict=True)))
    shape, shardings = (24, 48, 72), [Sharding.tiled(mesh, dims) for dims in _assignments(names, 3)]
    full = [s for s in shardings if sum(map(len, s.dims)) == len(names)]
    counts = collections.Counter()
    for source, target in itertools.product(full[::2], shardings[::3]):
        problem = make_problem(shape, "f32", source, target)
        by_sub_axes = SubAxisProblem.of(problem, shape)
        candidates = {
            "sub-axes": strategies(by_sub_axes) if by_sub_axes else [],
            "detour": [way for halves in detours(problem, shape) for way in detour_strategies(halves)],
            "common tile": [
                way for ends in through_common_tile(problem, shape) for way in common_tile_strategies(ends)
            ],
        }
        for name, ways in candidates.items():
            counts[name] += len([built_by(problem, strategy) for strategy in ways])
    assert counts["sub-axes"] > 20
    assert (counts["detour"] > 20) == (sizes != (2, 2, 2))
    assert (counts["common tile"] > 10) == (sizes != (2, 2, 2))


def built_by(problem, strategy):
    """The plan of one strategy, proved."""
    builder = Builder(problem.source.tile, problem.element, problem.sub_axes)
    strategy(builder)
    check(tuple(builder.program), held_under(problem.source), final_state(problem), problem.shape)
    return builder


@pytest.mark.parametrize(
    ("mesh", "shape", "source", "target", "collectives"),
    [
        ((2, 3), (6, 6, 36), ("a", "b", ""), ("b", "a", ""), 2),  # both park on dimension 2
        ((2, 3), (6, 6, 36), ("b", "", ""), ("a", "b", ""), 2),  # a is sliced on dimension 2, and moves
        ((4, 6), (24, 24, 48), ("", "ab", ""), ("ba", "", ""), 1),  # nothing clashes: one all_to_all
        ((4, 6), (48, 24, 24), ("", "a", "b"), ("", "b", "a"), 2),
        ((2, 3, 2), (12, 12, 12, 12), ("b", "", "ac", ""), ("", "cb", "", ""), 3),
    ],
)
def test_where_tilings_clash_they_go_by_way_of_whole_dimensions(mesh, shape, source, target, collectives):
    """Halves against thirds; bytes as the steps say, and never more than the paper's."""
    axes = Mesh(tuple(zip("abc", mesh, strict=False)))
    rink, best = plans(axes, shape, source, target)
    assert sum(step.kind != "dynamic_slice" for step in best.steps) <= collectives
    assert best.bytes_received <= rink.bytes_received
    assert best.peak_bytes <= 4 * max(math.prod(best.source_tile), math.prod(best.target_tile))


@pytest.mark.parametrize("sizes", [(2, 2, 3, 2), (2, 4, 3, 2), (4, 2, 3, 2)])
def test_what_need_not_go_first_may_go_with_what_comes_later(sizes):
    """a leaves dimension 1 before c comes there. d goes with the one or the other, whichever receives less."""
    mesh = Mesh(tuple(zip("abcd", sizes, strict=True)))
    a, b, c, d = sizes
    shape = (a * d * 2, a * c, c * 2, b * d * 2)
    _, best = plans(mesh, shape, ("", "a", "c", "bd"), ("ad", "c", "", "b"))
    ways = [(1 - 1 / (a * d)) + (1 - 1 / c), (1 - 1 / a) + (1 - 1 / (c * d))]
    assert best.bytes_received == pytest.approx(4 * math.prod(best.source_tile) * min(ways))
    assert len(best.steps) == 2


def test_of_two_dimensions_that_clash_one_is_whole_in_the_common_tile():
    """c leaves dimension 1, b goes to 2; sixths of dimension 0 change hands; a goes to 1, and d is gathered."""
    mesh = Mesh((("a", 2), ("b", 2), ("c", 3), ("d", 2)))
    _, best = plans(mesh, (6, 6, 4, 4), ("d", "c", "", "ab"), ("c", "a", "b", ""))
    tile = 4 * math.prod((3, 2, 4, 1))
    assert kinds(best) == ["all_to_all", "collective_permute", "all_to_all", "all_gather"]
    assert [step.bytes for step in best.steps] == [tile * 5 // 6, tile, tile // 2, tile]


def test_what_both_sides_share_never_moves():
    _, best = plans(M222, (8, 8, 8), ("a", "b", ""), ("a", "", "b"))
    assert kinds(best) == ["all_to_all"]
    assert best.steps[0].axes == ("b",)


def test_sizes_that_meet_after_padding_need_no_rounds():
    """7 rows in tiles of 4 and of 2 are both padded to 8."""
    plan = plan_redistribution((7, 8), "f32", "{devices=[4,2]<=[8]}", "{devices=[2,4]<=[2,2,2]T(0,2,1)}")
    assert kinds(plan) == ["all_to_all"]


def test_factors_in_another_order_save_a_quarter():
    """Example 3.1 of the paper has no sub-dimension in common: its path, last all_to_all and permute in one."""
    mesh = Mesh((("x", 4), ("y", 6)))
    rink, best = plans(mesh, (12000, 12000), ("x", "y"), ("y", "x"))
    assert kinds(rink) == ["all_to_all", "all_to_all", "collective_permute"]
    assert kinds(best)[0] == "all_to_all"
    assert set(kinds(best)[1:]) == {"collective_permute"}
    assert best.bytes_received < 0.75 * rink.bytes_received


def test_every_reshard_of_three_axes_of_two_meets_the_bound():
    """All pairs of rank 2, on an array great enough that bytes outweigh steps."""
    shardings = [Sharding.tiled(M222, dims) for dims in _assignments("abc", 2)]
    many = 0
    for source in shardings:
        for target in shardings:
            plan = plan_redistribution((1 << 14, 1 << 14), "f32", source, target)
            assert plan.bytes_received == plan.lower_bound_bytes
            assert plan.peak_bytes == 4 * max(math.prod(plan.source_tile), math.prod(plan.target_tile))
            many += sum(kind != "dynamic_slice" for kind in kinds(plan)) > 3
    assert many <= 0.05 * len(shardings) ** 2


def _assignments(axes, rank):
    """Every way to put each axis nowhere or on a dimension, in every order."""
    found = set()
    for order in itertools.permutations(axes):
        for places in itertools.product(range(-1, rank), repeat=len(axes)):
            dims = [[] for _ in range(rank)]
            for axis, place in zip(order, places, strict=True):
                if place >= 0:
                    dims[place].append(axis)
            found.add(tuple(map(tuple, dims)))
    return sorted(found)


def test_a_plan_is_remembered():
    shape, source, target = (64, 64), "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"
    assert plan_redistribution(shape, "f32", source, target) is plan_redistribution(shape, "f32", source, target)


def test_equal_shardings_that_call_their_axes_differently_keep_their_names():
    target = "{replicated}"
    for name in ("data", "model"):
        source = Sharding.tiled(Mesh(((name, 8),)), ((name,),))
        assert plan_redistribution((8,), "f32", source, target).steps[0].axes == (name,)


def test_the_examples_of_the_documentation():
    page = (Path(__file__).parents[4] / "docs" / "redistribution.md").read_text()
    for block in page.split("```json plan\n")[1:]:
        example = json.loads(block.split("```")[0])
        plan = plan_redistribution(
            tuple(example["shape"]), "f32", example["source"], example["target"], planner=example["planner"]
        )
        assert kinds(plan) == example["steps"]
        assert plan.bytes_received == example["bytes_received"]
        assert plan.lower_bound_bytes == example["lower_bound_bytes"]
