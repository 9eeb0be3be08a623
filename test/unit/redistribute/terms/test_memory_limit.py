"""The memory limit: what it reads, that it is kept or refused with numbers, and that it changes plans both ways."""

import math
import random

import execution as x
import pytest
from support import daily

from shardpass.cost.chosen import chosen
from shardpass.diagnostics import ShardpassError
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.terms.choice import MANY, Terms
from shardpass.redistribute.terms.limit import read_limit, show_bytes, show_limit
from shardpass.sharding import Mesh, Sharding

CROSSED = ("{mesh['a'=4,'b'=3], [{'a','b'}, {}]}", "{mesh['a'=4,'b'=3], [{'b'}, {'a'}]}")


def kinds(plan):
    return [step.kind for step in plan.steps]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (None, None),
        ("none", None),
        ("max", "max"),
        (0, 0),
        (4096, 4096),
        ("4096", 4096),
        ("4096 B", 4096),
        ("24MiB", 24 * 2**20),
        ("1.5 GiB", 3 * 2**29),
        ("2kB", 2000),
    ],
)
def test_limits_are_read(given, want):
    assert read_limit(given) == want
    assert read_limit(show_limit(want)) == want


@pytest.mark.parametrize("given", ["", "-1", -1, "1.5", "24 mib", "many", "1e9", True, "٣", "9" * 30])
def test_what_is_no_limit_is_said_to_be_none(given):
    with pytest.raises(ShardpassError, match="SP412") as caught:
        read_limit(given)
    assert repr(str(given)) in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (10239, "10239 B"), (10240, "10 KiB"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB")]
)
def test_bytes_for_people(count, text):
    assert show_bytes(count) == text


def test_with_no_limit_one_gather_takes_the_place_of_two_collectives():
    """A small array: 20 us of latency for two collectives, 10 for one and the few bytes that it takes more."""
    lean, free = (plan_redistribution((24, 24), "f32", *CROSSED, memory_limit=m) for m in ("max", None))
    assert kinds(free) == ["all_gather", "dynamic_slice"]
    assert sum(kind != "dynamic_slice" for kind in kinds(lean)) > 1
    assert free.seconds < lean.seconds
    assert free.peak_bytes == 24 * 24 * 4 > lean.peak_bytes == 24 * 2 * 4
    whole = x.numbered((24, 24))
    plan = plan_redistribution((24, 24), "i32", *CROSSED, memory_limit=None)
    x.expect_tiles(plan, whole, x.run_plan(plan, whole))


def test_of_a_great_array_no_limit_gathers_less():
    """Where bytes outweigh the latency the same problem is not gathered, though it might be."""
    lean, free = (plan_redistribution((2400, 2400), "f32", *CROSSED, memory_limit=m) for m in ("max", None))
    assert kinds(lean) == kinds(free)
    assert dict(free.refused)["gather"].startswith("slower: at least ")
    assert [why for way, why in lean.refused if way == "gather"] == [
        f"over the memory limit by {show_bytes(4 * (2400 * 2400 - 2400 * 200))}"
    ]


def test_a_number_just_enough_for_the_gather_lets_it_be():
    """Operand and result of the gather, 1/12 and the whole of 24x24 floats; a byte less is too little."""
    needed = 24 * 24 * 4 + 24 * 2 * 4
    enough, less = (plan_redistribution((24, 24), "f32", *CROSSED, memory_limit=m) for m in (needed, needed - 1))
    assert kinds(enough) == ["all_gather", "dynamic_slice"]
    assert enough.peak_live_bytes == needed
    assert "all_gather" not in kinds(less)
    assert ("gather", "over the memory limit by 1 B") in less.refused


