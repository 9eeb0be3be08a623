"""Expand ops by function bodies, from ONNX (``onnx.defs``) or from the model.

ONNX defines many ops as functions of others, some of them anew for the types and attributes of each node. Such a body
is a list of nodes on names of its own; attributes that it refers to are those of the node, or the defaults of the op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from shardpass.onnx.model import Node, node_of


@dataclass(frozen=True, slots=True)
class Body:
    """The nodes of a function, its inputs and outputs, and the opsets of the nodes."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    opsets: Mapping[str, int]


def body_of(node: Node, opset: int, values: Sequence[Any]) -> Body | None:
    """Return ONNX's function body of a node in ``opset`` for its input types; None if the op has no body."""
    from onnx import defs

    try:
        schema = defs.get_schema(node.op, opset, node.domain)
    except defs.SchemaError:
        return None
    if schema.has_context_dependent_function:
        versions = list(schema.context_dependent_function_opset_versions)
        version = _at_most(versions, opset)
        types = [_type_bytes(value) for value in values]
        data = schema.get_context_dependent_function_with_opset_version(version, node.proto.SerializeToString(), types)
    elif schema.has_function:
        version = _at_most(list(schema.function_opset_versions), opset)
        data = schema.get_function_with_opset_version(version)
    else:
        return None
    return _body(_parsed(data), node, _defaults(schema)) if data else None


def _at_most(versions: list[int], opset: int) -> int:
    """Return the newest body for an opset, or the oldest where all are newer: bodies are of equal meaning."""
    return max((version for version in versions if version <= opset), default=min(versions))


@lru_cache(maxsize=256)
def _parsed(data: bytes) -> Any:
    import onnx

    proto = onnx.FunctionProto()
    proto.ParseFromString(data)
    return proto


def _defaults(schema: Any) -> dict[str, Any]:
    return {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name or attribute.default_value.type
    }


def _type_bytes(value: Any) -> bytes:
    import onnx

    proto = onnx.TypeProto()
    if value is not None:
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(jnp.result_type(value)))
        proto = onnx.helper.make_tensor_type_proto(kind, np.shape(value))
    return bytes(proto.SerializeToString())


def local_body(function: Any, node: Node) -> Body:
    """Return the body of a function that the model defines."""
    return _body(function, node, {attribute.name: attribute for attribute in function.attribute_proto})


def _body(function: Any, node: Node, defaults: Mapping[str, Any]) -> Body:
    given = {**defaults, **{attribute.name: attribute for attribute in node.proto.attribute}}
    nodes = tuple(_bound(proto, node.number, given) for proto in function.node)
    opsets = {one.domain: one.version for one in function.opset_import}
    return Body(tuple(function.input), tuple(function.output), nodes, opsets)


def _bound(proto: Any, number: int, given: Mapping[str, Any]) -> Node:
    """Replace references to a function's attributes in the nodes of its body, including their graphs."""
    made = type(proto)()
    made.CopyFrom(proto)
    _bind(made, given)
    return node_of(number, made)


def _bind(proto: Any, given: Mapping[str, Any]) -> None:
    kept = []
    for attribute in proto.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            name = attribute.name
            attribute.CopyFrom(given[attribute.ref_attr_name])
            attribute.name = name
        for inner in attribute.g.node:
            _bind(inner, given)
        kept.append(attribute)
    if len(kept) < len(proto.attribute):
        copies = [type(attribute).FromString(attribute.SerializeToString()) for attribute in kept]
        del proto.attribute[:]
        proto.attribute.extend(copies)
