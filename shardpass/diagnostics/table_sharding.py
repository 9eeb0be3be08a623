"""SP0xx: sharding text, meshes and notations."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError


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


SYNTAX = Code(
    "SP001",
    "expected {expected}, found {found}",
    "{hint}",
    explanation="The text does not follow the grammar of shardings. Examples: `{replicated` lacks its closing brace, "
    "and `{devices=[2,2]<=[4], last_tile_dim_replicate}` has a comma between attributes, where a blank belongs. XLA "
    "drops such an annotation silently and compiles the value as if it had none.",
    exception=ShardingParseError,
)
INTEGER_RANGE = Code(
    "SP002",
    "the integer {value} does not fit in 64 bits",
    "use device ids and sizes of at most 9223372036854775807",
    explanation="Example: `{maximal device=99999999999999999999}`.",
    exception=ShardingParseError,
)
IOTA_SIZE = Code(
    "SP003",
    "the tile counts make {tiles} tiles but the iota lists {devices} devices",
    "{hint}",
    explanation="In `{devices=[4,2]<=[16]}` the tile counts make 8 tiles while the iota lists 16 devices. XLA accepts "
    "the text, and aborts the process when it needs the list of devices.",
    exception=ShardingParseError,
)
DEVICE_COUNT = Code(
    "SP004",
    "the tile counts make {tiles} tiles but {devices} devices are listed",
    "{hint}",
    explanation="The list must name exactly one device for each tile. With too many, as in `{devices=[2]0,1,2}`, XLA "
    "writes past its buffer; with too few it fills the rest with device 0.",
    exception=ShardingParseError,
)
DUPLICATE_DEVICE = Code(
    "SP005",
    "device {device} is listed {times} times",
    "list each device once; to let several devices hold the same tile, add last_tile_dim_replicate",
    explanation="In `{devices=[2,2]0,1,1,3}` device 1 would have to hold two tiles.",
    exception=ShardingParseError,
)
DEVICE_IDS = Code(
    "SP006",
    "the {count} devices must be 0 to {last}: {missing} is missing, {extra} is out of range",
    "list every device of the program once; devices are partition ids, counted from 0",
    explanation="`{devices=[2]4,5}` leaves out devices 0 and 1. A sharding names each device of the program once.",
    exception=ShardingParseError,
)
TILE_COUNT = Code(
    "SP007",
    "tile count {count} of dimension {dimension} is less than 1",
    "give each dimension a tile count of at least 1; a dimension that is not split has the tile count 1",
    explanation="Example: `{devices=[2,0]0,1}`. A tile count says into how many tiles a dimension is cut.",
    exception=ShardingParseError,
)
RESHAPE_SIZE = Code(
    "SP008",
    "the shape of the iota has the size {size}, which is less than 1",
    "write sizes after <= whose product is the number of devices",
    explanation="Example: `{devices=[4,2]<=[0]}`, an iota that lists no devices.",
    exception=ShardingParseError,
)
TRANSPOSE = Code(
    "SP009",
    "T({perm}) is not a permutation of 0 to {last}",
    "name each dimension of the iota's shape once in T(..)",
    explanation="Example: `{devices=[4,2]<=[2,4]T(0,0)}` names dimension 0 twice. XLA aborts the process when it "
    "meets this text.",
    exception=ShardingParseError,
)
TRANSPOSE_RANK = Code(
    "SP010",
    "the iota has {reshape} dimensions but T(..) names {perm}",
    "name each dimension of the iota's shape once in T(..)",
    explanation="Example: `{devices=[4,2]<=[2,4]T(1,0,1)}` transposes two dimensions with three numbers.",
    exception=ShardingParseError,
)
CONTRADICTION = Code(
    "SP011",
    "{message}",
    "{hint}",
    explanation="Two attributes of one sharding contradict each other, or a required attribute is missing. Examples: "
    "`{manual devices=[2]0,1}`, `{devices=[2,2]<=[4] maximal}`, and `{shard_as 3}` without tile counts.",
    exception=ShardingParseError,
)
TOO_LARGE = Code(
    "SP012",
    "the order of {devices} devices must be listed one by one, and at most {limit} devices may be listed",
    "choose tile counts that cut the iota at its own dimensions",
    explanation="In `{devices=[4,3]<=[2,6]T(1,0)}` the counts 4 and 3 do not cut [6,2] at its dimensions, so the "
    "order of the devices has no shorter form than a list. Lists have a limit.",
    exception=ShardingParseError,
)
MESH = Code(
    "SP020",
    "{message}",
    "{hint}",
    explanation="The axes of a mesh have different names and sizes of at least 1. A mesh of n devices that lists "
    "device ids lists each of 0 to n - 1 once.",
    exception=ShardingError,
)
UNKNOWN_AXIS = Code(
    "SP021",
    "the mesh has no axis {axis}; its axes are {axes}",
    "{hint}",
    explanation="Example: a sharding over `mesh['x'=2,'y'=4]` names an axis `'z'`.",
    exception=ShardingError,
)
SUB_AXIS = Code(
    "SP022",
    "sub-axis {axis}: {message}",
    "write 'x':(pre)size such that pre times size divides the size of x; pre is the product of the more major parts",
    explanation="Example: `'x':(3)2` is no part of an axis of 4, because 3 times 2 does not divide 4.",
    exception=ShardingError,
)
AXIS_TWICE = Code(
    "SP023",
    "axis {axis} is used twice: by {first} and by {second}",
    "use each axis once: to split one dimension, or as one of replicated, unreduced and manual",
    explanation="Example: `[{'x'}, {'x'}]` splits both dimensions over the same devices, which would leave tiles that "
    "no device holds.",
    exception=ShardingError,
)
AXIS_ORDER = Code(
    "SP024",
    "the {kind} axes are not in the order of the mesh",
    "write {kind}={{{order}}}",
    explanation="Example: `manual={'b','a'}` over `mesh['a'=2,'b'=4]`. XLA aborts the process when it meets this text.",
    exception=ShardingError,
)
NEIGHBOURS = Code(
    "SP025",
    "{major} and {minor} in {where} are neighbouring parts of one axis and must be merged",
    "write {joined}",
    explanation="Example: `{'x':(1)2, 'x':(2)2}` must be written `'x':(1)4`. XLA aborts the process when it meets the "
    "unmerged form.",
    exception=ShardingError,
)
RANK = Code(
    "SP030",
    "{sharding} splits {dims} dimensions, but the array has {rank}",
    "give one tile count for each dimension of the array",
    explanation="Example: `{devices=[2,1]0,1}`, which has two tile counts, on an array of three dimensions.",
    exception=ShardingError,
)
NO_TILES = Code(
    "SP031",
    "{sharding} assigns no tiles: {why}",
    "{hint}",
    explanation="Someone asked for the tile, the offsets or the device groups of a sharding that does not define "
    "them, such as `{unknown}`.",
    exception=ShardingError,
)
NUM_DEVICES = Code(
    "SP032",
    "{sharding} is over {has} devices, not {asked}",
    "{hint}",
    explanation="Example: a sharding over 8 devices was used in a program that runs on 4.",
    exception=ShardingError,
)
TOO_MANY = Code(
    "SP036",
    "a base offset map for {devices} devices is too large; at most {limit} rows are made",
    "ask for the tile shape or the text instead: they need no table with a row for each device",
    explanation="shardpass reads and compares iotas over any number of devices, but a base offset map (a table from "
    "each device to the offset of its tile) has a row for each device, and its size is limited.",
    exception=ShardingError,
)
UNEQUAL_GROUPS = Code(
    "SP033",
    "tile {first} is held by {few} devices and tile {second} by {many}",
    "give every tile to the same number of devices, at least one",
    explanation="An ONNX sharding may give one shard to two devices and another to three, and the composition of two "
    "shardings may leave a tile without a device. A grid of devices, as XLA and shardpass use it, expresses neither.",
    exception=ShardingError,
)
COMPOSE = Code(
    "SP034",
    "dimension {dimension} is split in two ways: by {first} and by {second}",
    "give both operands the same split of a dimension that both have",
    explanation="Two operands of an elementwise op have different splits of a dimension that both of them have. Each "
    "operand may split the dimensions along which the other is broadcast; a dimension that both split must have the "
    "same number of tiles on the same devices in both.",
    exception=ShardingError,
)
RESHAPE = Code(
    "SP035",
    "a reshape from {old} to {new} changes the number of elements",
    "give two shapes with the same number of elements",
    explanation="Someone asked for the sharding of a reshaped array, and the two shapes have different numbers of "
    "elements.",
    exception=ShardingError,
)
CANNOT_SAY = Code(
    "SP040",
    "{notation} cannot express {what}",
    "choose another notation: a table in docs/sharding.md lists what each one can express",
    explanation="Notations differ in what they can express. A distributed type has no partial sums, ONNX has no "
    "manual axes, and in an XLA sharding no device holds two shards and all replica groups have one size.",
    exception=ShardingError,
)
TILE_SIZE = Code(
    "SP041",
    "{parts} tiles of {tile} are {product}, not {size}",
    "make the tile size times the sizes of the axes equal to the global size",
    explanation='Example: `[32{"x"}100]` over an axis `x` of 4, where four tiles of 32 make 128 and not 100.',
    exception=ShardingParseError,
)
ONNX_SPEC = Code(
    "SP042",
    "the ONNX sharding spec contradicts itself: {message}",
    "list one device, or one key of the device map, for each shard, in row-major order of the split dimensions",
    explanation="Examples: `device = [0, 1, 2]` with a dimension of two shards; an axis that is out of range; a key "
    "that the device map lacks.",
    exception=ShardingError,
)
CANNOT_WRITE = Code(
    "SP050",
    "cannot write {path}: {reason}",
    "name a file in a folder that exists and in which you may write",
    explanation="A picture could not be written to its file.",
    exception=ShardingError,
)
