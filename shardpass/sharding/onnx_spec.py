"""ONNX's ShardingSpec (IR version 11): as text, as protobuf, and as a sharding.

A spec lists one device for each shard, row-major over its split dimensions in the order in which they are listed. An
entry that is a key of the device map stands for the group of devices there, each of which holds that shard. A
dimension may be said as several sizes that were fused; only the major one of them may be split if the shards are to be
blocks.

The protobuf classes are not imported: anything with their fields is read, and ``to_proto`` fills a message given to it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from lark import Lark, UnexpectedInput

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.algebra import from_tiles
from shardpass.sharding.errors import fault
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind
from shardpass.sharding.source import Node, pieces

Groups = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SimpleSharding:
    """A size, a number or a name, cut into ``num_shards`` blocks."""

    num_shards: int
    dim: int | str | None = None


@dataclass(frozen=True, slots=True)
class ShardedDim:
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
        """The devices that hold each shard."""
        return [self.groups.get(entry, (entry,)) for entry in self.device]

    def __str__(self) -> str:
        """The documents' text form."""
        out = ["{"]
        if self.tensor_name:
            out.append(f'  tensor_name = "{self.tensor_name}"')
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
            size = f'dim_param = "{part.dim}" ' if isinstance(part.dim, str) else f"dim_value = {part.dim} "
        parts.append(f"{{{size}num_shards = {part.num_shards}}}")
    return f"{{axis = {dim.axis} simple_sharding = [{', '.join(parts)}]}}"


# ------------------------------------------------------------------------------------- to and from shardings


def sharding_of_spec(spec: ShardingSpec, rank: int, num_devices: int | None = None) -> Sharding:
    """The sharding that ``spec`` says of a tensor of ``rank``, among ``num_devices`` (else among those it names).

    Raises:
        ShardingError: the spec contradicts itself, or says what a sharding cannot (unequal groups, a device with two
            shards, some of the devices only, fused dimensions whose shards are no blocks).
    """
    counts = [1] * rank
    order: list[int] = []
    for dim in spec.dims:
        axis = dim.axis + rank if dim.axis < 0 else dim.axis
        if not 0 <= axis < rank:
            raise table.ONNX_SPEC.error(message=f"axis {dim.axis} is not in [-{rank}, {rank - 1}]")
        if axis in order:
            raise table.ONNX_SPEC.error(message=f"axis {dim.axis} is split twice")
        order.append(axis)
        counts[axis] = _count(dim)
    shards = int(np.prod([counts[axis] for axis in order], dtype=np.int64))
    holders = spec.holders()
    if len(holders) != shards:
        raise table.ONNX_SPEC.error(
            message=f"the dimensions make {shards} shards but {len(holders)} devices are listed"
        )
    devices = [device for group in holders for device in group]
    n = len(devices) if num_devices is None else num_devices
    if len(devices) == 1 and n != 1:
        return Sharding.maximal(devices[0])
    _check_devices(spec, devices, n)
    index = np.zeros((n, rank), dtype=np.int64)
    places = np.unravel_index(np.arange(shards), [counts[axis] for axis in order]) if order else ()
    for shard, group in enumerate(holders):
        for axis, coordinate in zip(order, places, strict=True):
            index[list(group), axis] = coordinate[shard]
    if not any(count > 1 for count in counts):
        return Sharding.tiled(Mesh((("axis_0", n),)), [()] * rank)
    return from_tiles(index, counts)


def _count(dim: ShardedDim) -> int:
    for part in dim.parts:
        if part.num_shards < 1:
            raise table.ONNX_SPEC.error(message=f"axis {dim.axis} is cut into {part.num_shards} shards")
    if any(part.num_shards > 1 for part in dim.parts[1:]):
        what = f"axis {dim.axis}, which is fused of several sizes and split along a minor one"
        raise table.CANNOT_SAY.error(notation="a sharding", what=what)
    return dim.parts[0].num_shards if dim.parts else 1


