"""ONNX Runtime's distributed ops, read as ONNX's own ops with specs.

Problem: ``com.microsoft`` has DistributedMatMul, DistributedReduceSum and others, which carry shardings in attributes
of their own, and whose tensors have the shapes of one shard. In a model they look like ops without specs.

Each such node gets an annotation for the configuration ``com.microsoft``, with specs as ONNX writes them, and the rules
of the op whose name follows "Distributed". A tensor of such a node has the shape of the whole.

| attribute | entry for each tensor | here |
|---|---|---|
| ``input_shard_specs``, ``output_...`` | ``RS[1]`` | axis 1 is split over axis 1 of the mesh |
| ``input_device_mesh_shapes``, ``output_...`` | ``[2, 2]`` | the mesh |
| ``input_device_mesh_elements``, ``output_...`` | ``[0, 1, 2, 3]`` | its devices, row-major |

Example: ``S[0]R`` on the mesh [2, 2] of 0, 1, 2, 3 has two shards of axis 0, on the devices {0, 1} and {2, 3}.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from shardpass.diagnostics import Diagnostic, Place
from shardpass.diagnostics.table_onnx import BAD_DISTRIBUTED
from shardpass.onnx.groups import RUNTIME, plain_op
from shardpass.onnx.model import Configuration, Model, Node, NodeAnnotation, Tensor
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding

_AXIS = re.compile(r"R|S\[(\d{1,3})\]")
_INTEGERS = re.compile(r"\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)?\s*\]")


class _Fault(Exception):
    """Raised for an invalid attribute, with the reason."""


def annotated(model: Model) -> Model:
    """Return the model with the specs of its distributed ops as annotations; faults go to its remarks."""
    nodes: list[Node] = []
    faults: list[Diagnostic] = []
    shapes: dict[str, Tensor] = {}
    last = -1
    for node in model.nodes:
        specs = dict(_specs(node, model.place, faults)) if plain_op(node.op, node.domain) else {}
        last = max((last, *(device for one, _ in specs.values() for holders in one.holders() for device in holders)))
        for name, (spec, rank) in specs.items():
            shapes[name] = _whole(model.tensor(name), spec, rank)
        given = NodeAnnotation(RUNTIME, tuple(spec for spec, _ in specs.values()))
        nodes.append(replace(node, annotations=(*node.annotations, given)) if specs else node)
    if last < 0:
        return replace(model, remarks=(*model.remarks, *faults)) if faults else model
    configuration = Configuration(RUNTIME, last + 1, ())
    return replace(
        model,
        configurations=(*model.configurations, configuration),
        nodes=tuple(nodes),
        tensors={**model.tensors, **shapes},
        remarks=(*model.remarks, *faults),
    )


def _whole(tensor: Tensor, spec: ShardingSpec, rank: int) -> Tensor:
    """Return the type of the whole tensor from the type of one shard."""
    if tensor.shape is None or len(tensor.shape) != rank:
        return replace(tensor, shape=(None,) * rank)
    counts = {dim.axis: dim.parts[0].num_shards for dim in spec.dims}
    sizes = (n * counts.get(axis, 1) if isinstance(n, int) else None for axis, n in enumerate(tensor.shape))
    return replace(tensor, shape=tuple(sizes))


def _specs(node: Node, place: Place, faults: list[Diagnostic]) -> Iterator[tuple[str, tuple[ShardingSpec, int]]]:
    for side, names in (("input", node.inputs), ("output", node.outputs)):
        attribute = f"{side}_shard_specs"
        try:
            yield from _of_side(node.attributes, side, names)
        except _Fault as why:
            faults.append(BAD_DISTRIBUTED.at(place, node=node, attribute=attribute, reason=why))


def _of_side(
    attributes: Mapping[str, object], side: str, names: Sequence[str]
) -> Iterator[tuple[str, tuple[ShardingSpec, int]]]:
    parts = ("shard_specs", "device_mesh_shapes", "device_mesh_elements")
    columns = [_texts(attributes, f"{side}_{part}") for part in parts]
    if any(len(column) != len(names) for column in columns):
        counts = ", ".join(str(len(column)) for column in columns)
        raise _Fault(f"it and the attributes of its meshes have {counts} entries for {len(names)} {side}s")
    for name, text, shape, elements in zip(names, *columns, strict=True):
        if name:
            yield name, (_spec(name, text, _integers(shape), _integers(elements)), len(_axes(text)))


def _texts(attributes: Mapping[str, object], name: str) -> list[str]:
    values = attributes.get(name, ())
    if not isinstance(values, (list, tuple)):
        raise _Fault(f"{name} is no list of strings")
    return [one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in values]


def _integers(text: str) -> list[int]:
    if not _INTEGERS.fullmatch(text):
        raise _Fault(f"'{text}' is no list of integers such as [0, 1]")
    return [int(one) for one in re.findall(r"\d+", text)]


def _axes(text: str) -> list[int | None]:
    """Return the mesh axis that splits each tensor axis: None and 0 for ``RS[0]``."""
    parts = list(_AXIS.finditer(text))
    if "".join(one[0] for one in parts) != text:
        raise _Fault(f"'{text}' is no sequence of R and S[k], one for each axis of the tensor")
    return [None if one[1] is None else int(one[1]) for one in parts]


def _spec(name: str, text: str, shape: Sequence[int], devices: Sequence[int]) -> ShardingSpec:
    if not devices or prod(shape) != len(devices):
        raise _Fault(f"a mesh of {list(shape)} has {prod(shape)} devices, and {len(devices)} are listed")
    if len(set(devices)) < len(devices):
        raise _Fault(f"the mesh lists a device twice: {list(devices)}")
    split = [(axis, over) for axis, over in enumerate(_axes(text)) if over is not None]
    used = [over for _, over in split]
    if any(over >= len(shape) for over in used) or len(set(used)) < len(used):
        raise _Fault(f"'{text}' splits over an axis that the mesh {list(shape)} lacks, or over one twice")
    places = list(zip(devices, itertools.product(*map(range, shape)), strict=True))
    entries: list[int] = []
    groups: dict[int, tuple[int, ...]] = {}
    for shard in itertools.product(*(range(shape[over]) for over in used)):
        holders = tuple(device for device, at in places if tuple(at[over] for over in used) == shard)
        entry = holders[0] if len(holders) == 1 else -1 - len(groups)
        if entry < 0:
            groups[entry] = holders
        entries.append(entry)
    dims = tuple(ShardedDim(axis, (SimpleSharding(shape[over]),)) for axis, over in split)
    return ShardingSpec(tuple(entries), groups, dims, name)
