"""Ways of the same price: the one that splits most, where the price lets it."""

from __future__ import annotations

import numpy as np

from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.options.equal_ways import most_split, parts
from shardpass.planning.options.ways import Way
from shardpass.planning.solve.network import Table
from shardpass.sharding import Mesh

MESH = prime_mesh(Mesh((("data", 2), ("model", 3))))
WHOLE, ROWS, BOTH = (
    Way(0.0, (), (), factors) for factors in ((), ((0, (0,)),), ((0, (0,)), (1, (1,))))
)  # factor 0 over data, factor 1 over model
VALUE, OP, OTHER = 0, 1, 2


def test_parts_are_those_of_all_factors() -> None:
    assert [parts(way, MESH) for way in (WHOLE, ROWS, BOTH)] == [1, 2, 6]


def test_of_equal_ways_the_one_that_splits_most_is_taken_and_a_cheaper_one_stays() -> None:
    ways = {OP: (WHOLE, ROWS, BOTH)}
    own = Table((OP,), np.zeros(3))
    reshard = Table((VALUE, OP), np.array([[0.0, 0.0, 5.0], [7.0, 7.0, 0.0]]))
    assert most_split((own, reshard), ways, MESH, {VALUE: 0, OP: 0}) == {VALUE: 0, OP: 1}
    assert most_split((own, reshard), ways, MESH, {VALUE: 1, OP: 2}) == {VALUE: 1, OP: 2}
    assert most_split((Table((OP,), np.array([0.0, 1.0, 1.0])),), ways, MESH, {OP: 0}) == {OP: 0}


def test_no_two_ops_change_where_one_alone_may() -> None:
    """Both split their work at no price alone, and together at one of 9: the price stays what it was."""
    both = Table((OP, OTHER), np.array([[0.0, 0.0], [0.0, 9.0]]))
    values = most_split((both,), {OP: (WHOLE, ROWS), OTHER: (WHOLE, ROWS)}, MESH, {OP: 0, OTHER: 0})
    assert both.costs[values[OP], values[OTHER]] == 0.0
    assert sorted((values[OP], values[OTHER])) == [0, 1]
