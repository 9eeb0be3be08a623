"""The module's mesh cut into prime sub-axes.

Every axis of the common mesh is split into its prime factors, major to minor, and the parts are numbered. A
sharding over the mesh is then a ``DimAxes`` of small integers, and splitting an axis over two dimensions (a
reshape) or finding a common prefix needs no arithmetic on sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.sharding import AxisRef, Mesh, Sharding
from shardpass.sharding.axes import joined
from shardpass.sharding.primes import prime_factors

IntArray = NDArray[np.int64]


class PrimeMesh:
    """A ``Mesh`` whose axes are divided into numbered sub-axes of prime size, major to minor.

    ``manual``: sub-axes that the user's per-device code runs over (a partly manual region). Values of the region are
    split over the others; their shardings list the manual ones as XLA does, as a subgroup.
    """

    def __init__(self, mesh: Mesh, manual: Axes = ()) -> None:
        self.mesh = mesh
        self.manual = manual
        parts: list[AxisRef] = []
        for name, size in mesh.axes:
            pre = 1
            for p in prime_factors(size):
                parts.append(AxisRef(name, pre, p) if p != size else AxisRef(name))
                pre *= p
        self.parts = tuple(parts)
        self.sizes: tuple[int, ...] = tuple(mesh.ref_size(part) for part in parts)
        self._by_start = {(part.name, part.pre): i for i, part in enumerate(parts)}
        self._to: dict[DimAxes, Sharding] = {}
        self._from: dict[Sharding, DimAxes | None] = {}
        self._counts: dict[Axes, int] = {}
        self._index: dict[Axes, IntArray] = {}
        self._groups: dict[Axes, IntArray] = {}

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def borders(self) -> tuple[int, ...]:
        """Return the strides of the mesh's axes in device ids; () for a mesh in another order (``cost.groups``)."""
        return tuple(self.mesh.strides.values()) if self.mesh.is_iota else ()

    def count(self, axes: Axes) -> int:
        """Count the parts that ``axes`` cut a dimension into."""
        count = self._counts.get(axes)
        if count is None:
            count = self._counts[axes] = prod(self.sizes[a] for a in axes)
        return count

    def tile(self, shape: Sequence[int], dims: DimAxes) -> tuple[int, ...]:
        """Return the shape of a tile; a dimension that does not divide is rounded up (XLA's rule)."""
        return tuple([-(-n // self.count(axes)) if axes else n for n, axes in zip(shape, dims, strict=True)])

    def refs(self, axes: Axes) -> tuple[AxisRef, ...]:
        """Return ``axes`` as the fewest axis references: adjacent parts of one axis are merged."""
        return joined(self.mesh, (self.parts[a] for a in axes))

    def whole_axes(self, dims: DimAxes) -> tuple[tuple[str, ...], ...] | None:
        """Return the names of the axes of each dimension; None if a dimension is split over a part of an axis."""
        refs = [self.refs(axes) for axes in dims]
        if any(ref.size is not None for some in refs for ref in some):
            return None
        return tuple(tuple(ref.name for ref in some) for some in refs)

    def names(self, axes: Axes) -> str:
        """Format axes: ``x,y``; a sub-axis is ``x:(1)2``. ``quoting.listed`` parses the text."""
        return ",".join(ref.bare for ref in self.refs(axes))

    def sharding(self, dims: DimAxes) -> Sharding:
        """Return the ``Sharding`` for ``dims``; ``{replicated}`` where nothing is split or manual."""
        sharding = self._to.get(dims)
        if sharding is None:
            tiled = Sharding.tiled(self.mesh, tuple(self.refs(axes) for axes in dims), manual=self.refs(self.manual))
            sharding = self._to[dims] = Sharding.replicated() if tiled.is_replicated else tiled
        return sharding

    def partial(self, dims: DimAxes, over: Axes) -> Sharding:
        """Return the ``Sharding`` of a value that is split as ``dims`` and a partial sum over the axes ``over``."""
        return Sharding.tiled(self.mesh, tuple(self.refs(axes) for axes in dims), unreduced=self.refs(over))

    def over(self, sharding: Sharding) -> Axes:
        """Return the sub-axes over which a value under ``sharding`` is a partial sum."""
        on_mesh = sharding.on(self.mesh) if sharding.unreduced else None
        return (self.numbered(on_mesh.unreduced) or ()) if on_mesh is not None else ()

    def replicated(self, rank: int) -> Sharding:
        """Return the sharding of an array of ``rank`` dimensions, none of which is split."""
        return self.sharding(((),) * rank)

    def dims(self, sharding: Sharding, rank: int) -> DimAxes | None:
        """Return ``sharding`` in sub-axes, or None where this mesh cannot express it (other device order, maximal)."""
        if sharding.is_replicated:
            return ((),) * rank
        if sharding in self._from:
            return self._from[sharding]
        dims = self._find(sharding)
        self._from[sharding] = dims
        return dims

    def _find(self, sharding: Sharding) -> DimAxes | None:
        if not sharding.is_tiled or sharding.unreduced:
            return None
        on_mesh = sharding.on(self.mesh)
        if on_mesh is None:
            return None
        manual = self.numbered(on_mesh.manual)
        dims = tuple(self.numbered(refs) for refs in on_mesh.dims)
        if manual is None or set(manual) != set(self.manual) or None in dims:
            return None
        return tuple(axes for axes in dims if axes is not None)

    def numbered(self, refs: Sequence[AxisRef]) -> Axes | None:
        """Convert axis references to prime sub-axes, major to minor; None if a reference cuts a prime sub-axis."""
        axes: list[int] = []
        for ref in refs:
            start, stop = ref.pre, ref.pre * self.mesh.ref_size(ref)
            while start < stop:
                part = self._by_start.get((ref.name, start))
                if part is None:
                    return None
                axes.append(part)
                start *= self.sizes[part]
            if start != stop:
                return None
        return tuple(axes)

    @cached_property
    def coordinates(self) -> IntArray:
        """Return int64 [num_devices, number of sub-axes]: the coordinate of each device id on each sub-axis."""
        flat = np.asarray(self.mesh.devices).reshape(-1)
        grid = np.stack(np.unravel_index(np.arange(flat.size), self.sizes or (1,)), axis=-1)
        out = np.empty_like(grid)
        out[flat] = grid
        return _frozen(out[:, : len(self.sizes)])

    def index(self, axes: Axes) -> IntArray:
        """Return int64 [num_devices]: the number of the part, of ``count(axes)``, that each device has, cached."""
        out = self._index.get(axes)
        if out is None:
            out = np.zeros(self.num_devices, np.int64)
            for a in axes:
                out = out * self.sizes[a] + self.coordinates[:, a]
            self._index[axes] = _frozen(out)
        return out

    def groups(self, axes: Axes) -> IntArray:
        """Return int64 [groups, size]: replica groups over ``axes``, device ids in the order of their index."""
        out = self._groups.get(axes)
        if out is None:
            others = tuple(a for a in range(len(self.sizes)) if a not in axes)
            order = np.lexsort((self.index(axes), self.index(others)))
            out = self._groups[axes] = _frozen(order.reshape(-1, self.count(axes)))
        return out


def _frozen(array: IntArray) -> IntArray:
    """Make ``array``, which callers share, read-only."""
    array.flags.writeable = False
    return array


@lru_cache(maxsize=256)
def prime_mesh(mesh: Mesh, manual: Axes = ()) -> PrimeMesh:
    """Return the cached ``PrimeMesh`` of ``mesh`` with these manual sub-axes."""
    return PrimeMesh(mesh, tuple(sorted(manual)))
