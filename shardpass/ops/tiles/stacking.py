"""The parts of several devices side by side: an all_gather along a new first dimension."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import ElementType
from shardpass.ir.tensors import dense_i64, retype, shape_of
from shardpass.ops.model import Collective, Shape, Site
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh


def stacking(part: Shape, element: ElementType, axes: Axes, mesh: PrimeMesh, cause: str) -> Collective:
    """The all_gather of ``stacked``: ``part`` is the shape of one device's part."""
    parts = mesh.count(axes)
    return Collective("all_gather", axes, element.bytes(parts * prod(part)) * (parts - 1) // parts, cause)


def stacked(site: Site, value: Any, planned: Collective) -> Any:
    """[parts, *shape of value]: the values of all parts along the axes of ``planned``, in the order of their index."""
    shape, mesh = shape_of(value), site.split.mesh
    row = hlo.reshape(retype(value.type, (1, *shape)), value)
    i64 = ir.IntegerType.get_signless(64)
    channel = f"#stablehlo.channel_handle<handle = {next(site.channels)}, type = 1>"
    op = ir.Operation.create(
        "stablehlo.all_gather",
        results=[retype(value.type, (mesh.count(planned.axes), *shape))],
        operands=[row],
        attributes={
            "all_gather_dim": ir.IntegerAttr.get(i64, 0),
            "replica_groups": dense_i64(mesh.groups(planned.axes)),
            "channel_handle": ir.Attribute.parse(channel),
            "use_global_device_ids": ir.UnitAttr.get(),
        },
    )
    site.explain(op, planned.axes, planned.cause)
    return op.results[0]
