"""The examples of Rink et al. as tests of ``planner="rink"``. Types are written as there, minor axis first."""

import math
import re

import pytest

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.candidates.rink_search import Phase, shortest_paths
from shardpass.sharding import Mesh, Sharding

NORMAL_FORM = re.compile(r"s*[ap]*g*")
LETTER = {"dynamic_slice": "s", "all_to_all": "a", "collective_permute": "p", "all_gather": "g"}


def paper(mesh, kind):
    """``[3{"x"}12, 12]`` over ``{"x": 4}``: global shape and sharding."""
    shape, dims = [], []
    for tile, axes, size in re.findall(r"(\d+)(?:\{([^}]*)\}(\d+))?", kind):
        shape.append(int(size or tile))
        dims.append([a.strip() for a in axes.split(",") if a.strip()][::-1])  # ours are major to minor
        assert int(tile) * math.prod(mesh[a] for a in dims[-1]) == shape[-1]
    return tuple(shape), Sharding.tiled(Mesh(tuple(mesh.items())), dims)


def weak_cost(shape, source, path):
    """The cost of a path by figure 11, in elements."""
    tile, cost = math.prod(shape) // math.prod(source), 0
    for step in path:
        if step.phase == Phase.SLICE:
            tile //= step.factor
        elif step.phase == Phase.GATHER:
            tile *= step.factor
        cost += 0 if step.phase == Phase.SLICE else tile
    return cost


def shortest_path(shape, source, target, devices):
    return shortest_paths(shape, source, target, devices)[0]


def rink(mesh, source, target):
    shape, before = paper(mesh, source)
    same, after = paper(mesh, target)
    assert same == shape
    plan = plan_redistribution(shape, "f32", before, after, planner="rink")
    assert NORMAL_FORM.fullmatch("".join(LETTER[s.kind] for s in plan.steps))
    assert plan.peak_bytes == 4 * max(math.prod(plan.source_tile), math.prod(plan.target_tile))
    assert sum(s.kind == "collective_permute" for s in plan.steps) <= 1
    return plan


def kinds(plan):
    return [LETTER[s.kind] for s in plan.steps]


def test_section_2_4_rows_to_columns_on_32_devices():
    plan = rink({"devs": 32}, "[32, 64{devs}2048]", "[1{devs}32, 2048]")
    assert kinds(plan) == ["a"]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("[128{x}512, 128]", "[128{y}512, 128]"),
        ("[32{x,y}512, 128]", "[32{y,x}512, 128]"),
        ("[128{x}512, 32{y}128]", "[128{y}512, 32{x}128]"),
    ],
    ids=["for a replicated axis", "in one dimension", "across dimensions"],
)
def test_figure_3_swaps_are_one_permute(source, target):
    assert kinds(rink({"x": 4, "y": 4}, source, target)) == ["p"]


def test_figure_4_gather_of_the_minor_axis():
    plan = rink({"xdev": 4, "ydev": 4}, "[32{xdev,ydev}512, 512]", "[128{ydev}512, 512]")
    assert kinds(plan) == ["g"]
    assert plan.steps[0].axes == ("xdev",)


def test_figure_5_second_row_slices_before_it_moves():
    plan = rink({"x": 4, "y": 4}, "[32{x}128, 512, 32{y}128]", "[128, 128{y}512, 128]")
    shape, path_cost = plan.shape, 32 * 512 * 32 + 128 * 128 * 128
    path = shortest_path(shape, (4, 1, 4), (1, 4, 1), 16)
    assert weak_cost(shape, (4, 1, 4), path) == path_cost  # alltoall of the small tile, then the gather
    assert kinds(plan)[-1] == "g"


def test_example_3_1_needs_prime_axes():
    """[3{x}12, 2{y}12] to [2{y}12, 3{x}12] on 4x6: two all_to_alls and a permute; never the whole array."""
    plan = rink({"x": 4, "y": 6}, "[3{x}12, 2{y}12]", "[2{y}12, 3{x}12]")
    assert kinds(plan) == ["a", "a", "p"]
    assert plan.peak_bytes == 4 * 6
    path = shortest_path((12, 12), (4, 6), (6, 4), 24)
    assert weak_cost((12, 12), (4, 6), path) == 2 * 6


def test_examples_4_9_6_8_and_7_1_one_all_to_all_over_the_whole_axis():
    plan = rink({"a": 8}, "[1{a}8, 8]", "[8, 1{a}8]")
    assert kinds(plan) == ["a"]
    assert plan.steps[0].groups.shape == (1, 8)
    path = shortest_path((8, 8), (8, 1), (1, 8), 8)
    assert weak_cost((8, 8), (8, 1), path) == 8  # example 7.1; sequence (10) costs 24


def test_figure_12_over_partitioning_makes_the_exchange_cheaper():
    """On {x:4, y:2, z:4}, z is free: tiles are cut by it before they move, and gathered with y after."""
    source, target = "[16{x}64, 32{y}64, 64]", "[64, 64, 16{x}64]"
    plan = rink({"x": 4, "y": 2, "z": 4}, source, target)
    tile = 16 * 32 * 64
    path = shortest_path((64, 64, 64), (4, 2, 1), (1, 1, 4), 32)
    assert kinds(plan)[0] == "s"
    assert weak_cost((64, 64, 64), (4, 2, 1), path) == tile // 4 + 2 * tile  # without z: 3 tiles


def test_section_7_3_a_slice_takes_the_axis_of_the_target():
    mesh = {"x": 4, "y": 4}
    assert kinds(rink(mesh, "[16]", "[4{x}16]")) == ["s"]
    assert kinds(rink(mesh, "[16]", "[4{y}16]")) == ["s"]


def test_section_7_3_the_permute_moves_before_the_gather():
    plan = rink({"x": 2, "y": 2, "z": 2}, "[4{x}8, 4{z}8]", "[8, 4{y}8]")
    assert kinds(plan) == ["p", "g"]


MESH_8 = {"a": 2, "b": 2, "c": 2}
FIGURE_13 = {
    "P1": ("[360, 184{c}368, 320]", "[90{c,a}360, 368, 160{b}320]", ["s", "a"]),
    "P2": ("[80, 40{c}80, 72, 64]", "[40{b}80, 80, 36{c}72, 64]", ["s", "a"]),
    "P3": ("[296, 360, 156{c}312]", "[74{b,c}296, 180{a}360, 312]", ["s", "a"]),
    "P4": ("[8{c}16, 16, 16, 8{a}16, 16, 8{b}16]", "[16, 16, 16, 16, 16, 8{a}16]", None),
}


@pytest.mark.parametrize("name", FIGURE_13)
def test_figure_13(name):
    """P1 to P3 are a slice and an exchange (with or without a permute); P4 ends in a gather."""
    source, target, first = FIGURE_13[name]
    plan = rink(MESH_8, source, target)
    if first:
        assert [k for k in kinds(plan) if k != "p"] == first
    else:
        assert kinds(plan)[-1] == "g"
