"""Programs of the partition fuzzer: what no two runs agree on is used by nothing that is compared."""

from __future__ import annotations

from random import Random

from tools.fuzz.generators.sources import random_numbers
from tools.fuzz.maker import Maker
from tools.fuzz.random_sharding import MESHES


def test_what_rng_draws_is_taken_by_its_floor_alone() -> None:
    make = Maker(Random(0), MESHES[0], {})
    make.grow(1, {random_numbers: 1})
    drawn = [node.name for node in make.nodes].index("stablehlo.rng")
    assert {make.pick() for _ in range(200)} == set(range(len(make.facts))) - {drawn}
