"""Codes of the passes: SP2xx import, propagate and check; SP3xx partition."""

from shardpass.diagnostics.core import Code, Severity

NO_MAIN = Code(
    "SP201",
    "the module has no function @main; its functions are: {functions}",
    "rename the entry function to @main",
    explanation="shardpass partitions the function @main and what it calls.",
)
BAD_SHARDING = Code(
    "SP202",
    "this sharding cannot be read: {text}",
    "XLA would drop it silently and compile the value as if it had no annotation",
    explanation="An `mhlo.sharding` string or an `sdy.sharding` attribute does not parse. The note says where and why.",
)
RANK_MISMATCH = Code(
    "SP203",
    "the sharding {text} splits {sharding_rank} dimensions, but the value is {type} and has {rank}",
    "give one tile count for each dimension; a further one needs last_tile_dim_replicate",
)
WRONG_DEVICE_COUNT = Code(
    "SP204",
    "the sharding {text} is over {found} devices, but the module runs on {expected} ({source})",
    "list {expected} devices (add last_tile_dim_replicate where tiles are fewer), or change mhlo.num_partitions",
)
RECURSION = Code(
    "SP205",
    "functions call one another in a circle: {circle}",
    "write the loop as stablehlo.while: StableHLO programs cannot recurse",
)
UNKNOWN_CALLEE = Code("SP206", "call of @{callee}, which the module does not define", "define @{callee}")
DEVICE_OUT_OF_RANGE = Code(
    "SP207",
    "the sharding {text} names device {device}, but the module's devices are 0 to {last}",
    "use device ids below {expected}, or raise mhlo.num_partitions",
)
UNSUPPORTED_SHARDING = Code(
    "SP208",
    "the sharding {text} is {what}, which is not supported on {where}",
    "{hint}",
)
SCOPE_OFF_MESH = Code(
    "SP209",
    "this region is manual over {scope}, which cannot be said with the axes of {mesh}",
    "run shardpass-import on the whole module: it finds a mesh that fits all regions",
)
TUPLE_COUNT = Code(
    "SP210",
    "the sharding {text} has {found} leaves, but the op has {expected} results",
    "write one sharding for each result: {{{{...}}, {{...}}}}",
)
DYNAMIC_SHAPE = Code(
    "SP211",
    "{op} has the type {type}: shapes must be known and static",
    "refine the shapes before (jax.export: call the exported function with concrete arguments)",
)
NO_DEVICE_COUNT = Code(
    "SP212",
    "nothing in the module says on how many devices it runs",
    "add a sharding, or `mhlo.num_partitions = 8 : i32` to the module",
    severity=Severity.REMARK,
    explanation="A module without any annotation is taken as a program for one device.",
)
NO_MESH = Code(
    "SP214",
    "the module has no {attribute}: it was not imported",
    "run shardpass-import first, or the named pipeline `{pipeline}`",
)
NOT_PROPAGATED = Code(
    "SP215",
    "{op} has no sharding",
    "run shardpass-propagate before this pass, or use the named pipeline `partition`",
)
UNEVEN = Code(
    "SP216",
    "dimension {dim} of {type} has size {size}, which {count} shards do not divide: tiles of {tile}, "
    "the last shards hold {padding} elements of padding",
    "choose a size that {count} divides to save {percent:.0f}% of memory and work on this dimension",
    severity=Severity.REMARK,
)
PARTITIONED_ALREADY = Code(
    "SP218",
    "@main is partitioned already: its {where} is a tile of {whole}",
    "start from the whole program, or run only the passes that come after shardpass-partition",
)
TOO_MANY_DEVICES = Code(
    "SP219",
    "{what} has {count} devices; shardpass handles up to {most}",
    "check the sizes of the mesh's axes",
)
BAD_UNSPECIFIED = Code(
    "SP220",
    'backend_config = "{text}" does not name dimensions of {type}',
    "write unspecified_dims=[0,2] with dimensions from 0 to {last}",
)
BAD_NUM_PARTITIONS = Code(
    "SP221",
    "mhlo.num_partitions is {value}; it must be a positive integer",
    "write `mhlo.num_partitions = 8 : i32`",
)
MAIN_FORM = Code(
    "SP222",
    "@main has {count} blocks; it must have one",
    "give @main a body; write branches and loops as stablehlo.if, stablehlo.case and stablehlo.while",
)
DYNAMIC_OP = Code(
    "SP223",
    "{op} takes its shape, or its bounds, from operands: they must be known when the program is partitioned",
    "refine the shapes before (jax.export: call the exported function with concrete arguments)",
)
STRANGE_TYPE = Code(
    "SP224",
    "{op} has the type {type}, which XLA runs no program with",
    "use tensors of the element types that StableHLO specifies: i1 to i64, ui2 to ui64, f8 to f64, complex",
)
NOT_AN_ARRAY = Code(
    "SP225",
    "{where} of @main has the type {type}, which is no array: devices are given tiles of arrays",
    "pass the elements of a tuple one by one; a token of JAX comes from an ordered effect: use an unordered one",
)
OUTSIDE_REGIONS = Code(
    "SP226",
    "{op} is outside of a manual region: it differs from device to device, and the program is of whole arrays",
    "put it into shard_map (sdy.manual_computation), or write what it computes on whole arrays",
)
TRANSFER = Code(
    "SP227",
    "{op} moves data between the host and one device, and does not say what part of the array that is",
    "pass arrays as arguments and results, or use jax.experimental.io_callback",
)
FOREIGN_OP = Code(
    "SP228",
    "{op} is of a dialect that XLA takes no ops of, or was made by Shardy's own passes",
    "write it in stablehlo or chlo; of Shardy, start from the module before its propagation",
)
TOO_MANY_OPS = Code(
    "SP229",
    "a body for each call makes {count} ops of @main and the {calls} calls that it reaches; the most is {most}",
    "write what is called so often as the body of a stablehlo.while (jax.lax.scan)",
    explanation="Each call gets a body of its own. Where each function calls the next twice, the ops double each time.",
)
OWN_ORDER = Code(
    "SP217",
    "the device order of {text} cannot be said with the axes of {mesh}; it is kept, and changed where needed",
    "list the devices in an order that the mesh can say, to save the permutation",
    severity=Severity.REMARK,
)

