"""Read the text form of ONNX's ShardingSpec, as its documents write specs, so that tests state specs as text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer

from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding
from shardpass.sharding.quoting import c_unquoted

Fields = dict[str, list[Any]]  # the values of each field; those of a list are joined


def parse_onnx_spec(text: str) -> ShardingSpec:
    """Parse the text of a spec. Raises lark's UnexpectedInput for other text."""
    fields: Fields = _Values().transform(_grammar().parse(text))
    groups = {key: ids for entry in fields.get("device_map", ()) for key, ids in entry.items()}
    return ShardingSpec(
        tuple(fields["device"]), groups, tuple(map(_dim, fields.get("sharded_dim", ()))), *fields.get("tensor_name", ())
    )


def _dim(fields: Fields) -> ShardedDim:
    parts = []
    for part in fields.get("simple_sharding", ()):
        size = next((part[name][0] for name in ("dim_value", "dim_param") if name in part), None)
        parts.append(SimpleSharding(part["num_shards"][0], size))
    return ShardedDim(fields["axis"][0], tuple(parts))


class _Values(Transformer[Token, Any]):
    def integer(self, children: list[Token]) -> int:
        return int(children[0])

    def string(self, children: list[Token]) -> str:
        return c_unquoted(str(children[0])[1:-1])

    def list(self, children: list[Any]) -> list[Any]:
        return children

    def group(self, children: list[Token]) -> list[int]:
        return [int(child) for child in children]

    def map(self, children: list[list[int]]) -> dict[int, tuple[int, ...]]:
        return {key: tuple(ids) for key, *ids in children}

    def message(self, children: list[tuple[str, Any]]) -> Fields:
        fields: Fields = {}
        for name, value in children:
            fields.setdefault(name, []).extend(value if isinstance(value, list) else [value])
        return fields

    def field(self, children: list[Any]) -> tuple[str, Any]:
        return str(children[0]), children[1]

    start = message


@cache
def _grammar() -> Lark:
    file = Path(__file__).with_name("onnx_spec.lark")
    return Lark(file.read_text(), parser="earley", maybe_placeholders=False)