def _check_devices(spec: ShardingSpec, devices: list[int], n: int) -> None:
    for key, group in spec.groups.items():
        if not group:
            raise table.ONNX_SPEC.error(message=f"the device group {key} is empty")
    wrong = next((d for d in devices if not 0 <= d < n), None)
    if wrong is not None:
        what = f"key {wrong} is not in the device map" if wrong < 0 else f"device {wrong} is not one of {n}"
        raise table.ONNX_SPEC.error(message=what)
    twice = next((d for d in devices if devices.count(d) > 1), None)
    if twice is not None:
        raise table.CANNOT_SAY.error(notation="a sharding", what=f"two shards on device {twice}")
    if len(devices) < n:
        raise table.CANNOT_SAY.error(notation="a sharding", what=f"a split over only {len(devices)} of {n} devices")


def spec_of_sharding(
    sharding: Sharding, rank: int, num_devices: int | None = None, tensor_name: str = ""
) -> ShardingSpec:
    """The spec that says ``sharding`` of a tensor of ``rank``.

    Raises:
        ShardingError: ONNX has no word for it: partial sums, manual axes, or ``{replicated}`` over unknown devices.
    """
    if sharding.kind is Kind.MAXIMAL and sharding.device is not None:
        return ShardingSpec((sharding.device,), tensor_name=tensor_name)
    for what, found in (
        ("partial sums", sharding.unreduced or sharding.kind is Kind.UNREDUCED),
        ("manual axes", sharding.manual or sharding.maximal_axes or sharding.kind is Kind.MANUAL),
        ("{unknown}", sharding.kind is Kind.UNKNOWN),
    ):
        if found:
            raise table.CANNOT_SAY.error(notation="an ONNX ShardingSpec", what=what)
    n = sharding.num_devices or num_devices
    if n is None:
        raise table.CANNOT_SAY.error(notation="an ONNX ShardingSpec", what="copies on devices without names")
    counts = sharding.tile_counts(rank)
    if sharding.is_replicated:
        grid = np.arange(n, dtype=np.int64).reshape(1, n)
    else:
        grid = sharding.tile_devices().reshape(int(np.prod(counts)), -1)
    dims = tuple(ShardedDim(k, (SimpleSharding(c),)) for k, c in enumerate(counts) if c > 1)
    if grid.shape[1] == 1:
        return ShardingSpec(tuple(grid[:, 0].tolist()), dims=dims, tensor_name=tensor_name)
    groups = {-1 - k: tuple(row) for k, row in enumerate(grid.tolist())}
    return ShardingSpec(tuple(groups), MappingProxyType(groups), dims, tensor_name)


# ------------------------------------------------------------------------------------- protobuf


def from_proto(proto: Any) -> ShardingSpec:
    """The spec of an ``onnx.ShardingSpecProto``, or of anything with its fields."""
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
    """Fills ``proto``, an empty ``onnx.ShardingSpecProto``, and returns it."""
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


# ------------------------------------------------------------------------------------- text


def parse_onnx_spec(text: str) -> ShardingSpec:
    """The spec of the documents' text form, or of protobuf's.

    Raises:
        ShardingParseError: it is neither, or a field is unknown or of the wrong kind.
    """
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        at = getattr(error, "pos_in_stream", None)
        at = len(text.rstrip()) if at is None or at < 0 or at > len(text) else at
        found = repr(text[at : at + 1]) if at < len(text) else "the end of the text"
        expected = "a field such as device = [0, 1], or its value"
        raise fault(table.SYNTAX, text, at, expected=expected, found=found, hint="") from None
    return _Reader(text).spec(tree.children)


@functools.cache
def _grammar() -> Lark:
    return Lark.open_from_package("shardpass.sharding", "onnx_spec.lark", parser="earley", maybe_placeholders=False)


