"""Build all_reduce and reduce_scatter at the current insertion point and location."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from numpy.typing import NDArray

from shardpass.ir.collectives import OPS
from shardpass.ir.tensors import dense_i64, operation, retype, walk_blocks

Groups = NDArray[np.int64] | Sequence[Sequence[int]]  # replica groups: device ids [groups, size]
WITH_CHANNELS = OPS | {"stablehlo.recv", "stablehlo.send"}


def channels(module: Any) -> Iterator[int]:
    """Yield channel numbers that no collective of ``module`` has."""
    used = 0
    for block in walk_blocks(module.operation):
        for op in map(operation, block.operations):
            if op.name in WITH_CHANNELS and "channel_handle" in op.attributes:
                used = max(used, hlo.ChannelHandle(op.attributes["channel_handle"]).handle)
    return count(used + 1)


def _reduction(name: str, value: Any, result_type: Any, groups: Groups, combiner: str, channel: int, extra: Any) -> Any:
    op = ir.Operation.create(
        f"stablehlo.{name}",
        results=[result_type],
        operands=[value],
        attributes={
            "replica_groups": dense_i64(groups),
            "channel_handle": hlo.ChannelHandle.get(channel, 1),
            "use_global_device_ids": ir.UnitAttr.get(),
            **extra,
        },
        regions=1,
    )
    write_reducer(op.regions[0], retype(value.type, ()), combiner)
    return op


def write_reducer(region: Any, scalar: Any, combiner: str) -> None:
    """Write a reducer into the empty ``region``: the op ``combiner`` of two values of the type ``scalar``."""
    block = region.blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        joined = ir.Operation.create(f"stablehlo.{combiner}", results=[scalar], operands=list(block.arguments)).results
        ir.Operation.create("stablehlo.return", operands=list(joined))


def all_reduce(value: Any, groups: Groups, combiner: str, channel: int) -> Any:
    """Build an all_reduce of ``value`` by ``combiner`` over each group of device ids."""
    return _reduction("all_reduce", value, value.type, groups, combiner, channel, {})


def reduce_scatter(value: Any, dim: int, groups: Groups, combiner: str, channel: int) -> Any:
    """Build a reduce_scatter along ``dim``, whose size the group divides; device i of a group gets part i."""
    shape = list(value.type.shape)
    shape[dim] //= len(groups[0])
    i64 = ir.IntegerType.get_signless(64)
    extra = {"scatter_dimension": ir.IntegerAttr.get(i64, dim)}
    return _reduction("reduce_scatter", value, retype(value.type, shape), groups, combiner, channel, extra)
