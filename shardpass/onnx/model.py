"""An ONNX model as values: configurations, tensors, nodes and their sharding specs; and its reader.

The package ``onnx`` is imported here, when a model is read: it is an extra.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shardpass.diagnostics import Diagnostic, Place
from shardpass.diagnostics.table_onnx import NO_ONNX, NOT_A_MODEL
from shardpass.onnx.beside import annotate, mesh_of
from shardpass.onnx.binding import bind
from shardpass.onnx.versions import modernized, opset_of
from shardpass.sharding import Mesh
from shardpass.sharding.notations.onnx_proto import from_proto
from shardpass.sharding.notations.onnx_spec import ShardingSpec

Dim = int | str | None  # a size, a name, or nothing known


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's type. ``shape`` is None if the rank is unknown; ``bits``: of an element, 0 if unknown."""

    shape: tuple[Dim, ...] | None = None
    bits: int = 0

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """Return the shape if all sizes are numbers, else None."""
        if self.shape is None or not all(isinstance(size, int) for size in self.shape):
            return None
        return tuple(size for size in self.shape if isinstance(size, int))


@dataclass(frozen=True, slots=True)
class Configuration:
    name: str
    num_devices: int
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeAnnotation:
    """A node's annotation for one configuration."""

    configuration: str
    specs: tuple[ShardingSpec, ...]
    stage: int | None = None  # of a pipeline, a hint


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph. ``attributes``: numbers, texts and lists of these. ``proto``: the ONNX message."""

    number: int
    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    annotations: tuple[NodeAnnotation, ...]
    proto: Any

    def __str__(self) -> str:
        return f"node '{self.name}' ({self.op})" if self.name else f"node {self.number} ({self.op})"

    def stage(self, configuration: str) -> int | None:
        """Return the pipeline stage of the node in a configuration, or None."""
        return next((one.stage for one in self.annotations if one.configuration == configuration), None)

    def with_attributes(self, attributes: Mapping[str, Any]) -> Node:
        """Return the node with other attributes."""
        return replace(self, attributes=attributes)


@dataclass(frozen=True, slots=True)
class Model:
    """An ONNX model.

    ``constants``: the initializers and small values of Constant nodes, by name, as NumPy arrays. ``opset``: the version
    of ONNX's own ops. ``remarks``: changes made to the model while it was read. ``given``: specs of inputs and weights
    from outside of the model, for its first configuration, over the axes of ``mesh``.
    """

    place: Place
    configurations: tuple[Configuration, ...]
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    sources: frozenset[str]  # graph inputs and initializers
    constants: Mapping[str, Any]
    proto: Any
    opset: int
    remarks: tuple[Diagnostic, ...] = ()
    given: Mapping[str, ShardingSpec] = field(default_factory=dict)
    mesh: Mesh | None = None

    def tensor(self, name: str) -> Tensor:
        return self.tensors.get(name) or Tensor()


def looks_like_a_model(data: bytes, file: str) -> bool:
    """Return whether the bytes are an ONNX model, by the file's name or by the first fields of a ModelProto.

    The first field is ``ir_version``, number 1, a varint: the byte 8, then a small nonzero number. The next byte is the
    tag of a later field. MLIR, flat buffers (whose third byte is 0) and HLO protos (10) do not start like this.
    """
    return file.endswith(".onnx") or (len(data) > 2 and data[0] == 8 and 0 < data[1] < 64 and data[2] in _SECOND_TAGS)


# producer_name, producer_version, domain, model_version, doc_string, graph, opset_import, metadata_props
_SECOND_TAGS = frozenset((0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72))


def read_model(
    data: bytes,
    file: str = "",
    *,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, Any] | None = None,
    shardings: Mapping[str, Any] | None = None,
    mesh: Any = None,
) -> Model:
    """Read the model in the bytes of a ``.onnx`` file; tensors in other files are not opened.

    ``dims``: sizes for symbolic dimensions. ``constants``: values for inputs, which become constants of the model.
    ``shardings``, over the axes of ``mesh``: see ``beside``. A model of an opset before 13 is converted.

    Raises ShardpassError: SP701 the package onnx is absent, SP702 no model, SP703 annotations in a model of an IR
    version before 11, SP709 a name or value that does not fit the model, SP710 onnx cannot convert the model, SP725 a
    sharding that does not fit.
    """
    place = Place(file)
    try:
        import onnx
    except ImportError:
        raise NO_ONNX.error(place) from None
    proto = _parsed(onnx, data, place)
    proto, remarks = modernized(onnx, proto, place)
    bind(onnx, proto, place, dims or {}, constants or {})
    graph = _with_shapes(onnx, proto).graph
    tensors = dict(_tensors(onnx, graph))
    given, over = {}, mesh_of(mesh, place)
    if shardings or over is not None:
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        given = annotate(proto, place, shapes, shardings or {}, over)
    nodes = tuple(node_of(index, node) for index, node in enumerate(proto.graph.node))
    return Model(
        place,
        tuple(Configuration(c.name, c.num_devices, tuple(c.device)) for c in proto.configuration),
        nodes,
        tensors,
        frozenset([t.name for t in graph.input] + [t.name for t in graph.initializer]),
        dict(_constants(onnx, proto.graph)),
        proto,
        opset_of(proto),
        remarks,
        given,
        over,
    )


def _parsed(onnx: Any, data: bytes, place: Place) -> Any:
    try:
        proto = onnx.load_model_from_string(data)
    except Exception as error:  # protobuf raises its own
        raise NOT_A_MODEL.error(place, reason=str(error).strip().rstrip(".") or "it does not parse") from None
    if not proto.ir_version or not proto.HasField("graph"):
        raise NOT_A_MODEL.error(place, reason="it has no IR version, or no graph")
    if (name := next(_no_texts(proto), None)) is not None:
        raise NOT_A_MODEL.error(place, reason=f"the name {name!r} is not UTF-8")
    return proto


def _no_texts(proto: Any) -> Iterator[bytes]:
    """Yield names that are not valid text, which protobuf returns as bytes."""
    graph = proto.graph
    for one in proto.configuration:
        yield from _bytes(one.name, *one.device)
    for node in graph.node:
        yield from _bytes(node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from _bytes(*(attribute.name for attribute in node.attribute))
        for config in node.device_configurations:
            yield from _bytes(config.configuration_id, *(spec.tensor_name for spec in config.sharding_spec))
    for tensor in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        yield from _bytes(tensor.name)


def _bytes(*names: Any) -> Iterator[bytes]:
    return (name for name in names if isinstance(name, bytes))


def _with_shapes(onnx: Any, proto: Any) -> Any:
    """Return a copy with the shapes inferred by onnx; the model itself if inference fails."""
    try:
        return onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # a model with wrong types: what it says itself is used
        return proto


def _tensors(onnx: Any, graph: Any) -> Iterator[tuple[str, Tensor]]:
    for info in (*graph.value_info, *graph.input, *graph.output):
        kind = info.type.tensor_type
        shape: tuple[Dim, ...] | None = None
        if kind.HasField("shape"):
            shape = tuple(_dim(dim) for dim in kind.shape.dim)
        yield info.name, Tensor(shape, _bits(onnx, kind.elem_type))
    for tensor in graph.initializer:
        yield tensor.name, Tensor(tuple(int(d) for d in tensor.dims), _bits(onnx, tensor.data_type))


def _dim(dim: Any) -> Dim:
    which = dim.WhichOneof("value")
    if which == "dim_value":
        return int(dim.dim_value)
    return str(dim.dim_param) if which == "dim_param" and dim.dim_param else None


def _bits(onnx: Any, kind: int) -> int:
    try:
        return int(onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize) * 8
    except (KeyError, TypeError, ValueError):
        return 0


def node_of(number: int, proto: Any) -> Node:
    """Read a NodeProto of the model, of one of its graphs, or of a function."""
    import onnx

    attributes = {}
    for attribute in proto.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        attributes[attribute.name] = value.decode() if isinstance(value, bytes) else value
    annotations = tuple(
        NodeAnnotation(
            one.configuration_id,
            tuple(from_proto(spec) for spec in one.sharding_spec),
            one.pipeline_stage if one.HasField("pipeline_stage") else None,
        )
        for one in proto.device_configurations
    )
    return Node(
        number,
        proto.name,
        proto.op_type,
        proto.domain,
        tuple(proto.input),
        tuple(proto.output),
        attributes,
        annotations,
        proto,
    )


_SMALL = 64  # elements: shapes, axes, bounds


def _constants(onnx: Any, graph: Any) -> Iterator[tuple[str, Any]]:
    for tensor in graph.initializer:
        if math.prod(tensor.dims) <= _SMALL and not tensor.external_data:
            yield tensor.name, onnx.numpy_helper.to_array(tensor)
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                value = onnx.helper.get_attribute_value(attribute)
                if attribute.name == "value" and math.prod(value.dims) <= _SMALL:
                    yield node.output[0], onnx.numpy_helper.to_array(value)
                elif attribute.name in ("value_int", "value_ints", "value_float", "value_floats"):
                    import numpy as np

                    yield node.output[0], np.asarray(value)
