"""Times on one kind of link: by hand, and by routing each block over each link of a ring."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from shardpass.cost.links import Direct, Switch, Torus

GB = 10**9
SWITCH = Switch(8, 1e-5, 100e9, all_reduce=160e9)
DIRECT = Direct(8, 1e-5, 10e9)
TORUS = Torus(None, 5e-6, 100e9, shape=(16, 20, 28), wrap=4, hop=1e-6)


@pytest.mark.parametrize(
    ("shape", "sizes", "scatters"),
    [
        ((4, 4), (4,), True),
        ((4, 4), (8,), True),
        ((4, 4), (16,), False),
        ((4, 4), (4, 4), False),
        ((2, 4), (8,), True),
        ((2, 4), (4, 2), True),
        ((2, 2, 2), (8,), False),
        ((2, 2, 2), (4, 2), False),
        ((2, 2, 4), (16,), False),
        ((2, 2, 4), (8,), True),
        ((2, 2, 4), (4,), True),
    ],
)
def test_sums_are_scattered_where_xla_compiles_a_reduce_scatter(shape, sizes, scatters):
    """What libtpu 0.0.42.1 compiles of ``psum_scatter`` in slices of v5e and v5p of these shapes."""
    slice_ = replace(TORUS, shape=shape)
    kind = "reduce_scatter" if scatters else "all_reduce"
    assert slice_.seconds("reduce_scatter", GB, sizes) == slice_.seconds(kind, GB, sizes)
    assert slice_.seconds("all_reduce", GB, sizes) == 2 * slice_.seconds("all_gather", GB, sizes)


@pytest.mark.parametrize(
    ("link", "kind", "sizes", "want"),
    [
        (SWITCH, "all_gather", (8,), 7 / 8 / 100),
        (SWITCH, "all_reduce", (8,), 2 * 7 / 8 / 160),
        (SWITCH, "collective_permute", (2, 4), 1 / 100),
        # each of 3 others over a link of its own
        (DIRECT, "all_gather", (4,), 3 / 4 / 30),
        (DIRECT, "all_reduce", (2,), 2 * 1 / 2 / 10),
        (DIRECT, "collective_permute", (8,), 1 / 10),
        # a ring both ways; three rings; an open ring
        (TORUS, "all_gather", (16,), 15 / 16 / 200),
        (TORUS, "all_gather", (16, 4, 8), 511 / 512 / 600),
        (TORUS, "reduce_scatter", (2,), 1 / 2 / 100),
        (TORUS, "all_gather", (16, 2), 31 / 32 / 300),
        # longer than 28: over two dimensions
        (TORUS, "all_reduce", (64,), 2 * 63 / 64 / 400),
        # more mesh axes than dimensions: all three rings
        (TORUS, "all_gather", (4, 4, 4, 4), 255 / 256 / 600),
        (TORUS, "collective_permute", (16,), 1 / 100),
    ],
)
def test_by_hand(link, kind, sizes, want):
    assert link.seconds(kind, GB, sizes) == pytest.approx(want)


def heaviest(n, closed):
    """Blocks on the busiest link of a ring: each device sends one to each other, the shortest way, or half each way."""
    load = Counter()
    for source in range(n):
        for target in range(n):
            right, left = (target - source) % n, (source - target) % n
            if not closed:
                right, left = (right, n) if target > source else (n, left)
            ways = [(+1, right)] * (right <= left) + [(-1, left)] * (left <= right)
            for step, hops in ways if source != target else ():
                for hop in range(hops):
                    load[(source + step * hop) % n, step] += Fraction(1, len(ways))
    return max(load.values())


@pytest.mark.parametrize(("n", "closed"), [(4, True), (8, True), (16, True), (2, False), (6, False), (10, False)])
def test_an_exchange_on_a_ring_is_bounded_by_its_busiest_link(n, closed):
    torus = Torus(None, 0.0, 100e9, shape=(16,), wrap=n if closed else 64, hop=0.0)
    assert torus.seconds("all_to_all", GB, (n,)) == pytest.approx(float(heaviest(n, closed)) / n / 100)


def test_the_longest_ring_bounds_an_exchange():
    assert TORUS.seconds("all_to_all", GB, (4, 16)) == pytest.approx(16 / 8 / 100)


def test_latency_grows_with_the_hops_of_a_torus_alone():
    assert SWITCH.start((8,)) == 1e-5
    assert TORUS.start((16, 8)) == pytest.approx(5e-6 + (8 + 4) * 1e-6)
    assert TORUS.start((3,)) == pytest.approx(5e-6 + 2e-6)
