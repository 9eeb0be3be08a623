"""Check the rules about single specs, ONNX-S1 to S7. A spec with an error is left out of all later checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shardpass.diagnostics import Diagnostic, Severity
from shardpass.diagnostics.table_onnx import (
    AXIS,
    CONFIGURATION,
    DEVICE,
    SHARD_COUNT,
    SHARDS,
    STAGE,
    TENSOR,
    TWO_SHARDS,
    UNEVEN_SHARDS,
)
from shardpass.onnx.model import Configuration, Model, Node
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec


def check_configurations(model: Model) -> Iterator[Diagnostic]:
    """Check rules ONNX-S1 and ONNX-S5 on the configurations, and ONNX-S1 on the nodes that name them."""
    names = Counter(c.name for c in model.configurations)
    known = ", ".join(f"'{name}'" for name in names) or "none"
    for name, count in names.items():
        if count > 1:
            reason = f"{count} configurations have this name"
            yield CONFIGURATION.at(model.place, where=f"configuration '{name}'", reason=reason, known=known)
    for one in model.configurations:
        where, last = f"configuration '{one.name}'", max(0, one.num_devices - 1)
        if one.num_devices < 1:
            yield DEVICE.at(model.place, where=where, reason=f"it has {one.num_devices} devices", last=last)
        elif one.devices and len(one.devices) != one.num_devices:
            reason = f"it has {one.num_devices} devices and names {len(one.devices)}"
            yield DEVICE.at(model.place, where=where, reason=reason, last=last)
    for node in model.nodes:
        used = Counter(annotation.configuration for annotation in node.annotations)
        for name, count in used.items():
            if name not in names:
                reason = f"there is no configuration '{name}'"
                yield CONFIGURATION.at(model.place, where=str(node), reason=reason, known=known)
            elif count > 1:
                reason = f"the configuration '{name}' stands here {count} times"
                yield CONFIGURATION.at(model.place, where=str(node), reason=reason, known=known)


def check_stages(model: Model, configuration: Configuration) -> Iterator[Diagnostic]:
    """Check that stages are numbers from 0, and that nodes only read from their own or earlier stages."""
    latest: dict[str, int] = {}  # the stage that a tensor needs
    for node in model.nodes:
        stage = node.stage(configuration.name)
        source = max((name for name in node.inputs if name in latest), key=latest.__getitem__, default=None)
        needed = -1 if source is None else latest[source]
        if stage is not None and stage < 0:
            yield replace(
                STAGE.at(model.place, node=node, stage=stage, reason="it is negative"), severity=Severity.ERROR
            )
        elif stage is not None and stage < needed:
            reason = f"it reads '{source}' from stage {needed}"
            yield STAGE.at(model.place, node=node, stage=stage, reason=reason)
        reached = max(needed, -1 if stage is None else stage)
        latest |= dict.fromkeys(filter(None, node.outputs), reached) if reached >= 0 else {}


def sound_specs(
    model: Model, node: Node, configuration: Configuration, diagnostics: list[Diagnostic]
) -> dict[str, ShardingSpec]:
    """Return the node's valid specs for one configuration, by tensor; violations go to ``diagnostics``."""
    own = {name for name in (*node.inputs, *node.outputs) if name}
    known = ", ".join(f"'{name}'" for name in sorted(own))
    sound: dict[str, ShardingSpec] = {}
    seen: set[str] = set()
    for annotation in node.annotations:
        if annotation.configuration != configuration.name:
            continue
        for spec in annotation.specs:
            name = spec.tensor_name
            if name not in own:
                reason = f"'{name}' is neither an input nor an output of it"
                diagnostics.append(TENSOR.at(model.place, node=node, reason=reason, known=known))
                continue
            if name in seen:
                reason = f"'{name}' has two specs for one configuration"
                diagnostics.append(TENSOR.at(model.place, node=node, reason=reason, known=known))
                continue
            seen.add(name)
            problems = list(check_spec(model, node, spec, configuration.num_devices))
            diagnostics += problems
            if not any(p.severity is Severity.ERROR for p in problems):
                sound[name] = spec
    return sound


def check_spec(model: Model, node: Node, spec: ShardingSpec, num_devices: int) -> Iterator[Diagnostic]:
    """Check S3 to S7 of one spec."""
    name = spec.tensor_name
    place, shape = model.place, model.tensor(name).shape
    axes = []
    for dim in spec.dims:
        if shape is not None and not -len(shape) <= dim.axis < len(shape):
            reason = f"splits axis {dim.axis}, and the tensor has rank {len(shape)}"
            yield AXIS.at(place, node=node, tensor=name, reason=reason)
            continue
        axes.append(dim.axis if shape is None else dim.axis % len(shape))
        yield from _check_dim(model, node, name, dim, None if shape is None else shape[dim.axis])
    for axis, count in Counter(axes).items():
        if count > 1:
            yield AXIS.at(place, node=node, tensor=name, reason=f"splits axis {axis} {count} times")
    shards = 1
    for dim in spec.dims:
        for part in dim.parts:
            shards *= part.num_shards
    if shards != len(spec.device):
        yield SHARD_COUNT.at(place, node=node, tensor=name, shards=shards, devices=len(spec.device))
    yield from _check_devices(model, node, spec, num_devices)


def _check_dim(model: Model, node: Node, name: str, dim: ShardedDim, size: object) -> Iterator[Diagnostic]:
    where: dict[str, Any] = {"node": node, "axis": dim.axis, "tensor": name}
    for part in dim.parts:
        if part.num_shards < 1:
            yield SHARDS.at(model.place, **where, reason=f"is cut into {part.num_shards} shards")
        elif isinstance(part.dim, int) and part.dim % part.num_shards:
            yield UNEVEN_SHARDS.at(model.place, **where, size=part.dim, shards=part.num_shards)
    sizes = [part.dim for part in dim.parts]
    if isinstance(size, int) and sizes and all(isinstance(s, int) for s in sizes):
        product = 1
        for one in sizes:
            product *= one if isinstance(one, int) else 1
        if product != size:
            yield SHARDS.at(model.place, **where, reason=f"has size {size}, and the spec says {product}")
    elif isinstance(size, int) and len(sizes) == 1 and sizes[0] is None:
        count = dim.parts[0].num_shards
        if count >= 1 and size % count:
            yield UNEVEN_SHARDS.at(model.place, **where, size=size, shards=count)


def _check_devices(model: Model, node: Node, spec: ShardingSpec, num_devices: int) -> Iterator[Diagnostic]:
    where, last = f"{node}: the spec of '{spec.tensor_name}'", num_devices - 1
    for key, group in spec.groups.items():
        wrong = [device for device in group if not 0 <= device < num_devices]
        if not group:
            yield DEVICE.at(model.place, where=where, reason=f"the group {key} is empty", last=last)
        elif wrong:
            reason = f"the group {key} names device {wrong[0]}, and there are {num_devices}"
            yield DEVICE.at(model.place, where=where, reason=reason, last=last)
        elif len(set(group)) < len(group):
            yield DEVICE.at(model.place, where=where, reason=f"the group {key} names a device twice", last=last)
    for entry in spec.device:
        if entry not in spec.groups and not 0 <= entry < num_devices:
            what = "is no key of the device map" if entry < 0 else f"is not one of {num_devices} devices"
            yield DEVICE.at(model.place, where=where, reason=f"the entry {entry} {what}", last=last)
    shards = Counter(device for holders in spec.holders() for device in set(holders))
    for device, count in shards.items():
        if count > 1:
            yield TWO_SHARDS.at(model.place, node=node, device=device, count=count, tensor=spec.tensor_name)
            break
