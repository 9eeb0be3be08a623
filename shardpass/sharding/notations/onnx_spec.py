"""ONNX's ShardingSpec (IR version 11) as a value, and its text.

Source: ShardingSpecProto of onnx.proto, and the text form of ONNX's multi-device proposal. ``onnx_sharding`` gives a
spec its meaning, ``onnx_proto`` reads and fills the protobuf messages.

A spec lists one device for each shard, row-major over its split dimensions in the order in which they are listed. An
entry that is a key of the device map stands for the group of devices there, each of which holds that shard. A
dimension may be written as several sizes that were fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shardpass.sharding.quoting import c_quoted

QUOTE = '"'
Groups = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SimpleSharding:
    """A size, a number or a name, cut into ``num_shards`` blocks."""

    num_shards: int
    dim: int | str | None = None


@dataclass(frozen=True, slots=True)
class ShardedDim:
    """A dimension of the tensor with the sizes fused into it, major to minor."""

    axis: int
    parts: tuple[SimpleSharding, ...]


@dataclass(frozen=True, slots=True)
class ShardingSpec:
    """The fields of a ShardingSpecProto."""

    device: tuple[int, ...]
    groups: Groups = field(default_factory=lambda: MappingProxyType({}))
    dims: tuple[ShardedDim, ...] = ()
    tensor_name: str = ""

    def holders(self) -> list[tuple[int, ...]]:
        """Return the devices of each shard."""
        return [self.groups.get(entry, (entry,)) for entry in self.device]

    def __str__(self) -> str:
        """Format the spec in the notation of ONNX's documents."""
        out = ["{"]
        if self.tensor_name:
            out.append(f"  tensor_name = {c_quoted(self.tensor_name, QUOTE)}")
        out.append(f"  device = [{', '.join(map(str, self.device))}]")
        if self.groups:
            groups = ", ".join(f"{key}: [{', '.join(map(str, ids))}]" for key, ids in self.groups.items())
            out.append(f"  device_map = {{{groups}}}")
        out.append(f"  sharded_dim = [{' '.join(_dim_text(dim) for dim in self.dims)}]")
        return "\n".join([*out, "}"])


def _dim_text(dim: ShardedDim) -> str:
    parts = []
    for part in dim.parts:
        size = ""
        if part.dim is not None:
            named = isinstance(part.dim, str)
            size = f"dim_param = {c_quoted(str(part.dim), QUOTE)} " if named else f"dim_value = {part.dim} "
        parts.append(f"{{{size}num_shards = {part.num_shards}}}")
    return f"{{axis = {dim.axis} simple_sharding = [{', '.join(parts)}]}}"
