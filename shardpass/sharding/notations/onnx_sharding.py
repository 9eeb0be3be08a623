"""Convert ONNX's ShardingSpec to a sharding, and back.

Only the major one of the sizes that were fused into a dimension may be split if the shards are to be blocks. Example:
``device = [-1, -2]``, ``device_map = {-1: [0, 1], -2: [2, 3]}`` and axis 0 in 2 shards is
``{devices=[2,1,2]<=[4] last_tile_dim_replicate}`` for a matrix: each group holds copies of one half.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.from_devices import from_tiles
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.onnx_spec import ShardedDim, ShardingSpec, SimpleSharding
from shardpass.sharding.notes import Kind


def sharding_of_spec(spec: ShardingSpec, rank: int, num_devices: int | None = None) -> Sharding:
    """Convert ``spec`` to the sharding of a tensor of ``rank``, among ``num_devices`` (else among those it names).

    Raises:
        ShardingError: the spec contradicts itself, or has no equivalent sharding (unequal groups, a device with two
            shards, some of the devices only, fused dimensions whose shards are no blocks).
    """
    counts = [1] * rank
    order: list[int] = []
    for dim in spec.dims:
        axis = dim.axis + rank if dim.axis < 0 else dim.axis
        if not 0 <= axis < rank:
            raise table.ONNX_SPEC.error(message=f"axis {dim.axis} is not in [-{rank}, {rank - 1}]")
        if axis in order:
            raise table.ONNX_SPEC.error(message=f"axis {dim.axis} is split twice")
        order.append(axis)
        counts[axis] = _count(dim)
    shards = int(np.prod([counts[axis] for axis in order], dtype=np.int64))
    holders = spec.holders()
    if len(holders) != shards:
        raise table.ONNX_SPEC.error(
            message=f"the dimensions make {shards} shards but {len(holders)} devices are listed"
        )
    devices = [device for group in holders for device in group]
    n = len(devices) if num_devices is None else num_devices
    if len(devices) == 1 and n != 1:
        return Sharding.maximal(devices[0])
    _check_devices(spec, devices, n)
    index = np.zeros((n, rank), dtype=np.int64)
    places = np.unravel_index(np.arange(shards), [counts[axis] for axis in order]) if order else ()
    for shard, group in enumerate(holders):
        for axis, coordinate in zip(order, places, strict=True):
            index[list(group), axis] = coordinate[shard]
    if not any(count > 1 for count in counts):
        return Sharding.tiled(Mesh((("axis_0", n),)), [()] * rank)
    return from_tiles(index, counts)


def _count(dim: ShardedDim) -> int:
    for part in dim.parts:
        if part.num_shards < 1:
            raise table.ONNX_SPEC.error(message=f"axis {dim.axis} is cut into {part.num_shards} shards")
    if any(part.num_shards > 1 for part in dim.parts[1:]):
        what = f"axis {dim.axis}, which is fused of several sizes and split along a minor one"
        raise table.CANNOT_SAY.error(notation="a sharding", what=what)
    return dim.parts[0].num_shards if dim.parts else 1


def _check_devices(spec: ShardingSpec, devices: list[int], n: int) -> None:
    for key, group in spec.groups.items():
        if not group:
            raise table.ONNX_SPEC.error(message=f"the device group {key} is empty")
    wrong = next((d for d in devices if not 0 <= d < n), None)
    if wrong is not None:
        what = f"key {wrong} is not in the device map" if wrong < 0 else f"device {wrong} is not one of {n}"
        raise table.ONNX_SPEC.error(message=what)
    twice = next((d for d in devices if devices.count(d) > 1), None)
    if twice is not None:
        raise table.CANNOT_SAY.error(notation="a sharding", what=f"two shards on device {twice}")
    if len(devices) < n:
        raise table.CANNOT_SAY.error(notation="a sharding", what=f"a split over only {len(devices)} of {n} devices")


def spec_of_sharding(
    sharding: Sharding, rank: int, num_devices: int | None = None, tensor_name: str = ""
) -> ShardingSpec:
    """Convert ``sharding`` to the spec of a tensor of ``rank``.

    Raises:
        ShardingError: ONNX has no word for it: partial sums, manual axes, or ``{replicated}`` over unknown devices.
    """
    if sharding.kind is Kind.MAXIMAL and sharding.device is not None:
        return ShardingSpec((sharding.device,), tensor_name=tensor_name)
    for what, present in (
        ("partial sums", sharding.unreduced or sharding.kind is Kind.UNREDUCED),
        ("manual axes", sharding.manual or sharding.maximal_axes or sharding.kind is Kind.MANUAL),
        ("{unknown}", sharding.kind is Kind.UNKNOWN),
    ):
        if present:
            raise table.CANNOT_SAY.error(notation="an ONNX ShardingSpec", what=what)
    n = sharding.num_devices or num_devices
    if n is None:
        raise table.CANNOT_SAY.error(notation="an ONNX ShardingSpec", what="copies on devices without names")
    counts = sharding.tile_counts(rank)
    if sharding.is_replicated:
        grid = np.arange(n, dtype=np.int64).reshape(1, n)
    else:
        grid = sharding.tile_devices().reshape(int(np.prod(counts)), -1)
    dims = tuple(ShardedDim(k, (SimpleSharding(c),)) for k, c in enumerate(counts) if c > 1)
    if grid.shape[1] == 1:
        return ShardingSpec(tuple(grid[:, 0].tolist()), dims=dims, tensor_name=tensor_name)
    groups = {-1 - k: tuple(row) for k, row in enumerate(grid.tolist())}
    return ShardingSpec(tuple(groups), MappingProxyType(groups), dims, tensor_name)
