"""Index arithmetic on arrays with one row for each device, by physical device id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def frozen(array: IntArray) -> IntArray:
    """Make ``array``, which callers share, read-only."""
    array.flags.writeable = False
    return array


def names_each_once(groups: IntArray, devices: int) -> bool:
    """Return whether ``groups`` names each of the devices 0, 1, ... exactly once."""
    if groups.size != devices or groups.min(initial=0) < 0 or groups.max(initial=0) >= devices:
        return False
    named = np.zeros(devices, bool)
    named[groups] = True
    return bool(named.all())


def grouped(key: IntArray, position: IntArray, size: int, replica: IntArray) -> IntArray:
    """Group devices with the same ``key`` and ``replica``, ordered by ``position``. int64 [groups, size]."""
    groups = np.lexsort((position, replica, key)).reshape(-1, size)
    return groups[np.argsort(groups.min(axis=1), kind="stable")]


def group_of(groups: IntArray) -> IntArray:
    """Return the group of each device. int64 [devices]."""
    out = np.empty(groups.size, np.int64)
    out[groups] = np.arange(len(groups))[:, None]
    return out


def moving_pairs(source_of: IntArray) -> IntArray:
    """List the pairs (from, to) in ``source_of`` [rounds, devices] that join two devices. int64 [pairs, 2]."""
    rounds, receivers = np.nonzero(source_of != np.arange(source_of.shape[1]))
    return np.stack([source_of[rounds, receivers], receivers], axis=1)


def ravel(index: IntArray, counts: tuple[int, ...]) -> IntArray:
    """Compute ``numpy.ravel_multi_index``, also for rank 0. int64 [devices]."""
    key = np.zeros(len(index), np.int64)
    for i, count in enumerate(counts):
        key = key * count + index[:, i]
    return key


def count_before(key: IntArray) -> IntArray:
    """Count for each device the devices with a smaller id and the same key. int64 [devices]."""
    order = np.argsort(key, kind="stable")
    run = key[order]
    first = np.concatenate(([True], run[1:] != run[:-1]))
    starts = np.flatnonzero(first)
    out = np.empty(len(key), np.int64)
    out[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    return out


def least_permutation(current: IntArray, wanted: IntArray) -> IntArray:
    """Return ``source_of`` with ``current[source_of[d]] == wanted[d]`` that moves the fewest tiles (lemma 5.1).

    ``current`` and ``wanted`` give each device the number of a tile, and name each tile equally often.
    """
    source_of = np.arange(len(current), dtype=np.int64)
    givers = np.flatnonzero(current != wanted)
    order_current = givers[np.argsort(current[givers], kind="stable")]
    order_wanted = givers[np.argsort(wanted[givers], kind="stable")]
    source_of[order_wanted] = order_current
    return source_of


def replaced(counts: tuple[int, ...], dim: int, value: int) -> tuple[int, ...]:
    return (*counts[:dim], value, *counts[dim + 1 :])