NO_RULE = Code(
    "SP301",
    "{op} is computed on every device, whole: {why}; {bytes} bytes are gathered for it on each device",
    "constrain its operands to be replicated where that is meant, or add a rule (entry points shardpass.ops)",
    severity=Severity.REMARK,
    explanation="The default for an op without a rule: operands replicated, computed everywhere, result sliced.",
)
TAKEN_WHOLE = Code(
    "SP304",
    "{op} takes {dims} of its operand {operand} ({type}) whole on each device; {bytes} bytes are gathered for that",
    "{hint}; how the op may be split: {note}",
    severity=Severity.REMARK,
    explanation="The operand is split along a dimension that the op's rule cannot split, and nothing else of the op "
    "can be split over the same axes.",
)
MANUAL_SHAPE = Code(
    "SP302",
    "the manual region takes {found}, but a tile of {text} is {expected}",
    "the region's argument must have the shape of a tile",
)
STAYS_IN_LOOP = Code(
    "SP303",
    "the same value is redistributed each time round the loop, {bytes} bytes; done once before, it would have the loop "
    "hold {growth} bytes more",
    "where there is memory, take it out: shardpass-hoist{{most={growth}}}, or constrain the value before the loop",
    severity=Severity.REMARK,
    explanation="Weights that are gathered where they are used, and let go, keep memory small; this is what it costs.",
)
INTERNAL_SHAPE = Code(
    "SP399",
    "the partitioner made {op} of type {found} where {expected} was due: this is a fault of shardpass",
    "please report it with the module",
)
