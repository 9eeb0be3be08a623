"""Plans on XLA's CPU devices against NumPy slicing of the whole array."""

import random

import execution as x
import numpy as np
import pytest

from shardpass.redistribute import PLANNERS, plan_redistribution
from shardpass.sharding import Mesh, Sharding
from tools.prove.numpy_programs import evaluate


def on(sizes, spec, order=None):
    """``spec``: for each dimension the positions of its mesh axes, major to minor."""
    names = "abcd"
    mesh = Mesh(tuple((names[i], n) for i, n in enumerate(sizes)), order)
    return Sharding.tiled(mesh, tuple(tuple(names[a] for a in dim) for dim in spec))


def random_spec(rng, axes, rank):
    spec = [[] for _ in range(rank)]
    for a in rng.sample(range(axes), axes):
        if rng.random() < rank / (rank + 1):
            spec[rng.randrange(rank)].append(a)
    return spec


def check(shape, element, source, target, planner, dtype=np.int32, devices=None, profile="default"):
    plan = plan_redistribution(shape, element, source, target, planner=planner, num_devices=devices, machine=profile)
    whole = x.numbered(shape, dtype)
    x.expect_tiles(plan, whole, x.run_plan(plan, whole))
    return plan


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("sizes", [(8,), (2, 4), (2, 2, 2), (2, 3), (2, 2, 3), (12,), (3, 4)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_random_problems(planner, sizes, seed):
    rng = random.Random(f"{sizes}/{seed}")
    rank = rng.randint(1, 3)
    specs = [random_spec(rng, len(sizes), rank) for _ in range(2)]
    need = [np.lcm(*(int(np.prod([sizes[a] for a in spec[i]])) for spec in specs)) for i in range(rank)]
    shape = tuple(int(n) * rng.randint(1, 3) for n in need)
    plan = check(shape, "i32", *(on(sizes, spec) for spec in specs), planner)
    assert plan.peak_bytes == 4 * max(np.prod(plan.source_tile), np.prod(plan.target_tile))


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", range(6))
def test_sizes_that_do_not_divide(planner, seed):
    rng = random.Random(seed)
    sizes = rng.choice([(2, 2, 2), (2, 4), (2, 3)])
    rank = rng.randint(1, 3)
    shape = tuple(rng.randint(1, 11) for _ in range(rank))
    check(shape, "i32", *(on(sizes, random_spec(rng, len(sizes), rank)) for _ in range(2)), planner)


@pytest.mark.parametrize(
    ("shape", "source", "target", "received"),
    [  # a permute of the common tile, and the exchange or gather after it
        ((12, 2, 8), "[{'d'}, {'b'}, {}]", "[{'c'}, {'a'}, {'d', 'b'}]", 8 * 4 + 8 * 4 // 2),
        ((1, 48, 8), "[{}, {'d', 'a', 'b'}, {}]", "[{}, {'c'}, {'b', 'a'}]", 16 * 4 + 16 * 4 * 3 // 4 + 16 * 4),
        ((2, 4, 12), "[{}, {}, {'d'}]", "[{}, {'a', 'b'}, {'c'}]", 4 * 4 + 4 * 4),
        # an exchange before the permute, and a gather after it
        ((4, 2, 12, 4), "[{'b'}, {}, {'c'}, {'a', 'd'}]", "[{}, {'b'}, {'a', 'd'}, {}]", 16 * 4 * (7 / 8 + 1 + 2)),
    ],
    ids=["exchanged", "exchanged and gathered", "gathered", "exchanged before"],
)
def test_halves_become_thirds_by_way_of_sixths(shape, source, target, received):
    """24 devices, on NumPy arrays: tiles of sixths change devices, and no more comes than by Shardy's program."""
    mesh = "{mesh['a'=2,'b'=2,'c'=3,'d'=2], "
    plan = plan_redistribution(shape, "i32", mesh + source + "}", mesh + target + "}")
    whole = x.numbered(shape, np.int32)
    tiles = [x.tile_of(whole, base, plan.source_tile, 0) for base in x.offsets(plan.source, shape, 24)]
    x.expect_tiles(plan, whole, evaluate(plan.program, tiles))
    assert plan.bytes_received == received


ROUNDS = {
    "two chunks": ((2, 2), (8, 8), ((0, 1), ()), ((1,), (0,))),
    "two chunks, into the last dimension": ((2, 2), (4, 8, 8), ((), (0, 1), ()), ((), (1,), (0,))),
    "four chunks": ((4, 2), (16, 16), ((0, 1), ()), ((1,), (0,))),
    "two dimensions at once": ((2, 2, 2), (8, 8, 8), ((0, 1), (2,), ()), ((1,), (), (0, 2))),
    "three chunks, digits that do not nest": ((3, 4), (24, 24), ((0,), (1,)), ((1,), (0,))),
    "and a gather": ((2, 2, 3), (12, 12, 12), ((0, 1), (2,), ()), ((1,), (0,), ())),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_exchanges_in_rounds(name):
    sizes, shape, source, target = ROUNDS[name]
    plan = check(shape, "i32", on(sizes, source), on(sizes, target), "best", profile="paper")
    assert sum(step.kind == "collective_permute" for step in plan.steps) > 1


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_devices(planner, seed):
    rng = random.Random(seed)
    orders = [rng.sample(range(8), 8) for _ in range(2)]
    specs = [random_spec(rng, 3, 2) for _ in range(2)]
    source, target = (on((2, 2, 2), spec, order) for spec, order in zip(specs, orders, strict=True))
    check((16, 16), "i32", source, target, planner)


SPECIAL = {
    "replicated to tiled": ((8, 6), "{replicated}", "{devices=[4,2]<=[8]}"),
    "tiled to replicated": ((8, 6), "{devices=[4,2]<=[8]}", "{replicated}"),
    "one device to tiled": ((8, 6), "{maximal device=3}", "{devices=[4,2]<=[8]}"),
    "one device to replicated": ((8, 6), "{maximal device=3}", "{replicated}"),
    "tiled to one device": ((8, 6), "{devices=[4,2]<=[8]}", "{maximal device=5}"),
    "one device to another": ((8, 6), "{maximal device=3}", "{maximal device=5}"),
    "uneven, one device to tiled": ((7, 5), "{maximal device=3}", "{devices=[4,2]<=[8]}"),
    "uneven, empty last tiles": ((5, 3), "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"),
    "scalar from one device": ((), "{maximal device=3}", "{replicated}"),
    "meshes with nothing in common": (
        (24, 24),
        "{devices=[3,1,4]<=[12] last_tile_dim_replicate}",
        "{devices=[4,1,3]<=[12] last_tile_dim_replicate}",
    ),
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(planner, name):
    shape, source, target = SPECIAL[name]
    devices = 12 if "<=[12]" in source else 8
    check(shape, "i32", source, target, planner, devices=devices)


TYPES = {
    "i1": np.bool_,
    "i4": "int4",
    "ui8": np.uint8,
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f32": np.float32,
    "complex<f32>": np.complex64,
}


@pytest.mark.parametrize("element", TYPES)
def test_element_types_even_and_uneven(element):
    import ml_dtypes

    kind = TYPES[element]
    dtype = np.dtype(getattr(ml_dtypes, kind) if isinstance(kind, str) else kind)
    rng = np.random.default_rng(0)
    for shape in ((8, 8), (5, 7)):
        plan = plan_redistribution(shape, element, "{devices=[4,2]<=[8]}", "{devices=[1,8]<=[8]}")
        whole = rng.integers(0, 2, shape).astype(dtype)
        x.expect_tiles(plan, whole, x.run_plan(plan, whole))


def test_floats_come_through_bit_for_bit():
    special = np.array([-0.0, np.nan, np.inf, -np.inf, 1e-45, 1.0, 2.0, 3.0], np.float32)
    whole = np.tile(special, (5, 1))
    for source in ("{devices=[8,1]<=[8]}", "{maximal device=2}"):
        plan = plan_redistribution((5, 8), "f32", source, "{devices=[1,4,2]<=[8] last_tile_dim_replicate}")
        got = x.run_plan(plan, whole)
        for d, result in enumerate(got):
            want = whole[:, 2 * (d // 2) : 2 * (d // 2) + 2]
            np.testing.assert_array_equal(result.view(np.uint32), want.view(np.uint32))
