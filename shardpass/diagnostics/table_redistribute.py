"""SP4xx: redistribution, from one sharding to another."""

from __future__ import annotations

from shardpass.diagnostics.core import ShardpassError, code


class RedistributionError(ShardpassError):
    """A redistribution has no meaning, or has no plan under the given limits."""


NO_TILES = code("SP401", RedistributionError)
DEVICES_DIFFER = code("SP402", RedistributionError)
DEVICES_UNKNOWN = code("SP403", RedistributionError)
DEVICE_OUT_OF_RANGE = code("SP404", RedistributionError)
ELEMENT_TYPE = code("SP405", RedistributionError)
SHAPE = code("SP406", RedistributionError)
PLANNER = code("SP407", RedistributionError)
UNREDUCED = code("SP408", RedistributionError)
UNPROVEN = code("SP409", RedistributionError)
ATTRIBUTE = code("SP410", RedistributionError)
MEMORY_LIMIT = code("SP412", RedistributionError)
OVER_LIMIT = code("SP413", RedistributionError)
NOT_A_SHARDING = code("SP415", RedistributionError)
DEVICE_COUNT = code("SP416", RedistributionError)
DEVICE_LIST = code("SP417", RedistributionError)
SUMS_BETWEEN_SETS = code("SP418", RedistributionError)
DEVICE_LIST_LENGTH = code("SP419", RedistributionError)
LEAF = code("SP420", RedistributionError)
