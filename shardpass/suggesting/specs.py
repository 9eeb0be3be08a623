"""Shardings as JAX's users write them: ``P('data', None)``. Only whole axes of the mesh have names there."""

from __future__ import annotations

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.places.specs import Spec, full_text


def sayable(dims: DimAxes, shape: tuple[int, ...], mesh: PrimeMesh) -> DimAxes:
    """Cuts ``dims`` to the leading axes of each dimension that are whole axes of the mesh and divide ``shape``."""
    return tuple(_sayable(axes, size, mesh) for axes, size in zip(dims, shape, strict=True))


def _sayable(axes: Axes, size: int, mesh: PrimeMesh) -> Axes:
    for length in range(len(axes), 0, -1):
        first = axes[:length]
        if size % mesh.count(first) == 0 and all(ref.size is None for ref in mesh.refs(first)):
            return first
    return ()


def spec_text(dims: DimAxes, mesh: PrimeMesh) -> str:
    """Returns the text of the ``PartitionSpec`` for ``dims``."""
    return full_text(names_of(dims, mesh))


def names_of(dims: DimAxes, mesh: PrimeMesh) -> Spec:
    """Returns the names of the axes that split each dimension."""
    return tuple(tuple(ref.name for ref in mesh.refs(axes)) for axes in dims)
