"""Complete a model: add a spec for every input and output whose layout is known.

A tensor that is unsharded and comes from no node is whole on all devices of the node. Nodes that no split and no spec
reaches stay without annotation. Existing content stays byte for byte, but for the order of fields.
"""

from __future__ import annotations

from shardpass.onnx.check import Report
from shardpass.onnx.layout import Devices, spec_of
from shardpass.onnx.model import Model
from shardpass.sharding.notations.onnx_proto import to_proto


def completed_model(model: Model, report: Report) -> bytes:
    """Return the bytes of ``model`` with the specs in ``report``; the model itself stays unchanged."""
    proto = type(model.proto)()
    proto.CopyFrom(model.proto)
    known = {one.name for one in proto.configuration}
    for completed in report.completed:
        if completed.configuration.name not in known:  # of ONNX Runtime's ops, whose attributes say it
            continue
        for node, placed in zip(model.nodes, completed.nodes, strict=True):
            devices: Devices = frozenset().union(*(one.layout.devices for one in placed.values()))
            if not devices:
                continue
            name = completed.configuration.name
            made = proto.graph.node[node.number]
            mine = next((one for one in made.device_configurations if one.configuration_id == name), None)
            if mine is None:
                mine = made.device_configurations.add(configuration_id=name)
            annotated = {spec.tensor_name for spec in mine.sharding_spec}
            for tensor in dict.fromkeys((*node.inputs, *node.outputs)):
                if tensor in placed and tensor not in annotated:
                    shape = model.tensor(tensor).shape or ()
                    spec = spec_of(placed[tensor].layout, tensor, shape, devices)
                    to_proto(spec, mine.sharding_spec.add())
    return bytes(proto.SerializeToString())
