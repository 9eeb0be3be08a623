"""Ranges of two dimensions that are added up: all cells of a grid once, on each device; the witness counts by NumPy."""

import numpy as np
import pytest

from shardpass.proving.relations.combine import _on_a_grid, _tiled


def arrays(boxes):
    """Of one device: lows and highs [boxes, 1, 2], all of them there, and the box that bounds them."""
    lows, highs = (np.array([[box[k] for box in boxes]]).transpose(1, 0, 2) for k in (0, 1))
    return lows, highs, np.ones(lows.shape[:2], bool), lows.min(0), highs.max(0)


def counted(boxes):
    """Whether each cell of the bounding box lies in one box."""
    highs = np.max([high for _, high in boxes], axis=0)
    count = np.zeros(highs, int)
    for low, high in boxes:
        count[tuple(slice(*ends) for ends in zip(low, high, strict=True))] += 1
    lows = np.min([low for low, _ in boxes], axis=0)
    return bool((count[lows[0] :, lows[1] :] == 1).all())


GRID = [((i, 3 * j), (i + 1, 3 * j + 3)) for i in range(4) for j in range(2)]
BRICKS = [((0, 0), (1, 2)), ((0, 2), (1, 4)), ((1, 0), (2, 3)), ((1, 3), (2, 4))]
CASES = {
    "a grid": (GRID, True),
    "a cell twice and one missing": ([*GRID[:-1], GRID[0]], True),
    "bricks": (BRICKS, False),
    "bricks that overlap": ([((0, 0), (1, 2)), ((0, 2), (1, 4)), ((1, 0), (2, 3)), ((0, 3), (1, 4))], False),
}


@pytest.mark.parametrize("name", CASES)
def test_each_cell_once(name):
    boxes, on_grid = CASES[name]
    lows, highs, *_ = arrays(boxes)
    assert (_on_a_grid(lows[:, 0], highs[:, 0]) is not None) == on_grid
    assert _tiled(*arrays(boxes)) == counted(boxes)
