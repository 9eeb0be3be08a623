"""Format shardings as JAX does: ``P('data', None)``; a part of an axis is ``'data:(1)2'``."""

from __future__ import annotations

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.sharding import Sharding


def spec(dims: DimAxes, mesh: PrimeMesh) -> str:
    """Format ``dims`` as the text of a ``PartitionSpec``, ``P('data', None)``, without unsplit dimensions at
    the end.
    """
    length = max((place + 1 for place, axes in enumerate(dims) if axes), default=0)
    return f"P({', '.join(_entry(mesh, axes) for axes in dims[:length])})"


def spec_of(sharding: Sharding, rank: int, mesh: PrimeMesh) -> str:
    """Format a sharding of an array of ``rank`` by the axes of ``mesh``, or as XLA prints it if the mesh cannot."""
    dims = mesh.dims(sharding, rank)
    return str(sharding) if dims is None else spec(dims, mesh)


def axes_of(dims: DimAxes, mesh: PrimeMesh) -> tuple[tuple[str, ...], ...]:
    """Return the names of the axes that split each dimension; a part of an axis is ``data:(1)2``."""
    return tuple(tuple(ref.bare for ref in mesh.refs(axes)) for axes in dims)


def axes_text(mesh: PrimeMesh, axes: Axes) -> str:
    """Format axes: ``'data'``, or ``'data' and 'model'``."""
    names = [repr(ref.name + ref.part) for ref in mesh.refs(axes)]
    return " and ".join(names) if len(names) < 3 else ", ".join(names)


def _entry(mesh: PrimeMesh, axes: Axes) -> str:
    names = [repr(ref.name + ref.part) for ref in mesh.refs(axes)]
    return "None" if not names else names[0] if len(names) == 1 else f"({', '.join(names)})"
