"""Build all_gather at the current insertion point and location."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.reductions import Groups
from shardpass.ir.tensors import dense_i64, retype


def all_gather(value: Any, dim: int, groups: Groups, channel: int) -> Any:
    """Build an all_gather, which concatenates the tiles of each group along ``dim``, in the group's order."""
    shape = list(value.type.shape)
    shape[dim] *= len(groups[0])
    made = hlo.AllGatherOp(
        [retype(value.type, shape)],
        [value],
        dim,
        dense_i64(groups),
        channel_handle=hlo.ChannelHandle.get(channel, 1),
        use_global_device_ids=True,
    )
    return made.operation
