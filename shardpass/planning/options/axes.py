"""Choose the axes for splits: the axes that the user named, or their sub-axes."""

from __future__ import annotations

from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh


def whole_axes(mesh: PrimeMesh) -> tuple[Axes, ...]:
    """Return the axes that the user named, each as its sub-axes, without the axes of manual regions."""
    named: dict[str, Axes] = {}
    for number, part in enumerate(mesh.parts):
        named[part.name] = (*named.get(part.name, ()), number)
    return tuple(named.values())


def sub_axes(mesh: PrimeMesh) -> tuple[Axes, ...]:
    """Return the axes that the user named, and the prime sub-axes of axes that have several."""
    whole = whole_axes(mesh)
    return whole + tuple((part,) for axes in whole if len(axes) > 1 for part in axes)
