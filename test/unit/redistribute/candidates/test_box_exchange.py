"""The exact exchange: transfers cover every tile once, rounds are matchings, and there are no more than need be."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.candidates.box_exchange import box_transfers
from shardpass.redistribute.candidates.edge_colouring import colour_edges
from shardpass.redistribute.problem.boxes import Boxes


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60))
def test_colours_are_matchings_and_as_few_as_the_greatest_degree(edges):
    colours = colour_edges(edges)
    for side in (0, 1):
        seen = Counter((edge[side], colour) for edge, colour in zip(edges, colours, strict=True))
        assert all(count == 1 for count in seen.values())
    degrees = [Counter(edge[side] for edge in edges) for side in (0, 1)]
    assert max(colours, default=-1) + 1 <= max((n for d in degrees for n in d.values()), default=0)


@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 6), st.randoms())
def test_pieces_fill_each_target_once_from_somebody_who_has_them(n, first, second, rng):
    devices = first * second
    sides = []
    for count in (first, second):
        tile = -(-n // count)
        index = np.array([rng.randrange(count) if d >= count else d for d in range(devices)])[:, None]
        sides.append(Boxes.of((n,), (tile,), index * tile, np.ones(devices, bool)))
    source, target = sides
    found = box_transfers(source, target)
    for d in range(devices):
        covered = Counter(x for p in found if p.receiver == d for x in range(p.start[0], p.stop[0]))
        assert covered == Counter(range(int(target.start[d, 0]), int(target.stop[d, 0])))
    for p in found:
        assert source.start[p.sender, 0] <= p.start[0]
        assert p.stop[0] <= source.stop[p.sender, 0]


@pytest.mark.parametrize(("n", "rounds"), [(16, 1), (12, 2)])
def test_few_rounds_for_neighbours(n, rounds):
    """8 tiles shifted by a device order that is rotated: one round; 12 rows in 8 tiles of 2, and 2 of 6: two."""
    if n == 16:
        plan = plan_redistribution((n,), "i8", "{devices=[8]0,1,2,3,4,5,6,7}", "{devices=[8]7,0,1,2,3,4,5,6}")
        assert len(plan.steps) == rounds
    else:
        plan = plan_redistribution((13,), "i8", "{devices=[8]<=[8]}", "{devices=[2,4]<=[8] last_tile_dim_replicate}")
        assert plan.bytes_received <= 7 + 7


def test_the_sender_with_least_to_do_is_chosen():
    source = Boxes(np.zeros((4, 1), int), np.full((4, 1), 4), np.array([True, True, False, False]))
    target = Boxes(np.zeros((4, 1), int), np.full((4, 1), 4), np.ones(4, bool))
    sent = Counter(p.sender for p in box_transfers(source, target) if p.sender != p.receiver)
    assert sent == {0: 1, 1: 1}
