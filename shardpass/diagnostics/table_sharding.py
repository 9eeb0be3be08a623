"""SP0xx: sharding text, meshes and notations."""

from __future__ import annotations

from shardpass.diagnostics.core import ShardpassError, code


class ShardingError(ShardpassError):
    """A mesh or sharding is not well formed, or has no answer to the question."""


class ShardingParseError(ShardingError):
    """Raised for a text that is no sharding. The first diagnostic has the place and an excerpt.

    ``line`` and ``column`` count from 1, within the text that was given to the parser.
    """

    @property
    def line(self) -> int:
        return self.diagnostics[0].place.line

    @property
    def column(self) -> int:
        return self.diagnostics[0].place.column

    @property
    def excerpt(self) -> str:
        return self.diagnostics[0].excerpt


SYNTAX = code("SP001", ShardingParseError)
INTEGER_RANGE = code("SP002", ShardingParseError)
IOTA_SIZE = code("SP003", ShardingParseError)
DEVICE_COUNT = code("SP004", ShardingParseError)
DUPLICATE_DEVICE = code("SP005", ShardingParseError)
DEVICE_IDS = code("SP006", ShardingParseError)
TILE_COUNT = code("SP007", ShardingParseError)
RESHAPE_SIZE = code("SP008", ShardingParseError)
TRANSPOSE = code("SP009", ShardingParseError)
TRANSPOSE_RANK = code("SP010", ShardingParseError)
CONTRADICTION = code("SP011", ShardingParseError)
TOO_LARGE = code("SP012", ShardingParseError)
MESH = code("SP020", ShardingError)
UNKNOWN_AXIS = code("SP021", ShardingError)
SUB_AXIS = code("SP022", ShardingError)
AXIS_TWICE = code("SP023", ShardingError)
AXIS_ORDER = code("SP024", ShardingError)
NEIGHBOURS = code("SP025", ShardingError)
RANK = code("SP030", ShardingError)
NO_TILES = code("SP031", ShardingError)
NUM_DEVICES = code("SP032", ShardingError)
TOO_MANY = code("SP036", ShardingError)
UNEQUAL_GROUPS = code("SP033", ShardingError)
COMPOSE = code("SP034", ShardingError)
RESHAPE = code("SP035", ShardingError)
CANNOT_SAY = code("SP040", ShardingError)
TILE_SIZE = code("SP041", ShardingParseError)
ONNX_SPEC = code("SP042", ShardingError)
CANNOT_WRITE = code("SP050", ShardingError)
