"""Arrays [devices, dimensions] whose rows are often all equal.

Two forms keep them cheap where there are many devices. They lie in memory dimension by dimension, so that NumPy runs
along the devices and not along the few dimensions. And an array whose rows are all one, as the boxes of whole tiles,
may be one row that is spread over the devices (NumPy's broadcasting, which is not writable): what is computed
of such arrays alone is computed once, not once for each device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def distinct(array: Ints) -> Ints:
    """Return the one row of a broadcast array, or all of its rows."""
    return array[:1] if array.strides[0] == 0 and len(array) else array


def spread(row: Any, devices: int) -> Ints:
    """Broadcast one row, [dimensions], to all devices, in a fifth of the time of ``np.broadcast_to``."""
    row = np.ascontiguousarray(row, np.int64)
    result = np.ndarray((devices, len(row)), np.int64, row, 0, (0, row.itemsize))
    result.flags.writeable = False
    return result


def for_all(positions: Any, devices: int) -> Ints:
    """Convert positions [dimensions] or [devices, dimensions] to the latter."""
    array = np.asarray(positions, np.int64)
    return spread(array, devices) if array.ndim == 1 else array


def of_each(function: Callable[..., Any], *arrays: Ints) -> Ints:
    """Apply ``function`` to arrays whose rows do not depend on each other."""
    one = [distinct(array) for array in arrays]
    devices = len(arrays[0])
    if devices > 1 and all(len(array) == 1 for array in one):
        return spread(function(*one)[0], devices)
    return np.asarray(function(*arrays))


def by_dimension(array: Ints) -> Ints:
    """Return the same array in one of the two forms."""
    return array if array.flags.f_contiguous or array.strides[0] == 0 else np.asfortranarray(array)


def one_row_if_equal(array: Ints) -> Ints:
    """Return the same array, broadcast from one row where all of its rows are equal."""
    if len(array) > 1 and array.strides[0] != 0 and not (array != array[:1]).any():
        return spread(array[0].copy(), len(array))
    return array


def with_dimension(array: Ints, dim: int, value: int) -> Ints:
    """Return ``array`` with ``value`` in all rows of dimension ``dim``."""
    row = distinct(array)
    result = np.array(row, np.int64, order="F")
    result[:, dim] = value
    return result if len(row) == len(array) else spread(result[0], len(array))


def rows_at(array: Ints, rows: Ints) -> Ints:
    """Return ``array[rows]``."""
    if len(distinct(array)) < len(array):
        return spread(array[0], len(rows))
    return array.T.take(rows, axis=1).T


def live(array: Ints, on: Bools) -> Ints:
    """Return ``array[on]``."""
    return array if on.all() else array[on]


def image(a: Ints, positions: Ints) -> Ints:
    """Multiply ``a`` by each of ``positions``, [dimensions] or [devices, dimensions]; one row where all are equal.

    NumPy's products of integers take long, and most positions are 0.
    """
    if positions.ndim == 1:
        return np.asarray(a @ positions)
    rows = distinct(positions)
    if len(rows) == 1:
        return np.asarray(rows @ a.T)
    result = np.zeros((len(rows), len(a)), np.int64, "F")
    for dim in np.flatnonzero(rows.any(0)):
        for row in np.flatnonzero(a[:, dim]):
            result[:, row] += a[row, dim] * rows[:, dim]
    return result
