"""Equivalence relations over devices that hold the same value, stored as one label for each device.

Devices with one label agree: their values are equal in every run. Devices with different labels may or may not agree.
Relations are finer than sets of mesh axes ("varies over x"): groups of any devices, permutes, sub-axes and tables of
device numbers are all exact, and the axes are read off at the end.

Example, 4 devices, mesh x=2, y=2: an argument that x splits has the labels [0, 0, 1, 1]; a sum of it over x
[0, 0, 0, 0]; a sum over y [0, 0, 1, 1]; ``partition_id`` [0, 1, 2, 3].

Invariant: labels are numbered in the order of their first device, and equal relations are one object, so that
comparing two costs nothing. Cost: O(devices log devices) for a relation that was not made before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NOBODY = -1  # in a row of devices: no device stands here


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """An equivalence relation on devices: devices with equal ``labels`` (int64 [devices]) hold equal values.

    Only ``Agreements`` makes it.
    """

    labels: Ints

    def joins(self, one: int, other: int) -> bool:
        """Return whether devices ``one`` and ``other`` certainly hold the same value."""
        return bool(self.labels[one] == self.labels[other])


class Agreements:
    """Creates relations over ``devices`` devices. Equal relations are one object."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self._known: dict[bytes, Agreement] = {}
        self._both: dict[tuple[int, int], Agreement] = {}
        self.everywhere = self._interned(np.zeros(devices, dtype=np.int64))
        self.nowhere = self.of(np.arange(devices, dtype=np.int64))

    def of(self, rows: npt.NDArray[np.generic]) -> Agreement:
        """Return the relation of devices with equal ``rows``, [devices, ...], or [1, ...] if all devices agree."""
        if rows.shape[0] == 1:
            return self.everywhere
        flat = rows.reshape(rows.shape[0], -1)
        if flat.shape[1] == 0:
            return self.everywhere
        axis = None if flat.shape[1] == 1 else 0
        _, first, inverse = np.unique(flat, axis=axis, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return self._interned(rank[inverse.reshape(-1)])

    def _interned(self, labels: Ints) -> Agreement:
        labels.flags.writeable = False
        return self._known.setdefault(labels.tobytes(), Agreement(labels))

    def all_of(self, relations: Iterable[Agreement]) -> Agreement:
        """Return the intersection of ``relations``: devices agree that agree in every relation."""
        return reduce(self._pair, relations, self.everywhere)

    def _pair(self, one: Agreement, other: Agreement) -> Agreement:
        if one is other or other is self.everywhere or one is self.nowhere:
            return one
        if one is self.everywhere or other is self.nowhere:
            return other
        key = (id(one), id(other))
        if key not in self._both:  # relations live as long as this object, so their ids stay theirs
            self._both[key] = self.of(one.labels * self.devices + other.labels)
        return self._both[key]

    def chosen(self, which: Ints, among: list[Agreement]) -> Agreement:
        """Return the relation of values that device d reads from ``among[which[d]]``. ``which``: int [devices]."""
        labels = np.stack([agreement.labels for agreement in among])[which, np.arange(self.devices)]
        return self.of(which * self.devices + labels)

    def of_rows(self, agreement: Agreement, rows: Ints, *, placed: bool = False) -> Agreement:
        """Return the relation of devices that receive, in order, the values of a row of devices.

        ``rows``: [devices, n], row d the devices from which d receives, ``NOBODY`` where a row is shorter. Devices
        agree whose rows hold equal values place by place; with ``placed``, also at the same place of their own row.
        """
        padded = np.append(agreement.labels, NOBODY)  # NOBODY, -1, is the last place
        labels: Ints = padded[rows]
        if placed:
            own = np.argmax(rows == np.arange(self.devices)[:, None], axis=1)
            labels = np.column_stack([labels, own])
        return self.of(labels)
