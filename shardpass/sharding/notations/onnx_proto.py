"""ONNX's ShardingSpec as protobuf, both ways.

The protobuf classes are not imported: every message with the fields of ``onnx.ShardingSpecProto`` is read, and
``to_proto`` fills the message that it is given.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding


def from_proto(proto: Any) -> ShardingSpec:
    """Read an ``onnx.ShardingSpecProto``, or any object with the same fields."""
    dims = []
    for dim in proto.sharded_dim:
        parts = []
        for part in dim.simple_sharding:
            which = part.WhichOneof("dim") if hasattr(part, "WhichOneof") else None
            size = getattr(part, which) if which else None
            parts.append(SimpleSharding(int(part.num_shards), size))
        dims.append(ShardedDim(int(dim.axis), tuple(parts)))
    groups = {int(entry.key): tuple(map(int, entry.value)) for entry in proto.index_to_device_group_map}
    return ShardingSpec(tuple(map(int, proto.device)), MappingProxyType(groups), tuple(dims), str(proto.tensor_name))


def to_proto(spec: ShardingSpec, proto: Any) -> Any:
    """Fill ``proto``, an empty ``onnx.ShardingSpecProto``, and return it."""
    if spec.tensor_name:
        proto.tensor_name = spec.tensor_name
    proto.device.extend(spec.device)
    for key, group in spec.groups.items():
        entry = proto.index_to_device_group_map.add()
        entry.key = key
        entry.value.extend(group)
    for dim in spec.dims:
        made = proto.sharded_dim.add()
        made.axis = dim.axis
        for part in dim.parts:
            simple = made.simple_sharding.add()
            simple.num_shards = part.num_shards
            if isinstance(part.dim, str):
                simple.dim_param = part.dim
            elif part.dim is not None:
                simple.dim_value = part.dim
    return proto
