"""The sharding language: what a sharding means, and every notation for it. No MLIR, no JAX."""

from shardpass.sharding.common import common_mesh
from shardpass.sharding.errors import ShardingError, ShardingParseError
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.parser import parse_sharding
from shardpass.sharding.sdy import parse_sdy, sdy_text
from shardpass.sharding.tuples import TupleSharding

__all__ = [
    "AxisRef",
    "Mesh",
    "Sharding",
    "ShardingError",
    "ShardingParseError",
    "TupleSharding",
    "common_mesh",
    "parse_sdy",
    "parse_sharding",
    "sdy_text",
]
