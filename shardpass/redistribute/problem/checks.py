"""``make_problem``: check the arguments of a redistribution, and convert them to index arrays."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.table_sharding import RANK
from shardpass.element_types import ELEMENT_TYPES, ElementType, element_type
from shardpass.redistribute.problem.problem import Distribution, Problem
from shardpass.redistribute.problem.tiling import Tiling, tiling_of
from shardpass.sharding import AxisRef, Sharding, TupleSharding, parse_sharding
from shardpass.sharding.common import unreduced_over_all

MOST_BYTES = 1 << 55  # bytes received are counted in 64 bits


def make_problem(
    shape: tuple[int, ...],
    element: str,
    source: Sharding | TupleSharding | str,
    target: Sharding | TupleSharding | str,
    num_devices: int | None = None,
) -> Problem:
    """Check the parts of a problem. Raises ShardpassError (SP0xx, SP4xx)."""
    given_source, given_target = (
        _of_rank(_sharding(given, side), len(shape)) for given, side in ((source, "source"), (target, "target"))
    )
    if any(n < 0 for n in shape):
        raise table.SHAPE.error(text="x".join(map(str, shape)), reason="a size is negative")
    size = find_element_type(element).bytes(math.prod(shape))
    if size >= MOST_BYTES:
        raise table.SHAPE.error(text="x".join(map(str, shape)), reason=f"it has {size} bytes, too many to count")
    devices = _devices(given_source, given_target, num_devices)
    given_source, given_target = (unreduced_over_all(s, len(shape), devices) for s in (given_source, given_target))
    sides = (_distribution(given_source, shape, devices), _distribution(given_target, shape, devices))
    problem = Problem(tuple(shape), find_element_type(element), *sides, devices)
    kept = problem.is_kept or _summed_axes(given_target) <= _summed_axes(given_source)
    if given_target.unreduced and not (kept and given_target.reduction == given_source.reduction):
        raise table.UNREDUCED.error(source=str(given_source), target=str(given_target))
    return problem


def _summed_axes(sharding: Sharding) -> set[tuple[AxisRef, int]]:
    """Return the axes of the partial sums with their sizes: axes of two meshes may share a name."""
    return {(ref, sharding.mesh.ref_size(ref)) for ref in sharding.unreduced} if sharding.mesh else set()


def find_element_type(name: str) -> ElementType:
    """Look an element type up. Raises ShardpassError (SP405)."""
    try:
        return element_type(name)
    except KeyError:
        known = ", ".join(row.mlir for row in ELEMENT_TYPES)
        raise table.ELEMENT_TYPE.error(name=name, known=known) from None


def _sharding(given: Sharding | TupleSharding | str, side: str) -> Sharding:
    sharding = parse_sharding(given) if isinstance(given, str) else given
    if isinstance(sharding, TupleSharding) or sharding.is_manual or sharding.is_unknown or sharding.manual:
        raise table.NO_TILES.error(side=side, sharding=str(sharding))
    return sharding


def _of_rank(sharding: Sharding, rank: int) -> Sharding:
    """Fit ``sharding`` to ``rank`` dimensions: tile counts that are all 1 fit any rank, named dimensions do not.

    Raises ShardpassError (SP030).
    """
    if len(sharding.dims) in (0, rank) or not sharding.is_replicated:  # others are checked when tiles are made
        return sharding
    if sharding.notes.named:
        raise RANK.error(sharding=str(sharding), dims=len(sharding.dims), rank=rank)
    return replace(sharding, dims=((),) * rank)


def _devices(source: Sharding, target: Sharding, asked: int | None) -> int:
    known = [n for n in (source.num_devices, target.num_devices, asked) if n is not None]
    if not known:
        if source.is_maximal or target.is_maximal:
            raise table.DEVICES_UNKNOWN.error(source=str(source), target=str(target))
        return 1
    if len(set(known)) > 1:
        here = source.num_devices or target.num_devices
        there = target.num_devices if target.num_devices not in (None, here) else asked
        raise table.DEVICES_DIFFER.error(source=here, target=there)
    for sharding in (source, target):
        if sharding.is_maximal and sharding.device is not None and sharding.device >= known[0]:
            raise table.DEVICE_OUT_OF_RANGE.error(
                device=sharding.device, sharding=str(sharding), devices=known[0], last=known[0] - 1
            )
    return known[0]


def distribution_over(
    shape: tuple[int, ...], given: Sharding | TupleSharding | str, devices: int | None, side: str
) -> Distribution:
    """Build one side of a redistribution between device sets. Raises ShardpassError (SP0xx, SP401 to SP406, SP418)."""
    sharding = _of_rank(_sharding(given, side), len(shape))
    if any(n < 0 for n in shape):
        raise table.SHAPE.error(text="x".join(map(str, shape)), reason="a size is negative")
    if sharding.unreduced:
        raise table.SUMS_BETWEEN_SETS.error(side=side, sharding=str(sharding))
    if devices is not None and sharding.num_devices not in (None, devices):
        raise table.DEVICE_LIST_LENGTH.error(side=side, listed=devices, over=sharding.num_devices)
    count = _devices(sharding, sharding, devices)
    return _distribution(sharding, shape, count)


def _distribution(sharding: Sharding, shape: tuple[int, ...], devices: int) -> Distribution:
    if sharding.is_maximal:
        whole = Tiling((1,) * len(shape), np.zeros((devices, len(shape)), np.int64))
        return Distribution(sharding, whole, tuple(shape), sharding.device)
    tiling = tiling_of(sharding, len(shape), devices)
    return Distribution(sharding, tiling, sharding.tile_shape(shape), None)
