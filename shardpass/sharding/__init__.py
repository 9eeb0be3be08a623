"""The sharding language: the model of a sharding and its notations, without MLIR and JAX.

The model (``mesh``, ``model``, ``meaning``, ``tuples``, ``from_devices``, ``common``) is below the notations
(``notations``) and imports none of them: it prints XLA's canonical text, and reads no text.
"""

from shardpass.sharding.common import common_mesh
from shardpass.sharding.errors import ShardingError, ShardingParseError
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.named_mesh import parse_mesh
from shardpass.sharding.notations.partition_spec import parse_sharding
from shardpass.sharding.notations.sdy import parse_sdy, sdy_text
from shardpass.sharding.tuples import TupleSharding

__all__ = [
    "AxisRef",
    "Mesh",
    "Sharding",
    "ShardingError",
    "ShardingParseError",
    "TupleSharding",
    "common_mesh",
    "parse_mesh",
    "parse_sdy",
    "parse_sharding",
    "sdy_text",
]
