"""Many arrays from one set of devices to another, in one plan.

Problem: a model has hundreds of weights. Planned one by one, each waits for its own busiest port, and small ones pay a
latency each.

1. Arrays that move together share one linear program and one schedule: bytes of any array may fill an idle port, and
   what goes from one device to another is one message, whatever arrays it belongs to.
2. Without a memory limit all arrays move together. With one, arrays move in *waves*, in the order that frees most first
   (least bytes that arrive for each byte that leaves, on the device that has least room): a source is free when its
   wave is done. Waves are as few as the limit allows, by halving.

The memory of a device is counted over waves: sources that are still needed, targets so far, and one round's messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shardpass.cost.chosen import chosen
from shardpass.cost.machine import Machine
from shardpass.diagnostics import table_redistribute as table
from shardpass.diagnostics.arguments import shown
from shardpass.redistribute.between.plan import TransferPlan
from shardpass.redistribute.between.planner import plan_waves, tiles
from shardpass.redistribute.between.sides import Side, devices_of, make_side, mesh_devices
from shardpass.redistribute.between.waves import MovedArray
from shardpass.redistribute.problem.arguments import element_name_of, shape_of, sharding_of
from shardpass.redistribute.problem.checks import find_element_type
from shardpass.redistribute.terms.limit import read_limit

MOST_WAVES = 64


def plan_reshard_tree(
    tree: Any,
    *,
    source_devices: Any = None,
    target_devices: Any = None,
    machine: str | Machine | None = None,
    memory_limit: int | str | None = "max",
) -> TransferPlan:
    """Plan the transfer of all arrays of ``tree`` together.

    Args:
        tree: nested mappings and lists whose leaves are tuples (shape, element type, source, target), as in
            ``plan_redistribution``. JAX shardings provide the devices of their meshes.
        source_devices, target_devices: the devices of all other shardings.
        machine: as in ``plan_redistribution``.
        memory_limit: "max" or None to move all arrays at once; or the bytes that may be alive at the same time on a
            device, if each source is freed when its arrays have arrived.

    Raises:
        ShardpassError: as ``plan_redistribution``; SP420 for a leaf of another form.
    """
    lists = devices_of(source_devices, "source_devices"), devices_of(target_devices, "target_devices")
    sides: dict[object, Side] = {}
    arrays = [_array(path, leaf, lists, sides) for path, leaf in _leaves(tree, "")]
    limit = read_limit(memory_limit)
    planned_for = chosen(machine)
    if not isinstance(limit, int):
        return plan_waves(arrays, [range(len(arrays))], planned_for, None)
    order = _order(arrays)
    spare = limit - max(tiles(arrays).values(), default=0)
    count = 1 if spare > 0 or len(arrays) < 2 else 2
    while True:
        waves = _cut(order, arrays, count)
        room = spare if count == 1 and spare > 0 else limit // 16
        plan = plan_waves(arrays, waves, planned_for, max(1.0, room / 4))
        if plan.peak_bytes <= limit:
            return plan
        if count >= min(MOST_WAVES, len(arrays)):
            raise table.OVER_LIMIT.error(
                problem=f"{len(arrays)} arrays", limit=limit, least=plan.peak_bytes, way=f"{len(waves)} waves",
                source=_total(arrays, "source"), target=_total(arrays, "target"),
            )  # fmt: skip
        count *= 2


def _array(path: str, leaf: Any, lists: tuple[tuple[int, ...] | None, ...], sides: dict[object, Side]) -> MovedArray:
    if not isinstance(leaf, tuple) or len(leaf) != 4:
        raise table.LEAF.error(path=path or "the tree", given=shown(leaf))
    shape, element, source, target = leaf
    sizes = shape_of(shape)
    own = mesh_devices(source), mesh_devices(target)
    made = []
    for end, listed, of_mesh, name in zip((source, target), lists, own, ("source", "target"), strict=True):
        sharding = sharding_of(end, name, len(sizes))
        devices = of_mesh if of_mesh is not None else listed
        key = (sizes, sharding, devices, name)
        if key not in sides:
            sides[key] = make_side(sizes, sharding, devices, name)
        made.append(sides[key])
    return MovedArray(path, sizes, find_element_type(element_name_of(element)), *made)


def _leaves(tree: Any, path: str) -> Iterable[tuple[str, Any]]:
    if isinstance(tree, Mapping):
        for key, part in tree.items():
            yield from _leaves(part, f"{path}/{key}" if path else str(key))
    elif isinstance(tree, list):
        for number, part in enumerate(tree):
            yield from _leaves(part, f"{path}/{number}" if path else str(number))
    else:
        yield path, tree


def _order(arrays: Sequence[MovedArray]) -> list[int]:
    """Sort the arrays by the ratio of target to source bytes, then by size, ascending."""

    def key(number: int) -> tuple[float, int]:
        source, target = (_bytes(arrays[number], side) for side in ("source", "target"))
        return target / max(source, 1), source + target

    return sorted(range(len(arrays)), key=key)


def _cut(order: Sequence[int], arrays: Sequence[MovedArray], count: int) -> list[list[int]]:
    """Cut ``order`` into ``count`` runs of about equal bytes."""
    sizes = [_bytes(arrays[number], "source") + _bytes(arrays[number], "target") for number in order]
    total, seen = sum(sizes), 0
    waves: list[list[int]] = [[] for _ in range(count)]
    for number, size in zip(order, sizes, strict=True):
        waves[min(count - 1, (seen + size // 2) * count // max(total, 1))].append(number)
        seen += size
    return [wave for wave in waves if wave]


def _bytes(array: MovedArray, side: str) -> int:
    return array.element_type.bytes(math.prod(getattr(array, side).distribution.tile))


def _total(arrays: Sequence[MovedArray], side: str) -> int:
    return sum(_bytes(array, side) for array in arrays)
