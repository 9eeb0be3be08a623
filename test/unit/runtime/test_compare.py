"""Tolerances: what passes, what does not, and random inputs."""

import ml_dtypes
import numpy as np
import pytest

from shardpass.element_types import ELEMENT_TYPES
from shardpass.runtime.compare import compare
from shardpass.runtime.inputs import poison, random_inputs
from shardpass.runtime.partitioned_signature import Boundary
from shardpass.runtime.tiles import join, split
from shardpass.sharding import Sharding, parse_sharding

F, D, B, I = np.float32, np.float64, ml_dtypes.bfloat16, np.int64  # noqa: E741
CASES = [
    (F, [1.0, 100.0], [1.0009, 100.0], True),  # 9e-6 of the greatest
    (F, [1.0, 100.0], [1.0011, 100.0], False),
    (F, [0.0, 0.0], [9e-6, 0.0], True),
    (F, [0.0, 0.0], [2e-5, 0.0], False),
    (F, [np.nan, np.inf], [np.nan, np.inf], True),
    (F, [np.nan, 1.0], [1.0, 1.0], False),
    (F, [1.0, 1.0], [np.nan, 1.0], False),
    (F, [np.inf, 1.0], [-np.inf, 1.0], False),
    (D, [1.0], [1.0 + 1e-12], False),
    (B, [1.0], [1.03], True),
    (B, [1.0], [1.06], False),
    (I, [2**62, 1], [2**62, 1], True),
    (I, [2**62, 1], [2**62 + 1, 1], False),  # equal as floats
    (I, [-(2**63)], [2**63 - 1], False),  # whose difference overflows
    (np.bool_, [True], [False], False),
    (np.complex64, [1j], [1j + 2e-5], False),
    (F, [], [], True),
]


@pytest.mark.parametrize(("dtype", "wanted", "found", "passes"), CASES)
def test_tolerance(dtype, wanted, found, passes):
    (difference,) = compare([np.array(found, dtype)], [np.array(wanted, dtype)])
    assert difference.passed == passes
    assert str(difference)


def test_other_shape_or_type_fails():
    x = np.zeros((2, 3), F)
    assert not compare([x], [x.T])[0].passed
    assert not compare([x.astype(D)], [x])[0].passed


def test_differences_are_told_beside_the_greatest_element():
    equal, apart = compare([np.array([3, 5]), np.array([1.0, 98.0], F)], [np.array([3, 9]), np.array([1.0, 100.0], F)])
    assert str(equal) == "4 (must be equal)"
    assert str(apart) == "0.02 of the greatest element (2 of 100)"


@pytest.mark.parametrize("name", ["f32", "bf16", "f64", "complex<f32>", "complex<f64>"])
def test_random_floats_fill_the_range_on_both_sides_of_zero(name):
    row = next(row for row in ELEMENT_TYPES if row.mlir == name)
    (x,) = random_inputs([Boundary("argument 0", row, (4096,), Sharding.replicated())])
    wide = x.astype(np.complex128)
    for part in [wide.real, wide.imag] if "complex" in name else [wide.real]:
        finite = part[np.isfinite(part)]
        assert -1 <= finite.min() < -0.9
        assert 0.9 < finite.max() <= 1


NAMED = [row for row in ELEMENT_TYPES if row.dtype is not None]


@pytest.mark.parametrize("row", NAMED, ids=lambda row: row.mlir)
def test_random_inputs_of_every_type(row):
    boundary = Boundary("argument 0", row, (5, 4), Sharding.replicated())
    (x,), (again,), (other,) = (random_inputs([boundary], seed) for seed in (0, 0, 1))
    assert x.shape == (5, 4)
    assert x.dtype == row.dtype
    assert x.tobytes() == again.tobytes()
    assert x.tobytes() != other.tobytes()
    wide = x.astype(np.complex128)
    assert np.isfinite(wide).all()
    assert np.abs(wide).max() <= (7 if row.mlir.startswith(("i", "ui")) else 4)
    assert np.asarray(poison(boundary)).astype(row.dtype).shape == ()


def test_split_and_join_against_loops():
    """Tiles by the base offsets, one index at a time."""
    sharding = parse_sharding("{devices=[2,3]5,3,1,0,2,4}")
    boundary = Boundary("argument 0", NAMED[5], (3, 7), sharding)
    x = np.arange(21, dtype=boundary.dtype).reshape(3, 7)
    tiles = split(x, boundary, 6, fill=99)
    for device, (row, column) in enumerate(sharding.tile_offsets((3, 7))):
        for i in range(2):
            for j in range(3):
                inside = row + i < 3 and column + j < 7
                assert tiles[device][i, j] == (x[row + i, column + j] if inside else 99)
    np.testing.assert_array_equal(join(tiles, boundary), x)
