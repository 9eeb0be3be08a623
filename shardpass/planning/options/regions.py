"""The borders of regions that are manual over some axes of the mesh: which split of an array passes them.

Outside, a dimension is split over manual axes first and over free ones after; inside, the region's array is one manual
part, and its split is over free axes alone. A free split passes where it divides the part: otherwise each part would be
padded by itself, but the whole only at its end, so the free axes stay behind. Example on x=2 (manual), y=2: ``f32[12]``
over [x, y] is a region's ``f32[6]`` over [y], tiles of 3; ``f32[10]`` is ``f32[5]``, which y does not divide: the part
passes whole.
"""

from __future__ import annotations

from shardpass.ops.splits.factors import DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh


def passing(inner: DimAxes | None, part: tuple[int, ...], whole: tuple[int, ...], mesh: PrimeMesh) -> DimAxes:
    """Return the part of the split ``inner`` that is the same on both sides of a region's border.

    ``part``: the size of each dimension inside; ``whole``: outside.
    """
    if inner is None:
        return ((),) * len(part)
    return tuple(
        axes if size == full or size % mesh.count(axes) == 0 else ()
        for axes, size, full in zip(inner, part, whole, strict=True)
    )


def with_manual(outer: DimAxes | None, mesh: PrimeMesh, inner: DimAxes | None) -> DimAxes:
    """Return the split of the whole array: the manual axes of ``outer`` on each dimension, then the axes of
    ``inner``.
    """
    if outer is None or inner is None:
        return outer or inner or ()
    return tuple((*(a for a in axes if a in mesh.manual), *own) for axes, own in zip(outer, inner, strict=True))
