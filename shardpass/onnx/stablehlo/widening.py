"""Widen specs that name some of the devices, or groups of different sizes, to shardings over all devices.

StableHLO gives each tile to equally many devices, and every device runs the program. So devices without a shard, and
groups that are too small, get copies where that comes out even; else every device gets the whole tensor. A device that
has a shard by the spec still has it, so no op misses an input.

Example, 4 devices: two shards on device 0 and device 1 become two shards on {0, 2} and {1, 3}. Three shards on 0, 1
and 2 become the whole tensor on all four.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from shardpass.sharding.notations.onnx_spec import ShardingSpec


def is_uneven(spec: ShardingSpec, num_devices: int) -> bool:
    """Return whether the devices of the spec prevent a StableHLO sharding."""
    holders = spec.holders()
    everyone = [device for group in holders for device in group]
    if len(holders) == 1 and len(everyone) == 1:
        return False  # a tensor on a single device, which StableHLO has a word for
    if not set(everyone) <= set(range(num_devices)):
        return False  # an error of its own
    return len(set(everyone)) < num_devices or len({len(group) for group in holders}) > 1


def widened(spec: ShardingSpec, num_devices: int) -> ShardingSpec | None:
    """Return the spec with copies on its missing devices; None if shards would have unequal numbers of copies."""
    holders = [list(dict.fromkeys(group)) for group in spec.holders()]
    each, rest = divmod(num_devices, len(holders))
    named = [device for group in holders for device in group]
    if rest or len(set(named)) < len(named) or max(map(len, holders)) > each:
        return None
    free = (device for device in range(num_devices) if device not in set(named))
    missing = [index for index in range(each) for group in holders if index >= len(group)]
    for _ in missing:
        min(holders, key=len).append(next(free))
    groups = {-1 - k: tuple(sorted(group)) for k, group in enumerate(holders)}
    return replace(spec, device=tuple(groups), groups=MappingProxyType(groups))


def whole(spec: ShardingSpec, num_devices: int) -> ShardingSpec:
    """Make a spec for the whole tensor on all devices."""
    return replace(spec, device=(-1,), groups=MappingProxyType({-1: tuple(range(num_devices))}), dims=())
