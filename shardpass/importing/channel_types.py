"""Set the channel type of collectives between devices where it is missing.

``jax.export`` writes ``#stablehlo.channel_handle<handle = 1, type = 0>``, where 0 is no type at all; XLA reads it as 1,
device to device. The runtime requires 1 (SP507), to tell collectives over partitions from those over replicas.
"""

from __future__ import annotations

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.collectives import OPS
from shardpass.ir.walk import OpLists, named

CHANNEL = "channel_handle"
UNTYPED, DEVICE_TO_DEVICE = 0, 1


def type_channels(lists: OpLists) -> None:
    """Set the type of untyped channels, in place. O(collectives)."""
    for op in named(lists.blocks, OPS & lists.names):
        if CHANNEL in op.attributes:
            channel = hlo.ChannelHandle(op.attributes[CHANNEL])
            if channel.channel_type == UNTYPED:
                op.attributes[CHANNEL] = hlo.ChannelHandle.get(channel.handle, DEVICE_TO_DEVICE)