class _Reader:
    """Fields to values; a repeated field adds to its list."""

    def __init__(self, text: str) -> None:
        self.text = text

    def spec(self, fields: Sequence[Node]) -> ShardingSpec:
        device: list[int] = []
        groups: dict[int, tuple[int, ...]] = {}
        dims: list[ShardedDim] = []
        name = ""
        for key, value in self.named(
            fields, ("device", "device_map", "index_to_device_group_map", "sharded_dim", "tensor_name")
        ):
            if key == "device":
                device += [self.integer(v) for v in self.items(value)]
            elif key == "sharded_dim":
                dims += [self.dim(v) for v in self.items(value)]
            elif key == "tensor_name":
                name = self.string(value)
            else:
                groups.update(self.groups(value))
        return ShardingSpec(tuple(device), MappingProxyType(groups), tuple(dims), name)

    def named(self, fields: Sequence[Node], known: tuple[str, ...]) -> list[tuple[str, Node]]:
        out = []
        for one in fields:
            key, value = one.children
            if str(key) not in known:
                hint = f"fields: {', '.join(known)}"
                expected = "a field of the spec"
                raise fault(
                    table.SYNTAX, self.text, key.start_pos, len(key), expected=expected, found=repr(str(key)), hint=hint
                )
            out.append((str(key), value))
        return out

    def items(self, value: Node) -> list[Node]:
        return list(value.children) if value.data == "list" else [value]

    def wrong(self, value: Node, expected: str) -> Exception:
        from shardpass.sharding.source import first_offset

        at = first_offset(value)
        return fault(table.SYNTAX, self.text, at, expected=expected, found=repr(self.text[at : at + 1]), hint="")

    def integer(self, value: Node) -> int:
        if value.data != "integer":
            raise self.wrong(value, "an integer")
        token = value.children[0]
        if len(token) > 18:
            raise fault(table.INTEGER_RANGE, self.text, token.start_pos, len(token), value=str(token))
        return int(token)

    def string(self, value: Node) -> str:
        if value.data != "string":
            raise self.wrong(value, "a string")
        return str(value.children[0])[1:-1]

    def message(self, value: Node) -> Sequence[Node]:
        if value.data != "message":
            raise self.wrong(value, "a message {..}")
        children: Sequence[Node] = value.children
        return children

    def groups(self, value: Node) -> dict[int, tuple[int, ...]]:
        if value.data == "map":
            return {int(pieces(g)[0]): tuple(map(int, pieces(g)[1:])) for g in value.children}
        out: dict[int, tuple[int, ...]] = {}
        for entry in self.items(value):
            fields = self.named(self.message(entry), ("key", "value"))
            keys = [self.integer(v) for k, v in fields if k == "key"]
            if fields and len(keys) != 1:
                raise self.wrong(entry, "one key")
            ids = [self.integer(one) for k, v in fields if k == "value" for one in self.items(v)]
            if keys:
                out[keys[0]] = tuple(ids)
        return out

    def dim(self, value: Node) -> ShardedDim:
        axis = 0
        parts: list[SimpleSharding] = []
        for key, one in self.named(self.message(value), ("axis", "simple_sharding")):
            if key == "axis":
                axis = self.integer(one)
            else:
                parts += [self.part(v) for v in self.items(one)]
        return ShardedDim(axis, tuple(parts))

    def part(self, value: Node) -> SimpleSharding:
        shards: int | None = None
        size: int | str | None = None
        for key, one in self.named(self.message(value), ("dim_value", "dim_param", "num_shards", "dim")):
            if key == "num_shards":
                if one.data == "string":
                    raise table.CANNOT_SAY.error(
                        notation="a sharding", what=f"{self.string(one)!r} shards, a symbolic number"
                    )
                shards = self.integer(one)
            else:
                size = self.string(one) if one.data == "string" else self.integer(one)
        if shards is None:
            raise self.wrong(value, "num_shards")
        return SimpleSharding(shards, size)
