"""Price many reshards at once: from each of several splits of an array to each of several others.

A formula serves nearly all pairs. Planning each would take too long (121 pairs of a matrix on two axes; 24,000 of a
program of 34 ops on three); it is done for the pairs on which the formula may be too low, of the smallest programs.

A device has one tile and wants another; it receives what of the wanted tile it does not have. Along a dimension, let
the axes that both splits begin with be the common part. The wanted tile lies in that part on both sides; of it a device
has one part in as many as the rest of its own axes count, or all if there is no rest, or if the wanted split goes on
where its own ends. Over all dimensions these fractions are multiplied.

Example, ``f32[8,8]`` on d=4, from rows to columns over d: the wanted tile has 16 elements; along the rows a device has
a quarter of it, along the columns all: 12 elements are received, 48 bytes. A planner of redistributions receives at
least that. Where tiles change their owners, as along some dimension neither split begins with the other (from x to y),
some device has nothing of an even tile and receives all of it; a planner may receive more, and these are the pairs that
are planned.

Complexity: O(splits^2 x dimensions), in NumPy; a table is made once for each type and each pair of lists of splits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.prices import Prices
from shardpass.planning.solve.network import Costs
from shardpass.program.program import Array

MOST_TABLES = 1 << 11  # that are kept from program to program


@lru_cache(maxsize=8)
def _tables(clock: Clock, axes: tuple[Axes, ...]) -> dict[Any, Costs]:
    """Return the tables that depend on the formula alone, which programs share."""
    return {}


class Distances:
    """Tables of seconds by ``clock``, for splits over ``axes`` as wholes.

    ``prices``: plans the pairs on which the formula may be too low, as long as there are no more than ``most`` in all.
    """

    def __init__(
        self, clock: Clock, axes: Sequence[Axes], prices: Prices | None = None, most: float = math.inf
    ) -> None:
        self.clock, self.axes, self.prices, self.left = clock, axes, prices, most
        self._known = {} if prices is not None else _tables(clock, tuple(axes))
        if len(self._known) > MOST_TABLES:
            self._known.clear()
        self._kept: dict[tuple[int, Axes, Axes, PrimeMesh], float] = {}

    def of(self, array: Array, mesh: PrimeMesh, sources: Sequence[DimAxes], targets: Sequence[DimAxes]) -> Costs:
        """Return the seconds of one reshard from each of ``sources`` to each of ``targets``, as [sources, targets]."""
        key = (array, mesh, tuple(sources), tuple(targets))
        costs = self._known.get(key)
        if costs is None:
            costs = self._known[key] = self._priced(self._received(*key), *key[1:])
            costs.flags.writeable = False  # others will see it
        return costs

    def _received(self, array: Array, mesh: PrimeMesh, sources: Sequence[DimAxes], targets: Sequence[DimAxes]) -> Costs:
        """Return the bytes that a device receives in each reshard, as [sources, targets]."""
        kept = np.ones((len(sources), len(targets)))
        elements = np.ones(len(targets))
        for dim, size in enumerate(array.shape):
            from_axes, row = _distinct([dims[dim] for dims in sources])
            to_axes, column = _distinct([dims[dim] for dims in targets])
            table = [[self._fraction(size, one, other, mesh) for other in to_axes] for one in from_axes]
            kept *= np.array(table)[row[:, None], column[None, :]]
            elements *= np.array([-(-size // mesh.count(axes)) for axes in to_axes])[column]
        received: Costs = (1 - kept) * elements[None, :] * (array.element.bits / 8)
        if self.prices is not None:
            self._plan(received, array, mesh, sources, targets)
        return received

    def _plan(
        self, received: Costs, array: Array, mesh: PrimeMesh, sources: Sequence[DimAxes], targets: Sequence[DimAxes]
    ) -> None:
        """Replace the bytes of the pairs whose tiles change owners by planned ones, unless there are too many
        such pairs.
        """
        assert self.prices is not None
        ends = enumerate(sources), enumerate(targets)
        pairs = [(one, other) for one, other in itertools.product(*ends) if _diverge(one[1], other[1])]
        if len(pairs) > self.left:
            return
        self.left -= len(pairs)
        for (row, source), (column, target) in pairs:
            received[row, column] = self.prices.move(array, mesh.sharding(source), mesh.sharding(target), mesh)

    def _fraction(self, size: int, source: Axes, target: Axes, mesh: PrimeMesh) -> float:
        """Return the fraction of the target tile that a device owns already, along one dimension."""
        key = (size, source, target, mesh)
        fraction = self._kept.get(key)
        if fraction is None:
            common = 0
            while common < min(len(source), len(target)) and source[common] == target[common]:
                common += 1
            fraction = self._kept[key] = 1 / mesh.count(source[common:])
            even = size % mesh.count(source) == 0 == size % mesh.count(target)
            if even and common < min(len(source), len(target)):
                fraction = self._kept[key] = 0.0
        return fraction

    def _priced(
        self, received: Costs, mesh: PrimeMesh, sources: Sequence[DimAxes], targets: Sequence[DimAxes]
    ) -> Costs:
        """Convert bytes into seconds: each reshard is one collective over the slowest of the axes that change."""
        price = np.zeros_like(received)
        for axes in self.axes:
            latency, each = self.clock.line(axes, mesh)
            at, to = (np.array([_place(dims, axes) for dims in side]) for side in (sources, targets))
            moved = at[:, None] != to[None, :]
            price = np.maximum(price, np.where(moved & (received > 0), latency + each * received, 0.0))
        return price


def _diverge(source: DimAxes, target: DimAxes) -> bool:
    """Return whether, along some dimension, neither split is a prefix of the other, so that tiles change owners."""
    for own, other in zip(source, target, strict=True):
        common = min(len(own), len(other))
        if own[:common] != other[:common]:
            return True
    return False


def _distinct(axes: Sequence[Axes]) -> tuple[list[Axes], Costs]:
    """Return the distinct entries, and for each of ``axes`` the index of its entry."""
    places: dict[Axes, int] = {}
    rows = np.array([places.setdefault(one, len(places)) for one in axes])
    return list(places), rows


def _place(dims: DimAxes, axes: Axes) -> int:
    """Return a number for the dimension that ``axes`` split and their position there; -1 if they split none."""
    for dim, own in enumerate(dims):
        if axes[0] in own:
            return dim * 64 + own.index(axes[0])
    return -1
