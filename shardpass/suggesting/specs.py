"""Shardings as JAX's users write them: ``P('data', None)``. Only whole axes of the mesh have names there."""

from __future__ import annotations

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh


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
    entries = []
    for axes in dims:
        names = [repr(ref.name) for ref in mesh.refs(axes)]
        entries.append("None" if not names else names[0] if len(names) == 1 else f"({', '.join(names)})")
    return f"P({', '.join(entries)})" if any(dims) else "P()"
