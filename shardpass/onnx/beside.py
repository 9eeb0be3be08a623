"""Shardings given separately from a model: a mesh, and the splits of some values over its axes.

    shardings = {"x": 'P("data")', "*.weight": 'P(None, "model")'}
    model = read_model(data, mesh="data=4,model=2", shardings=shardings)

A key is the name of a value, or a pattern with ``*`` and ``?`` for the inputs and weights that no other key names. A
sharding is text in any of the notations of ``docs/sharding.md``, or a PartitionSpec of JAX. All together are one more
configuration of the model, the first. For a value that a node makes, the spec stands at that node. The documents leave
model inputs open (a node may choose their sharding): here they, and weights, have the given sharding from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from shardpass.diagnostics import Place, ShardpassError
from shardpass.diagnostics.table_onnx import BAD_GIVEN
from shardpass.sharding import Mesh, Sharding
from shardpass.sharding.notations.onnx_proto import to_proto
from shardpass.sharding.notations.onnx_sharding import spec_of_sharding
from shardpass.sharding.notations.onnx_spec import ShardingSpec
from shardpass.sharding.notations.partition_spec import read_any, read_mesh

GIVEN = "given"  # the name of the configuration


def annotate(
    proto: Any,
    place: Place,
    shapes: Mapping[str, Sequence[Any] | None],
    shardings: Mapping[str, Any],
    over: Mesh | None,
) -> dict[str, ShardingSpec]:
    """Write the configuration and the specs of computed values into ``proto``; returns specs of inputs and weights.

    Raises ShardpassError SP725.
    """
    graph = proto.graph
    sources = [info.name for info in graph.input] + [tensor.name for tensor in graph.initializer]
    sources = list(dict.fromkeys(sources))
    makers = {name: node for node in graph.node for name in node.output if name}
    specs = {
        name: _spec(name, value, shapes.get(name), over, place)
        for name, value in _by_name(shardings, sources, makers, place).items()
    }
    named = {one.name for one in proto.configuration}
    name = next(name for name in (GIVEN, *(f"{GIVEN}_{k}" for k in range(len(named)))) if name not in named)
    others = [type(one).FromString(one.SerializeToString()) for one in proto.configuration]
    del proto.configuration[:]
    proto.configuration.add(name=name, num_devices=_size(over, specs.values()))
    proto.configuration.extend(others)
    for tensor, spec in specs.items():
        if tensor in makers:
            node = makers[tensor]
            mine = next((one for one in node.device_configurations if one.configuration_id == name), None)
            mine = node.device_configurations.add(configuration_id=name) if mine is None else mine
            to_proto(spec, mine.sharding_spec.add())
    return {tensor: spec for tensor, spec in specs.items() if tensor not in makers}


def mesh_of(mesh: Any, place: Place) -> Mesh | None:
    """Read a mesh from ``x=4,y=2``, or from a mapping of axes to sizes. Raises ShardpassError SP725."""
    if mesh is None or isinstance(mesh, Mesh):
        return mesh
    try:
        return read_mesh(mesh if isinstance(mesh, str) else ",".join(f"{k}={v}" for k, v in dict(mesh).items()))
    except (ShardpassError, TypeError, ValueError) as error:
        raise BAD_GIVEN.error(place, reason=f"the mesh {mesh!r}: {_why(error)}", hint="x=4,y=2") from None


def _by_name(
    shardings: Mapping[str, Any], sources: Sequence[str], makers: Iterable[str], place: Place
) -> dict[str, Any]:
    known = {*sources, *makers}
    chosen = {name: value for name, value in shardings.items() if name in known}
    for pattern, value in shardings.items():
        if pattern in known:
            continue
        matches = [name for name in sources if fnmatchcase(name, pattern)]
        if not matches:
            reason = f"the model has no value '{pattern}'"
            raise BAD_GIVEN.error(place, reason=reason, hint=", ".join(f"'{name}'" for name in sources[:12]))
        for name in matches:
            chosen.setdefault(name, value)
    return chosen


def _spec(name: str, value: Any, shape: Sequence[Any] | None, mesh: Mesh | None, place: Place) -> ShardingSpec:
    text = value if isinstance(value, str) else repr(value)
    if shape is None:
        raise BAD_GIVEN.error(place, reason=f"the rank of '{name}' is not known", hint="a value whose shape is known")
    sizes = [size if isinstance(size, int) else 0 for size in shape]
    try:
        sharding = read_any(text, sizes, mesh)
        if not isinstance(sharding, Sharding):
            raise BAD_GIVEN.error(place, reason=f"'{name}' is given several shardings", hint='P("x")')
        count = mesh.size if mesh is not None else sharding.num_devices
        return spec_of_sharding(sharding, len(sizes), count, name)
    except (ShardpassError, ValueError) as error:
        reason = f"the sharding {text} of '{name}': {_why(error)}"
        raise BAD_GIVEN.error(place, reason=reason, hint='P("x", None)') from None


def _size(mesh: Mesh | None, specs: Iterable[ShardingSpec]) -> int:
    if mesh is not None:
        return mesh.size
    return 1 + max((device for spec in specs for group in spec.holders() for device in group), default=0)


def _why(error: Exception) -> str:
    return error.diagnostics[0].message if isinstance(error, ShardpassError) else str(error)
