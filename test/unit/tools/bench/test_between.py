"""Other ways between two sets of devices, priced by hand; and some random problems beside their bound."""

import pytest

from shardpass.cost.machine import switched
from shardpass.redistribute.between.ports import ports_of
from shardpass.redistribute.between.sides import make_side
from tools.bench.between import measure, optimal
from tools.bench.between_baselines import baselines

PORTS = ports_of(switched("flat", 0.0, 1.0, 1.0))  # a byte a second


def six_to_four():
    return (
        make_side((12,), "{devices=[6]<=[6]}", tuple(range(6)), "source"),
        make_side((12,), "{devices=[4]<=[4]}", tuple(range(6, 10)), "target"),
    )


def test_other_ways_from_six_to_four():
    """12 bytes. Whole: 10 come, then 3 go from each of four. Divisor 2: tiles of 6, 4 come, then 3 go. Host: 10, 12."""
    found = baselines(*six_to_four(), 8, PORTS)
    assert {name: price.seconds for name, price in found.items()} == {
        "gather, slice": 10 + 3 * 1, "device_put": 10 + 12, "common divisor": 4 + 3, "first holder": 3,
    }  # fmt: skip
    assert found["gather, slice"].memory == 2 + 12
    assert found["device_put"].sent == 12
    assert found["common divisor"].memory == 2 + 6


def test_jax_copies_tiles_that_both_sides_have():
    """Two replicas of halves to two devices: the last holder of each half sends it."""
    source = make_side((8,), "{devices=[2,2]<=[4] last_tile_dim_replicate}", (0, 1, 2, 3), "source")
    target = make_side((8,), "{devices=[2]<=[2]}", (4, 5), "target")
    price = baselines(source, target, 8, PORTS)["device_put"]
    assert (price.seconds, price.sent) == (4, 4)


@pytest.mark.parametrize("number", [3, 7, 11, 22])
def test_plans_are_never_slower_than_other_ways(number):
    row = measure(number)
    assert row["bound"] <= row["seconds"] * (1 + 1e-9)
    assert row["seconds"] <= min(way["seconds"] for way in row["ways"].values()) * (1 + 1e-9)


def test_tiny_plans_are_optimal():
    assert all(optimal(number) for number in range(200, 210))
