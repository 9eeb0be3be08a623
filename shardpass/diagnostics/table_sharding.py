"""SP0xx: sharding text, meshes and notations."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError


class ShardingError(ShardpassError):
    """A mesh or sharding that is not well formed, or that cannot mean what was asked of it."""


class ShardingParseError(ShardingError):
    """Text that is not a sharding. The place and the excerpt of the first diagnostic say where.

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


SYNTAX = Code(
    "SP001",
    "expected {expected}, found {found}",
    "{hint}",
    explanation="The text is not a sharding. `{devices=[2,2]0,1,2}`, `{replicated`, and "
    "`{devices=[2,2]<=[4], last_tile_dim_replicate}` (a comma between attributes) are such texts. XLA drops "
    "such an annotation without a word and compiles the value as if it had none.",
    exception=ShardingParseError,
)
INTEGER_RANGE = Code(
    "SP002",
    "{value} does not fit in 64 bits",
    "device ids and sizes are at most 9223372036854775807",
    explanation="An integer of the text is too large: `{maximal device=99999999999999999999}`.",
    exception=ShardingParseError,
)
IOTA_SIZE = Code(
    "SP003",
    "{tiles} tiles but the iota lists {devices} devices",
    "{hint}",
    explanation="In `{devices=[4,2]<=[16]}` the tile counts make 8 tiles while the list holds 16 devices. XLA "
    "accepts the text and aborts the process when the device list is asked for.",
    exception=ShardingParseError,
)
DEVICE_COUNT = Code(
    "SP004",
    "{tiles} tiles but {devices} devices",
    "{hint}",
    explanation="A list must name as many devices as there are tiles. With too many, as in "
    "`{devices=[2]0,1,2}`, XLA writes past its buffer; with too few it fills the rest with device 0.",
    exception=ShardingParseError,
)
DUPLICATE_DEVICE = Code(
    "SP005",
    "device {device} is listed {times} times",
    "list each device once; devices that hold the same tile are said with last_tile_dim_replicate",
    explanation="In `{devices=[2,2]0,1,1,3}` device 1 would have to hold two tiles.",
    exception=ShardingParseError,
)
DEVICE_IDS = Code(
    "SP006",
    "the {count} devices must be 0 to {last}: {missing} is missing, {extra} is out of range",
    "devices are partition ids, counted from 0; name every device of the program",
    explanation="`{devices=[2]4,5}` leaves out devices 0 and 1. A sharding names each device of the program once.",
    exception=ShardingParseError,
)
TILE_COUNT = Code(
    "SP007",
    "tile count {count} of dimension {dimension} is less than 1",
    "a dimension that is not split has the tile count 1",
    explanation="`{devices=[2,0]0,1}`: a dimension cannot be cut into no tiles at all.",
    exception=ShardingParseError,
)
RESHAPE_SIZE = Code(
    "SP008",
    "size {size} in the iota's shape is less than 1",
    "the sizes after <= multiply to the number of devices",
    explanation="`{devices=[4,2]<=[0]}`: the iota would list no devices.",
    exception=ShardingParseError,
)
TRANSPOSE = Code(
    "SP009",
    "T({perm}) is not a permutation of 0 to {last}",
    "name each dimension of the iota's shape once",
    explanation="`{devices=[4,2]<=[2,4]T(0,0)}` repeats a dimension; XLA aborts the process on it.",
    exception=ShardingParseError,
)
TRANSPOSE_RANK = Code(
    "SP010",
    "the iota has {reshape} dimensions but T(..) names {perm}",
    "name each dimension of the iota's shape once",
    explanation="`{devices=[4,2]<=[2,4]T(1,0,1)}`.",
    exception=ShardingParseError,
)
CONTRADICTION = Code(
    "SP011",
    "{message}",
    "{hint}",
    explanation="Two attributes of one sharding contradict each other, or one that is needed is missing: "
    "`{manual devices=[2]0,1}`, `{devices=[2,2]<=[4] maximal}`, `{shard_as 3}`.",
    exception=ShardingParseError,
)
TOO_LARGE = Code(
    "SP012",
    "{devices} devices in an order that must be listed one by one; at most {limit} are",
    "choose tile counts that cut the iota at its own dimensions",
    explanation="In `{devices=[4,3]<=[2,6]T(1,0)}` the counts 4 and 3 do not cut [6,2] at its dimensions, so the "
    "order of the devices can only be listed. That is done up to a limit.",
    exception=ShardingParseError,
)
MESH = Code(
    "SP020",
    "{message}",
    "{hint}",
    explanation="A mesh has axes with different names and sizes of at least 1, and lists each device "
    "0 to size - 1 once.",
    exception=ShardingError,
)
UNKNOWN_AXIS = Code(
    "SP021",
    "the mesh has no axis {axis}; its axes are {axes}",
    "{hint}",
    explanation="A sharding over `mesh['x'=2,'y'=4]` names an axis 'z'.",
    exception=ShardingError,
)
SUB_AXIS = Code(
    "SP022",
    "sub-axis {axis}: {message}",
    "in 'x':(pre)size, pre times size divides the size of x, and pre is the product of the more major parts",
    explanation="`'x':(3)2` cannot be a part of an axis of 4.",
    exception=ShardingError,
)
AXIS_TWICE = Code(
    "SP023",
    "axis {axis} is used twice: by {first} and by {second}",
    "an axis splits one dimension, or is one of replicated, unreduced and manual",
    explanation="`[{'x'}, {'x'}]` would cut both dimensions with the same devices.",
    exception=ShardingError,
)
AXIS_ORDER = Code(
    "SP024",
    "the {kind} axes do not stand in mesh order",
    "write {kind}={{{order}}}",
    explanation="`manual={'b','a'}` over `mesh['a'=2,'b'=4]`. XLA aborts the process on it.",
    exception=ShardingError,
)
NEIGHBOURS = Code(
    "SP025",
    "{major} and {minor} in {where} are neighbouring parts of one axis",
    "write {joined}",
    explanation="`{'x':(1)2, 'x':(2)2}` is `'x':(1)4`. XLA aborts the process on it.",
    exception=ShardingError,
)
RANK = Code(
    "SP030",
    "{sharding} splits {dims} dimensions, but the array has {rank}",
    "give one tile count for each dimension of the array",
    explanation="`{devices=[2,1]0,1}` on an array of three dimensions.",
    exception=ShardingError,
)
NO_TILES = Code(
    "SP031",
    "{sharding} assigns no tiles: {why}",
    "{hint}",
    explanation="A tile, an offset or a device group was asked of a sharding that has none, such as `{unknown}`.",
    exception=ShardingError,
)
NUM_DEVICES = Code(
    "SP032",
    "{sharding} is over {has} devices, not {asked}",
    "{hint}",
    explanation="A sharding of 8 devices was used where the program runs on another number of them.",
    exception=ShardingError,
)
TOO_MANY = Code(
    "SP036",
    "a table of {devices} devices was asked for; at most {limit} rows are made",
    "ask for the tile shape or the text, which need no table",
    explanation="An iota of any number of devices is read and compared, but a base offset map has a row a device.",
    exception=ShardingError,
)
UNEQUAL_GROUPS = Code(
    "SP033",
    "tile {first} is held by {few} devices and tile {second} by {many}",
    "every tile must be held by equally many devices, and by one at least",
    explanation="An ONNX sharding may give one shard to two devices and another to three, and the composition of two "
    "shardings may leave a tile without a device. XLA's grid of devices cannot say either.",
    exception=ShardingError,
)
COMPOSE = Code(
    "SP034",
    "dimension {dimension} is split in two ways: by {first} and by {second}",
    "give both operands the same split of a dimension that both have",
    explanation="Of two operands that are combined element by element, each may split the dimensions that the other "
    "is broadcast along; a dimension that both split must be split alike, in number and in placement.",
    exception=ShardingError,
)
RESHAPE = Code(
    "SP035",
    "a reshape from {old} to {new} changes the number of elements",
    "give shapes of equal size",
    explanation="The sharding of a reshaped array was asked for, with shapes of different sizes.",
    exception=ShardingError,
)
CANNOT_SAY = Code(
    "SP040",
    "{notation} cannot say {what}",
    "use a notation that can: docs/sharding.md has the table of what each one says",
    explanation="Notations differ in what they can say. A distributed type has no partial sums, ONNX has no manual "
    "axes, and an XLA sharding has no device that holds two shards or groups of different sizes.",
    exception=ShardingError,
)
TILE_SIZE = Code(
    "SP041",
    "{parts} tiles of {tile} are {product}, not {size}",
    "tile size times axis sizes is the global size",
    explanation='`[32{"x"}100]` over an axis of 4.',
    exception=ShardingParseError,
)
ONNX_SPEC = Code(
    "SP042",
    "ONNX sharding spec: {message}",
    "one device, or one key of the device map, for each shard in row-major order of the split dimensions",
    explanation="A ShardingSpec contradicts itself: `device = [0, 1, 2]` with a dimension of two shards, an axis out "
    "of range, a key that the device map has not.",
    exception=ShardingError,
)
CANNOT_WRITE = Code(
    "SP050",
    "cannot write {path}: {reason}",
    "name a file in a folder that exists and may be written",
    explanation="The file of a picture could not be written.",
    exception=ShardingError,
)
