"""The parts of several devices side by side: an all_gather along a new first dimension."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import dense_i64, retype, shape_of
from shardpass.ops.local import Local
from shardpass.ops.splits.factors import Axes, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh


def stacked(local: Local, value: Any, axes: Axes, cause: str) -> Any:
    """[parts, *shape of value]: the values of all parts along ``axes``, in the order of their index."""
    shape = shape_of(value)
    row = hlo.reshape(retype(value.type, (1, *shape)), value)
    i64 = ir.IntegerType.get_signless(64)
    channel = f"#stablehlo.channel_handle<handle = {next(local.channels)}, type = 1>"
    op = ir.Operation.create(
        "stablehlo.all_gather",
        results=[retype(value.type, (local.mesh.count(axes), *shape))],
        operands=[row],
        attributes={
            "all_gather_dim": ir.IntegerAttr.get(i64, 0),
            "replica_groups": dense_i64(local.mesh.groups(axes)),
            "channel_handle": ir.Attribute.parse(channel),
            "use_global_device_ids": ir.UnitAttr.get(),
        },
    )
    local.explain(op, axes, cause)
    return op.results[0]


def result_tile(rule: Rule, index: int, shape: tuple[int, ...], factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    """Number of elements of result ``index`` on one device, for rules whose dimensions are whole factors."""
    counts = (
        prod(mesh.count(factors.get(f, ())) for f in dim if rule.factors[f].size == size)
        for dim, size in zip(rule.results[index], shape, strict=True)
    )
    return prod(-(-size // count) for size, count in zip(shape, counts, strict=True))


def item_bytes(kind: Any) -> int:
    """Bytes of an element of a tensor type; at least one."""
    element = kind.element_type
    if isinstance(element, ir.ComplexType):
        return 2 * int(element.element_type.width) // 8
    return max(8, int(getattr(element, "width", 32))) // 8
