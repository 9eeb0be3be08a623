"""What NumPy makes of a device program, held to plain slices of the whole array."""

import numpy as np
import pytest

from shardpass.redistribute.program import ops
from tools.prove.numpy_programs import evaluate

ROWS = 3  # of a tile, of which four devices have one each
WHOLE = np.arange(1, 25).reshape(12, 2)
TILES = [WHOLE[ROWS * device :][:ROWS] for device in range(4)]
LEFT, RIGHT = np.array([-1, 0, 1, 2]), np.array([1, 2, 3, -1])


def slide(halo, before, size, starts, slack=0):
    source_of = LEFT if before else RIGHT
    op = ops.Slide(0, size, halo, before, slack, source_of, np.array(starts), np.zeros(4, np.int64))
    return evaluate((op,), TILES)


@pytest.mark.parametrize("halo", [1, 2, 3])
def test_the_nearest_rows_of_the_tile_before_come_first(halo):
    empty = np.zeros((ROWS, 2), int)
    padded = np.concatenate([empty, WHOLE])
    for device, found in enumerate(slide(halo, True, halo + ROWS, [0] * 4)):
        end = ROWS * (device + 2)
        np.testing.assert_array_equal(found, padded[end - ROWS - halo : end])


@pytest.mark.parametrize("halo", [1, 2, 3])
def test_the_nearest_rows_of_the_tile_behind_come_last(halo):
    padded = np.concatenate([WHOLE, np.zeros((ROWS, 2), int)])
    for device, found in enumerate(slide(halo, False, halo + ROWS, [0] * 4)):
        np.testing.assert_array_equal(found, padded[ROWS * device :][: halo + ROWS])


def test_each_device_takes_its_rows_and_zeros_behind_the_end():
    """Rows 0 to 3, 1 to 4, 2 to 5 and 3 to 6 of a tile with 2 rows of the next and 2 of zeros."""
    for device, found in enumerate(slide(2, False, 4, range(4), slack=2)):
        rows = np.concatenate([TILES[device], TILES[device + 1][:2] if device < 3 else np.zeros((2, 2), int)])
        np.testing.assert_array_equal(found, np.concatenate([rows, np.zeros((2, 2), int)])[device : device + 4])


@pytest.mark.parametrize("before", [True, False])
def test_without_a_halo_a_tile_moves_alone(before):
    for device, found in enumerate(slide(0, before, 2, [1, 0, 1, 0])):
        start = (1, 0, 1, 0)[device]
        np.testing.assert_array_equal(found, TILES[device][start : start + 2])
