"""ONNX's ShardingSpec (IR version 11) as a value, and its text, both ways.

Source: ShardingSpecProto of onnx.proto, and the text form of ONNX's multi-device proposal. ``onnx_sharding`` gives a
spec its meaning, ``onnx_proto`` reads and fills the protobuf messages.

A spec lists one device for each shard, row-major over its split dimensions in the order in which they are listed. An
entry that is a key of the device map stands for the group of devices there, each of which holds that shard. A
dimension may be written as several sizes that were fused.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from lark import Lark, UnexpectedInput

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import fault
from shardpass.sharding.notations.trees import Node, first_offset, pieces
from shardpass.sharding.quoting import EscapeError, c_quoted, c_unquoted

QUOTE = '"'
Groups = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SimpleSharding:
    """A size, a number or a name, cut into ``num_shards`` blocks."""

    num_shards: int
    dim: int | str | None = None


@dataclass(frozen=True, slots=True)
class ShardedDim:
    """A dimension of the tensor, and the sizes that were fused into it, major to minor."""

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
        """Return the devices that hold each shard."""
        return [self.groups.get(entry, (entry,)) for entry in self.device]

    def __str__(self) -> str:
        """Format the spec as the documents of ONNX write it."""
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


# ------------------------------------------------------------------------------------- reading


def parse_onnx_spec(text: str) -> ShardingSpec:
    """Parse the documents' text form of a spec, or protobuf's.

    Raises:
        ShardingParseError: it is neither, or a field is unknown or of the wrong kind.
    """
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        at = getattr(error, "pos_in_stream", None)
        at = len(text.rstrip()) if at is None or at < 0 or at > len(text) else at
        actual = repr(text[at : at + 1]) if at < len(text) else "the end of the text"
        expected = "a field such as device = [0, 1], or its value"
        raise fault(table.SYNTAX, text, at, expected=expected, found=actual, hint="") from None
    return _Reader(text).spec(tree.children)


@functools.cache
def _grammar() -> Lark:
    return Lark.open_from_package(
        "shardpass.sharding.notations", "onnx_spec.lark", parser="earley", maybe_placeholders=False
    )


class _Reader:
    """Converts fields to values; a repeated field adds to its list."""

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
        token = value.children[0]
        try:
            return c_unquoted(str(token)[1:-1])
        except EscapeError as error:
            raise fault(
                table.SYNTAX, self.text, token.start_pos + 1 + error.offset, len(error.escape),
                expected="an escape of C", found=repr(error.escape), hint="",
            ) from None  # fmt: skip

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
