"""ONNX multi-device models for tests, written shortly: nodes with specs in the documents' text form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from shardpass.sharding.notations.onnx_proto import to_proto
from support.onnx_spec_text import parse_onnx_spec

CONFIGURATION = "cfg"


@dataclass(frozen=True)
class N:
    """A node. ``specs``: tensor -> spec; ``split(...)`` writes the usual ones."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    specs: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    configuration: str = CONFIGURATION
    domain: str = ""


def split(devices: Sequence[int | Sequence[int]], *dims: tuple[int, int]) -> str:
    """A spec: one device, or one group of devices, for each shard; (axis, shards) of each split axis."""
    entries, groups = [], []
    for number, held in enumerate(devices):
        if isinstance(held, int):
            entries.append(held)
        else:
            entries.append(-1 - number)
            groups.append(f"{-1 - number}: {list(held)}")
    text = f"device = {entries} "
    if groups:
        text += f"device_map = {{{', '.join(groups)}}} "
    parts = " ".join(f"{{axis = {axis} simple_sharding = [{{num_shards = {shards}}}]}}" for axis, shards in dims)
    return f"{{{text} sharded_dim = [{parts}]}}"


def model(
    nodes: Sequence[N],
    inputs: Mapping[str, Sequence[int | str]],
    *,
    constants: Mapping[str, Any] | None = None,
    devices: int = 4,
    ir_version: int = 11,
    configurations: Sequence[tuple[str, int]] | None = None,
    dtype: int = TensorProto.FLOAT,
    opset: int = 21,
) -> onnx.ModelProto:
    """The model of ``nodes``; its outputs are what no node reads."""
    made = []
    for number, node in enumerate(nodes):
        proto = helper.make_node(
            node.op, node.inputs, node.outputs, name=f"n{number}", domain=node.domain, **node.attributes
        )
        if node.specs:
            annotation = proto.device_configurations.add(configuration_id=node.configuration)
            for name, text in node.specs.items():
                spec = annotation.sharding_spec.add(tensor_name=name)
                to_proto(parse_onnx_spec(text), spec)
        made.append(proto)
    read = {name for node in nodes for name in node.inputs}
    outputs = [name for node in nodes for name in node.outputs if name not in read]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info(name, dtype, list(shape)) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    found = helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", opset)])
    for name, count in configurations or [(CONFIGURATION, devices)]:
        found.configuration.add(name=name, num_devices=count)
    return found
