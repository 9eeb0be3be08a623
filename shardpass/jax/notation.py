"""JAX's shardings and this package's, both ways.

The devices of a ``NamedSharding`` are numbered by their place in its mesh, which is how JAX numbers the partitions of
the programs it compiles: device d here is ``sharding.mesh.devices.flat[d]`` there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import AxisRef, Mesh, Sharding, parse_sharding
from shardpass.sharding.notes import Kind


def mesh_from_jax(mesh: Any) -> Mesh:
    """Return the mesh of a ``jax.sharding.Mesh`` or ``AbstractMesh``."""
    return Mesh((str(name), int(size)) for name, size in dict(mesh.shape).items())


def from_partition_spec(spec: Iterable[Any], mesh: Any, rank: int | None = None) -> Sharding:
    """Return the sharding that ``spec`` means over ``mesh``, of an array of ``rank`` (else of the spec's).

    ``UNCONSTRAINED`` dimensions are open. A dimension without an entry is not split.

    Raises:
        ShardingError: an axis that the mesh has not, one used twice, or more entries than dimensions.
    """
    ours = mesh if isinstance(mesh, Mesh) else mesh_from_jax(mesh)
    dims: list[tuple[str, ...]] = []
    opened: list[int] = []
    entries = tuple(getattr(spec, "partitions", spec))
    for k, entry in enumerate(entries):
        if entry is not None and not isinstance(entry, str | tuple | list):
            opened.append(k)  # UNCONSTRAINED
            entry = None
        dims.append(() if entry is None else (entry,) if isinstance(entry, str) else tuple(entry))
    if rank is not None:
        if len(dims) > rank:
            raise table.RANK.error(sharding=str(spec), dims=len(dims), rank=rank)
        dims += [()] * (rank - len(dims))
    unreduced = tuple(sorted(getattr(spec, "unreduced", ())))
    kind = getattr(getattr(spec, "unreduced_kind", None), "name", "sum").lower()
    made = Sharding.tiled(ours, dims, unreduced=unreduced, reduction=kind)
    if not opened:
        return made
    from dataclasses import replace

    return made.replaced(notes=replace(made.notes, open=tuple(opened)))


def from_jax(sharding: Any, rank: int | None = None) -> Sharding:
    """Convert a JAX ``NamedSharding``, ``GSPMDSharding`` or ``SingleDeviceSharding``.

    Raises:
        ShardingError: a sharding of another class, or one that is not well formed.
    """
    if hasattr(sharding, "spec") and hasattr(sharding, "mesh"):
        return from_partition_spec(sharding.spec, sharding.mesh, rank)
    if hasattr(sharding, "_hlo_sharding"):
        parsed = parse_sharding(str(sharding._hlo_sharding), strict=False)
        if isinstance(parsed, Sharding):
            return parsed
    if type(sharding).__name__ == "SingleDeviceSharding":
        return Sharding.tiled(Mesh((("device", 1),)), [()] * (rank or 0))
    what = f"an object of class {type(sharding).__name__}"
    raise table.CANNOT_SAY.error(notation="a sharding of shardpass", what=what)


def to_partition_spec(sharding: Sharding) -> Any:
    """Convert to a ``PartitionSpec`` over the sharding's own mesh.

    Raises:
        ShardingError: JAX has no word for it: a part of an axis, manual axes, or a sharding without a mesh.
    """
    from jax.sharding import PartitionSpec

    if sharding.kind is Kind.REPLICATED:
        return PartitionSpec()
    if sharding.kind is not Kind.TILED or sharding.manual or sharding.maximal_axes or sharding.mesh is None:
        raise table.CANNOT_SAY.error(notation="a PartitionSpec", what=str(sharding))
    entries: list[Any] = []
    for k, axes in enumerate(sharding.dims):
        names = tuple(_whole(axis) for axis in axes)
        if k in sharding.notes.open and not names:
            entries.append(PartitionSpec.UNCONSTRAINED)
        else:
            entries.append(None if not names else names[0] if len(names) == 1 else names)
    if not sharding.unreduced:
        return PartitionSpec(*entries)
    return PartitionSpec(*entries, unreduced={_whole(axis) for axis in sharding.unreduced}, **_kind(sharding))


def _whole(axis: AxisRef) -> str:
    if axis.size is not None:
        raise table.CANNOT_SAY.error(notation="a PartitionSpec", what=f"{axis}, a part of an axis")
    return axis.name


def _kind(sharding: Sharding) -> dict[str, Any]:
    if sharding.reduction == "sum":
        return {}
    import jax.sharding

    kinds = getattr(jax.sharding, "UnreducedKind", None)  # from jax 0.12 on
    if kinds is None:
        raise table.CANNOT_SAY.error(notation="this version's PartitionSpec", what=f"a partial {sharding.reduction}")
    return {"unreduced_kind": kinds[sharding.reduction.upper()] if sharding.reduction.upper() in kinds.__members__
            else kinds[sharding.reduction]}  # fmt: skip


def to_jax(sharding: Sharding, devices: Sequence[Any]) -> Any:
    """Convert to a ``NamedSharding`` over ``devices`` (device d of the sharding is ``devices[d]``).

    A sharding that parts of axes split gets a mesh of those parts.

    Raises:
        ShardingError: JAX has no word for it, or there are fewer devices than it names.
    """
    import numpy as np
    from jax.sharding import Mesh as JaxMesh
    from jax.sharding import NamedSharding

    from shardpass.sharding import common_mesh

    if sharding.kind is Kind.TILED and any(axis.size is not None for axis in sharding.used):
        finer = common_mesh([sharding], sharding.mesh)
        sharding = (sharding.on(finer) if finer is not None else None) or sharding
    spec = to_partition_spec(sharding)
    mesh = sharding.mesh or Mesh((("device", len(devices)),))
    if len(devices) != mesh.size:
        hint = "give one device for each that the sharding names"
        raise table.NUM_DEVICES.error(sharding=str(sharding), has=mesh.size, asked=len(devices), hint=hint)
    grid = np.empty(mesh.size, dtype=object)
    for place, device in enumerate(mesh.order.tolist()):
        grid[place] = devices[device]
    return NamedSharding(JaxMesh(grid.reshape(mesh.shape), mesh.names), spec)