def random_problem(rng):
    sizes = rng.choice([(8,), (2, 4), (2, 2, 2), (2, 3), (2, 2, 3), (4, 4)])
    mesh = Mesh(tuple((f"m{i}", n) for i, n in enumerate(sizes)))
    rank = rng.randint(1, 3)
    sides = []
    for _ in range(2):
        dims = [[] for _ in range(rank)]
        for axis in rng.sample(range(len(sizes)), len(sizes)):
            place = rng.randint(-1, rank - 1)
            if place >= 0:
                dims[place].append(f"m{axis}")
        sides.append(Sharding.tiled(mesh, dims))
    unit = rng.choice([1, 2, 24])
    return tuple(unit * rng.randint(1, 12) for _ in range(rank)), *sides, mesh.size


@pytest.mark.parametrize("seed", daily.drawn(range(30), 10))
def test_a_number_is_kept_or_refused_and_more_is_never_dearer(seed):
    shape, source, target, devices = random_problem(random.Random(seed))

    def ask(limit):
        return plan_redistribution(shape, "f32", source, target, num_devices=devices, memory_limit=limit)

    price, peaks = math.inf, (ask("max").peak_live_bytes, ask(None).peak_live_bytes)
    for limit in sorted({0, *peaks, *(int(peaks[1] * part) for part in (0.4, 0.6, 0.8, 1.2))}):
        try:
            plan = ask(limit)
        except ShardpassError as refused:
            failure = refused.diagnostics[0]
        else:
            assert plan.peak_live_bytes <= limit
            # where no plan can receive less none is looked for, though its copies might be cheaper
            # and one of many collectives must be cheaper by more than a trifle
            assert plan.seconds <= price * MANY * (1 + 1e-9) or plan.bytes_received == plan.lower_bound_bytes
            price = min(price, plan.seconds)
            continue
        assert price == math.inf, "less memory was enough"
        assert (failure.code, f"fits in {limit} bytes" in failure.message) == ("SP413", True)
        least = int(failure.message.split("the least is ")[1].split(" bytes")[0])
        assert least > limit
        assert ask(least).peak_live_bytes <= least, "the least is not enough"


def test_the_certificate_names_every_way_once():
    plan = plan_redistribution((24, 24), "f32", *CROSSED)
    assert len(set(plan.refused)) == len(plan.refused)
    assert {"gather", "exchange"} <= {refusal.way for refusal in plan.refused}
    reasons = ("slower: ", "no cheaper", "over the memory limit by ", "not tried: ")
    assert all(why.startswith(reasons) or why.endswith("x the bytes") for _, why in plan.refused)
    assert (plan.profile, plan.memory_limit) == ("default", "max")


def test_a_refusal_gives_both_prices_and_the_ratio_of_bytes():
    """As the refused planner's own plan says them."""
    sides = "{mesh['a'=2,'b'=3], [{'a'}, {'b'}]}", "{mesh['a'=2,'b'=3], [{'b'}, {'a'}]}"
    rink, best = (plan_redistribution((3072, 3072), "f32", *sides, planner=p) for p in ("rink", "best"))
    prices = f"slower: {1e6 * rink.seconds:.4g} us against {1e6 * best.seconds:.4g} us"
    ratio = rink.bytes_received / best.bytes_received
    assert ratio > 1
    assert ("rink", f"{prices}, {ratio:.2f}x the bytes") in best.refused


def test_what_receives_the_least_possible_has_no_rival():
    plan = plan_redistribution((64, 64), "f32", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}")
    assert plan.bytes_received == plan.lower_bound_bytes
    assert ("rink", "not tried: no plan can receive less") in plan.refused


@pytest.mark.parametrize(("tiles", "most"), [((10, 3), 10 + 3 + 3 + 10), ((3, 10), 3 + 10 + 10 + 10)])
def test_within_max_live_both_tiles_the_result_again_and_the_greater_again(tiles, most):
    assert Terms(chosen("default"), "max", tiles).most_live == most
    assert Terms(chosen("default"), 7, tiles).most_live == 7
    assert Terms(chosen("default"), None, tiles).most_live is None
