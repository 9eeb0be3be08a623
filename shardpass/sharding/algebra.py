"""Shardings of views and combinations of arrays: refinement, composition, transpose, reshape.

Each law is stated on the tiles that devices hold, and tests compare it with them on every device:

* ``refines(a, b)``: where the counts divide the sizes, each device's tile under a lies in its tile under b;
* ``compose(a, b)``: the device that holds tiles i and j of two operands holds tile (i, j) of their outer combination
  (the ONNX documents' rule: the devices of an output shard are the intersection of those of its input shards);
* ``transpose``: dimension k of the result is dimension perm[k];
* ``reshape``: every device holds the same elements before and after, so that nothing need be sent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding import digits as dg
from shardpass.sharding.axes import Axes, joined, refs
from shardpass.sharding.common import common_mesh
from shardpass.sharding.digits import Digit, Ints
from shardpass.sharding.from_devices import from_grid
from shardpass.sharding.mesh import Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind


def slices(sharding: Sharding, shape: Sequence[int], device: int) -> tuple[slice, ...]:
    """Return the part of an array of ``shape`` on ``device``, without padding (so it may be empty).

    Raises:
        ShardingError: a rank or a device that the sharding has not, or a sharding without tiles.
    """
    count = sharding.num_devices
    if device < 0 or (count is not None and device >= count):
        hint = f"use a device from 0 to {(count or 1) - 1}"
        raise table.NUM_DEVICES.error(sharding=str(sharding), has=count, asked=device + 1, hint=hint)
    row = sharding.tile_offsets(shape)[device if count is not None else 0].tolist()
    tile = sharding.tile_shape(shape)
    return tuple(slice(at, min(at + size, n)) for at, size, n in zip(row, tile, shape, strict=True))


def from_tiles(index: Ints, counts: Sequence[int]) -> Sharding:
    """Return the sharding in which device d holds tile ``index[d]`` of a grid of ``counts``. int64 [devices, rank].

    Raises:
        ShardingError: a tile without a device, or tiles with different numbers of devices.
    """
    n, counts = len(index), tuple(counts)
    tiles = np.ravel_multi_index(tuple(index.T), counts) if counts else np.zeros(n, dtype=np.int64)
    holders = np.bincount(tiles, minlength=math.prod(counts))
    if holders.min() != holders.max():
        few, many = int(np.argmin(holders)), int(np.argmax(holders))
        named = [tuple(int(k) for k in np.unravel_index(t, counts)) for t in (few, many)]
        raise table.UNEQUAL_GROUPS.error(
            first=named[0], few=int(holders[few]), second=named[1], many=int(holders[many])
        )
    order = np.argsort(tiles, kind="stable").astype(np.int64)
    copies = int(holders[0])
    if n == 1:
        return Sharding.tiled(Mesh((("axis_0", 1),)), [()] * len(counts))
    return from_grid(order, (*counts, copies), (Kind.REPLICATED,)) if copies > 1 else from_grid(order, counts, ())


def refines(finer: Sharding, coarser: Sharding) -> bool:
    """Return whether ``finer`` splits further than ``coarser``: each device's fine tile lies in its coarse tile.

    Raises:
        ShardingError: shardings of different numbers of dimensions or devices.
    """
    if coarser.is_replicated:
        return True
    rank = len(coarser.dims)
    few, many = coarser.tile_counts(rank), finer.tile_counts(rank)
    if any(m % f for m, f in zip(many, few, strict=True)):
        return False
    if finer.is_replicated:
        return all(f == 1 for f in few)
    _same_devices(finer, coarser)
    step = np.array([m // f for m, f in zip(many, few, strict=True)], dtype=np.int64)
    return bool(np.array_equal(finer.tile_index() // step, coarser.tile_index()))


def compose(first: Sharding, second: Sharding) -> Sharding:
    """Return the sharding of an array that combines two operands, each broadcast where the other is split.

    A dimension split by both must be split alike. Copies are intersected: a device holds tile (i, j) of the result if
    it holds tile i of the first and tile j of the second operand.

    Raises:
        ShardingError: two different splits of a dimension, a tile that no device could hold, or unequal groups.
    """
    if first.is_replicated:
        return second
    if second.is_replicated:
        return first
    rank = max(len(first.dims), len(second.dims))
    few, many = first.tile_counts(rank), second.tile_counts(rank)
    _same_devices(first, second)
    one, two = first.tile_index(), second.tile_index()
    for k, (a, b) in enumerate(zip(few, many, strict=True)):
        if a > 1 and b > 1 and not (a == b and np.array_equal(one[:, k], two[:, k])):
            raise table.COMPOSE.error(dimension=k, first=str(first), second=str(second))
    index = np.maximum(one, two)  # the unsplit index is 0
    return _said_with(from_tiles(index, [max(pair) for pair in zip(few, many, strict=True)]), first, second)


def transpose(sharding: Sharding, perm: Sequence[int]) -> Sharding:
    """Return the sharding of the transposed array: dimension k of the result is ``perm[k]`` of the operand.

    Raises:
        ShardingError: ``perm`` is no permutation of the sharding's dimensions.
    """
    if sharding.kind is not Kind.TILED or not sharding.dims:
        return sharding
    if sorted(perm) != list(range(len(sharding.dims))):
        raise table.RANK.error(sharding=str(sharding), dims=len(sharding.dims), rank=len(perm))
    return _with_dims(sharding, tuple(sharding.dims[p] for p in perm))


def reshape(sharding: Sharding, shape: Sequence[int], new_shape: Sequence[int]) -> Sharding | None:
    """Return the sharding of a row-major reshape that keeps the elements of each device; None if impossible.

    Raises:
        ShardingError: shapes of different sizes, or a sharding of another rank.
    """
    shape, new_shape = tuple(shape), tuple(new_shape)
    if math.prod(shape) != math.prod(new_shape):
        raise table.RESHAPE.error(old=shape, new=new_shape)
    counts = sharding.tile_counts(len(shape))
    if sharding.kind is not Kind.TILED or not sharding.dims or sharding.mesh is None:
        return sharding
    if 0 in shape or any(size % count for size, count in zip(shape, counts, strict=True)):
        return None  # padding would stand in other places afterwards
    result = _reshaped(sharding, sharding.mesh, shape, new_shape)
    if result is None and not (sharding.unreduced or sharding.manual or sharding.maximal_axes):
        listed = _one_axis_a_dimension(sharding, shape)  # the mesh's own digits may be cut where the new tiles are not
        assert listed.mesh is not None
        result = _reshaped(listed, listed.mesh, shape, new_shape)
    return result


def _one_axis_a_dimension(sharding: Sharding, shape: tuple[int, ...]) -> Sharding:
    """Return the same tiles on a separate mesh: an axis for each dimension, and one for the copies."""
    devices = sharding.tile_devices()
    axes = tuple((f"axis_{k}", size) for k, size in enumerate(devices.shape))
    mesh = Mesh(axes, devices.reshape(-1))
    return Sharding.tiled(mesh, [[f"axis_{k}"] for k in range(len(shape))])


def _reshaped(sharding: Sharding, mesh: Mesh, shape: tuple[int, ...], new_shape: tuple[int, ...]) -> Sharding | None:
    """Reshape as ``reshape``, as far as the digits of ``mesh`` allow."""
    pending = _flat_digits(mesh, sharding.dims, shape)
    parts = []
    for k, size in enumerate(new_shape):
        low = math.prod(new_shape[k + 1 :])
        parts.append(dg.merge(_leading(pending, low * size, low)))
    if pending:
        return None
    dims = [refs(mesh, part) for part in parts]
    splits = [axes for axes in dims if axes is not None]
    if len(splits) == len(dims):
        return _with_dims(sharding, tuple(splits))
    if sharding.unreduced or sharding.manual or sharding.maximal_axes:
        return None  # its axes would have to be cut anew
    index = np.stack([dg.values(part, mesh.size)[mesh.position] for part in parts], axis=1)
    return from_tiles(index, [dg.total(part) for part in parts])


# A mesh digit that splits a dimension is also a digit of the row-major number of an element, and stays one through a
# reshape: (stride and size there, stride in the mesh).
_Pending = dict[int, tuple[int, int, int]]  # by stride * size in the array


def _flat_digits(mesh: Mesh, dims: tuple[Axes, ...], shape: tuple[int, ...]) -> _Pending:
    out: _Pending = {}
    for k, axes in enumerate(dims):
        top = math.prod(shape[k:])
        for stride, size in (mesh.digit(a) for a in axes):
            out[top] = (top // size, size, stride)
            top //= size
    for top in sorted(out):  # minor digits first: neighbours in both the array and the mesh are one digit
        stride, size, of_mesh = out[top]
        if stride in out and of_mesh == out[stride][1] * out[stride][2]:
            inner = out.pop(stride)
            out[top] = (inner[0], size * inner[1], inner[2])
    return out


def _leading(pending: _Pending, top: int, low: int) -> list[Digit]:
    """Remove the major digits that cut the numbers ``low`` to ``top``, and return them as digits of the mesh."""
    out: list[Digit] = []
    while top > low and top in pending:
        stride, size, of_mesh = pending.pop(top)
        if stride < low:
            if low % stride or top % low or size % (top // low):
                pending[top] = (stride, size, of_mesh)
                return out
            part = top // low
            pending[low] = (stride, size // part, of_mesh)
            stride, size, of_mesh = low, part, of_mesh * (size // part)
        if stride % low:
            pending[top] = (stride, size, of_mesh)
            return out
        out.append((of_mesh, size))
        top = stride
    return out


def _with_dims(sharding: Sharding, dims: tuple[Axes, ...]) -> Sharding:
    mesh = sharding.mesh
    assert mesh is not None
    return Sharding(
        Kind.TILED, mesh, tuple(joined(mesh, axes) for axes in dims), unreduced=sharding.unreduced,
        manual=sharding.manual, maximal_axes=sharding.maximal_axes, reduction=sharding.reduction,
    )  # fmt: skip


def _same_devices(first: Sharding, second: Sharding) -> None:
    if first.num_devices != second.num_devices:
        hint = "give two shardings over the same devices"
        raise table.NUM_DEVICES.error(sharding=str(first), has=first.num_devices, asked=second.num_devices, hint=hint)


def _said_with(sharding: Sharding, *like: Sharding) -> Sharding:
    """Restate ``sharding`` with the axes of ``like``, where these can express it."""
    mesh = common_mesh(like)
    return (sharding.on(mesh) if mesh is not None else None) or sharding
