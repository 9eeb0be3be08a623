"""Convert models of older versions to the opset that the kernels know, and to the IR version with annotations.

The kernels and the checker know opset 13 and later. Older models go through ``onnx.version_converter``, with a remark.
Fields of annotations have a meaning from IR version 11 on; a model of an older version that has them contradicts
itself.
"""

from __future__ import annotations

from typing import Any

from shardpass.diagnostics import Diagnostic, Place
from shardpass.diagnostics.table_onnx import CONVERTED, NOT_CONVERTED, OLD_IR

FIRST_IR = 11  # the first IR version with multi-device annotations
FIRST_OPSET = 13  # the first whose ops are known
TARGET_OPSET = 15  # of what is converted: BatchNormalization says there whether it trains


def opset_of(proto: Any) -> int:
    """Return the version of ONNX's own ops; the newest if the model does not specify a version."""
    from onnx import defs

    own = [one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")]
    return int(max(own, default=defs.onnx_opset_version()))


def modernized(onnx: Any, proto: Any, place: Place) -> tuple[Any, tuple[Diagnostic, ...]]:
    """Convert the model to IR version 11 or later, and to opset 15 if its opset is below 13; list the changes.

    Raises ShardpassError: SP703 annotations in a model of an older IR version, SP710 onnx cannot convert it.
    """
    version, opset = proto.ir_version, opset_of(proto)
    if version < FIRST_IR and _annotated(proto):
        raise OLD_IR.error(place, found=version)
    if opset < FIRST_OPSET:
        proto = _converted(onnx, proto, place, opset)
    proto.ir_version = max(version, FIRST_IR)
    if opset >= FIRST_OPSET:
        return proto, ()
    return proto, (CONVERTED.at(place, opset=opset, target=TARGET_OPSET),)


def _spread_slopes(onnx: Any, proto: Any) -> None:
    """Reshape PRelu's slopes for broadcasting; before opset 7, there is one slope per channel."""
    graph = onnx.shape_inference.infer_shapes(proto).graph
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in (*graph.value_info, *graph.input)}
    slopes = {node.input[1]: ranks.get(node.input[0], 0) for node in proto.graph.node if node.op_type == "PRelu"}
    for tensor in proto.graph.initializer:
        if len(tensor.dims) == 1 and slopes.get(tensor.name, 0) > 2:
            tensor.dims.extend([1] * (slopes[tensor.name] - 2))
    for info in proto.graph.input:
        shape = info.type.tensor_type.shape
        for _ in range(slopes.get(info.name, 0) - 2 if len(shape.dim) == 1 else 0):
            shape.dim.add(dim_value=1)


def _annotated(proto: Any) -> bool:
    return bool(proto.configuration) or any(node.device_configurations for node in proto.graph.node)


def _converted(onnx: Any, proto: Any, place: Place, opset: int) -> Any:
    try:
        made = onnx.version_converter.convert_version(proto, TARGET_OPSET)
    except Exception as error:  # the converter raises its own, and protobuf's
        reason = (str(error).strip().splitlines() or ["the converter says nothing more"])[0].rstrip(".")
        raise NOT_CONVERTED.error(place, opset=opset, target=TARGET_OPSET, reason=reason) from None
    if opset < 7:
        _spread_slopes(onnx, made)
    # the converter knows no annotations: they belong to the nodes that make the same values
    if not made.configuration:
        made.configuration.extend(proto.configuration)
    annotations = {name: node.device_configurations for node in proto.graph.node for name in node.output if name}
    for node in made.graph.node:
        own = next((annotations[name] for name in node.output if name in annotations), ())
        if own and not node.device_configurations:
            node.device_configurations.extend(own)
    return made
