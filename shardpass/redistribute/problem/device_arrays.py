"""Index arithmetic on arrays with one row for each device, by physical device id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def frozen(array: IntArray) -> IntArray:
    """``array``, which several will share, made read-only."""
    array.flags.writeable = False
    return array


def grouped(key: IntArray, position: IntArray, size: int, replica: IntArray) -> IntArray:
    """Groups of devices with the same ``key`` and ``replica``, ordered by ``position``. int64 [groups, size]."""
    groups = np.lexsort((position, replica, key)).reshape(-1, size)
    return groups[np.argsort(groups.min(axis=1), kind="stable")]


def group_of(groups: IntArray) -> IntArray:
    """The group of each device. int64 [devices]."""
    out = np.empty(groups.size, np.int64)
    out[groups] = np.arange(len(groups))[:, None]
    return out


def moving_pairs(source_of: IntArray) -> IntArray:
    """The pairs (from, to) of rounds ``source_of`` [rounds, devices] that go from one device to another."""
    here = np.arange(source_of.shape[1])
    pairs: IntArray = np.stack([source_of, np.broadcast_to(here, source_of.shape)], axis=-1)
    moving: IntArray = pairs[source_of != here]
    return moving


def ravel(index: IntArray, counts: tuple[int, ...]) -> IntArray:
    """``numpy.ravel_multi_index`` that knows rank 0. int64 [devices]."""
    key = np.zeros(len(index), np.int64)
    for i, count in enumerate(counts):
        key = key * count + index[:, i]
    return key


def count_before(key: IntArray) -> IntArray:
    """For each place, how many places before it hold the same key."""
    order = np.argsort(key, kind="stable")
    run = key[order]
    first = np.concatenate(([True], run[1:] != run[:-1]))
    starts = np.flatnonzero(first)
    out = np.empty(len(key), np.int64)
    out[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    return out


def least_permutation(held: IntArray, wanted: IntArray) -> IntArray:
    """A permutation ``source_of`` with ``held[source_of[d]] == wanted[d]`` that moves as few as it can (lemma 5.1).

    Both name each tile equally often.
    """
    source_of = np.arange(len(held), dtype=np.int64)
    givers = np.flatnonzero(held != wanted)
    order_held = givers[np.argsort(held[givers], kind="stable")]
    order_wanted = givers[np.argsort(wanted[givers], kind="stable")]
    source_of[order_wanted] = order_held
    return source_of


def replaced(counts: tuple[int, ...], dim: int, value: int) -> tuple[int, ...]:
    return (*counts[:dim], value, *counts[dim + 1 :])
