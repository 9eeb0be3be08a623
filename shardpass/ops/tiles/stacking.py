"""Stack the parts of several devices: an all_gather along a new first dimension."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.cost.collective import ALL_GATHER, bytes_received
from shardpass.element_types import ElementType
from shardpass.ir.gathers import all_gather
from shardpass.ir.tensors import retype, shape_of
from shardpass.ops.model import Collective, Shape, Site
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh


def stacking(part: Shape, element: ElementType, axes: Axes, mesh: PrimeMesh, cause: str) -> Collective:
    """Plan the all_gather that ``stacked`` builds. ``part``: the shape of a device's value."""
    parts = mesh.count(axes)
    return Collective(ALL_GATHER, axes, bytes_received(ALL_GATHER, element.bytes(parts * prod(part)), parts), cause)


def stacked(site: Site, value: Any, planned: Collective) -> Any:
    """Build [parts, *shape of value]: the values of all parts along the axes of ``planned``, in index order."""
    shape, mesh = shape_of(value), site.split.mesh
    row = hlo.reshape(retype(value.type, (1, *shape)), value)
    op = all_gather(row, 0, mesh.groups(planned.axes), next(site.channels))
    site.explain(op, planned.axes, planned.cause)
    return op.results[0]
