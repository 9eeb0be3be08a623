"""What a split says of the arrays of one device, beside arithmetic."""

from shardpass.ops.model import Split
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.sharding import Mesh

MESH = PrimeMesh(Mesh((("x", 4), ("y", 3))))


def split(shapes, dims, results, result_dims):
    return Split(MESH, (), tuple(dims), tuple(result_dims), tuple(shapes), tuple(results))


def test_the_largest_tiles():
    """x is prime sub-axes 0 and 1, y is 2: rows of 8 over x are 2, of 7 columns over y are 3."""
    x, y = ((0, 1), ()), ((), (2,))
    found = split([(8, 7), (8, 2), (5, 7)], [x, x, y], [(8, 7), (8, 3)], [((0, 1), (2,)), x])
    assert found.operand_tile(0) == (2, 7)
    assert found.operand_tile(2) == (5, 3)
    assert found.result_tiles == ((2, 3), (2, 3))
    assert found.largest_result == 6
    assert found.largest_tile == 15
    # beside operand 0, whose place the first result takes
    assert found.largest_beside_first == 15
    small = split([(8, 7), (2, 7)], [x, y], [(8, 7), (8, 3)], [x, x])
    assert small.largest_beside_first == 6
    assert split([(8, 7)], [x], [(8, 7)], [x]).largest_beside_first == 0
