"""Replica groups and indices along sub-axes, against the mesh written out as an array."""

import itertools

import numpy as np
import pytest

from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.sharding import Mesh

MESHES = [Mesh((("x", 4), ("y", 3))), Mesh((("x", 2), ("y", 2)), (3, 1, 0, 2))]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_groups_are_rows_of_the_mesh(mesh):
    primes = PrimeMesh(mesh)
    grid = np.asarray(mesh.devices).reshape(primes.sizes)
    numbers = range(len(primes.sizes))
    for axes in itertools.chain.from_iterable(itertools.permutations(numbers, n) for n in range(len(numbers) + 1)):
        others = [a for a in numbers if a not in axes]
        rows = grid.transpose(*others, *axes).reshape(-1, primes.count(axes))
        assert primes.groups(axes).tolist() == rows.tolist()
        assert all(primes.index(axes)[device] == place for row in rows for place, device in enumerate(row))


def test_what_is_shared_cannot_be_changed():
    primes = PrimeMesh(MESHES[0])
    for array in (primes.groups((0,)), primes.index((0,)), primes.coordinates):
        assert not array.flags.writeable
    assert primes.groups((0,)) is primes.groups((0,))
