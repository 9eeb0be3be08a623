"""Codes of the passes: SP2xx import, propagate and check; SP3xx partition."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

NO_MAIN = Code(
    "SP201",
    "the module has no function @main; its functions are: {functions}",
    "rename the entry function to @main",
    explanation="shardpass partitions the function @main and the functions that it calls.",
)
BAD_SHARDING = Code(
    "SP202",
    "this sharding cannot be read: {text}",
    "correct the text as the note says; XLA would drop the annotation silently and compile the value as if it had none",
    explanation="An `mhlo.sharding` string or an `sdy.sharding` attribute does not parse. The note says where and why.",
)
RANK_MISMATCH = Code(
    "SP203",
    "the sharding {text} splits {sharding_rank} dimensions, but the value is {type} and has {rank}",
    "give one tile count for each dimension; for copies of each tile, append a count and last_tile_dim_replicate",
    explanation="Example: `{devices=[2]<=[2]}` on a `tensor<4x8xf32>`; `{devices=[2,1]<=[2]}` splits its rows.",
)
WRONG_DEVICE_COUNT = Code(
    "SP204",
    "the sharding {text} is over {found} devices, but the module runs on {expected} ({source})",
    "list {expected} devices (append a count of copies and last_tile_dim_replicate where there are fewer tiles), or "
    "change mhlo.num_partitions",
    explanation="Every sharding of a module names all devices of the program. The words in parentheses say where the "
    "number of devices was read: `mhlo.num_partitions`, or the first sharding of the module.",
)
RECURSION = Code(
    "SP205",
    "functions call one another in a circle: {circle}",
    "write the repetition as stablehlo.while, because StableHLO programs cannot recurse",
    explanation="Calls are inlined before propagation, which a function that calls itself would never let finish.",
)
UNKNOWN_CALLEE = Code(
    "SP206",
    "this call of @{callee} has no target: the module does not define @{callee} with a body",
    "define @{callee} in the module, or remove the call",
    explanation="A `call` names a function that the module lacks or only declares.",
)
DEVICE_OUT_OF_RANGE = Code(
    "SP207",
    "the sharding {text} names device {device}, but the module's devices are 0 to {last}",
    "use device ids below {expected}, or raise mhlo.num_partitions",
    explanation="Example: `{maximal device=2}` in a module with `mhlo.num_partitions = 2`.",
)
UNSUPPORTED_SHARDING = Code(
    "SP208",
    "the sharding {text} is {what}, which is not supported on {where}",
    "{hint}",
    explanation="Outside of a manual region every value is a whole array, so its sharding must say which tile each "
    "device holds. `{manual}`, manual axes, and partial sums without axes do not say that.",
)
SCOPE_OFF_MESH = Code(
    "SP209",
    "this region is manual over {scope}, which the axes of the mesh {mesh} cannot express",
    "run shardpass-import on the whole module: it finds a mesh whose axes express the manual axes of all regions",
    explanation="A manual region (`shard_map`) names the axes that its code handles by itself. Each of them must be a "
    "whole axis, or a product of sub-axes, of `shardpass.mesh`.",
)
TUPLE_COUNT = Code(
    "SP210",
    "the sharding {text} has {found} leaves, but the op has {expected} results",
    "write one sharding for each result: {{{{...}}, {{...}}}}",
    explanation="An op with several results carries a tuple of shardings, one for each result in order. An op whose "
    "result is a tuple carries one for each array in it, depth first; a single sharding is that of all of them.",
)
DYNAMIC_SHAPE = Code(
    "SP211",
    "{op} has the type {type}: shapes must be known and static",
    "refine the shapes before partitioning (jax.export: call the exported function with concrete arguments)",
    explanation="The shape of a tile is computed from the shape of the array, so every dimension needs a number.",
)
NO_DEVICE_COUNT = Code(
    "SP212",
    "nothing in the module says on how many devices it runs; one device is assumed",
    "add a sharding, or add `mhlo.num_partitions = 8 : i32` to the module",
    severity=Severity.REMARK,
    explanation="A module without any annotation is a program for one device.",
)
NO_MESH = Code(
    "SP214",
    "the module has no {attribute}: it was not imported",
    "run shardpass-import first, or the named pipeline `{pipeline}`",
    explanation="`shardpass-import` writes the common mesh of all shardings onto the module as `shardpass.mesh`, and "
    "the passes after it read that mesh.",
)
NOT_PROPAGATED = Code(
    "SP215",
    "{op} has no sharding",
    "run shardpass-propagate before this pass, or use the named pipeline `partition`",
    explanation="The pass needs a sharding on every array, and `shardpass-propagate` is the pass that gives one to "
    "each.",
)
UNEVEN = Code(
    "SP216",
    "dimension {dim} of {type} has size {size}, which {count} shards do not divide: tiles have size {tile}, and the "
    "last ones hold {padding} elements of padding",
    "{would} would divide, and save {percent:.0f}% of memory and work on this dimension",
    severity=Severity.REMARK,
    explanation="Uneven splits are legal: the array is padded at its end to the number of shards times the tile size, "
    "and padding never reaches a result. The padding costs memory and work. `shardpass check` reports it for "
    "arguments, results and constraints.",
)
PARTITIONED_ALREADY = Code(
    "SP218",
    "@main is partitioned already: its {where} is a tile of {whole}",
    "start from the unpartitioned program, or run only the passes that come after shardpass-partition",
    explanation="The arguments or results of @main carry `shardpass.global_type`, which `shardpass-partition` writes.",
)
TOO_MANY_DEVICES = Code(
    "SP219",
    "{what} has {count} devices; shardpass handles up to {most}",
    "check the sizes of the mesh's axes",
    explanation="The usual cause is a mistyped axis size.",
)
BAD_UNSPECIFIED = Code(
    "SP220",
    'backend_config = "{text}" does not name dimensions of {type}',
    "write unspecified_dims=[0,2] with dimensions from 0 to {last}",
    explanation="A constraint `custom_call @Sharding` may leave dimensions open, so that propagation may split them "
    "further. JAX writes them as `unspecified_dims=[...]`.",
)
BAD_NUM_PARTITIONS = Code(
    "SP221",
    "mhlo.num_partitions is {value}; it must be a positive integer",
    "write `mhlo.num_partitions = 8 : i32` with the number of devices",
    explanation="The attribute on the module says on how many devices the program runs.",
)
MAIN_FORM = Code(
    "SP222",
    "@main has {count} blocks; it must have one",
    "give @main a body of one block; write branches and loops as stablehlo.if, stablehlo.case and stablehlo.while",
    explanation="@main is only declared (no block), or jumps between several blocks.",
)
DYNAMIC_OP = Code(
    "SP223",
    "{op} takes its shape, or its bounds, from operands, but shapes must be known when the program is partitioned",
    "refine the shapes before partitioning (jax.export: call the exported function with concrete arguments)",
    explanation="Example: `stablehlo.real_dynamic_slice`, whose limits are operands. (`stablehlo.dynamic_slice` is "
    "supported: only its start is an operand.)",
)
STRANGE_TYPE = Code(
    "SP224",
    "{op} has the type {type}, which XLA does not accept in a program",
    "use tensors of the element types that StableHLO specifies: i1 to i64, ui2 to ui64, f8 to f64, complex",
    explanation="Examples: `memref<4xf32>`, `vector<4xf32>`, `tensor<4xindex>`.",
)
NOT_AN_ARRAY = Code(
    "SP225",
    "{where} of @main has the type {type}, but only arrays have tiles that devices can hold",
    "pass the elements of a tuple one by one; let tokens order Python callbacks alone",
    explanation="Arguments and results of @main must be arrays. Tuples and futures are not. Tokens are accepted where "
    "nothing but control flow and JAX's Python callbacks uses them, as ordered `io_callback`s do.",
)
OUTSIDE_REGIONS = Code(
    "SP226",
    "{op} is outside of a manual region, where every value is a whole array and no op may differ between devices",
    "move the op into shard_map (sdy.manual_computation), or compute the same on whole arrays",
    explanation="`partition_id` and the collectives have a meaning for one device of several. Outside of a manual "
    "region the program does not speak of devices; shardpass adds the collectives.",
)
TRANSFER = Code(
    "SP227",
    "{op} moves data between the host and one device without saying which part of an array the data is",
    "pass the data as arguments and results of the program, or use jax.experimental.io_callback",
    explanation="`infeed`, `outfeed`, `send` and `recv` carry no sharding, so no device could know its part.",
)
FOREIGN_OP = Code(
    "SP228",
    "{op} belongs to a dialect that XLA does not accept, or was inserted by Shardy's own passes",
    "write the op in stablehlo or chlo; if Shardy's passes ran on the module, start from the module before them",
    explanation="Examples: `math.sin`, `sdy.all_gather`.",
)
HOST_CALL = Code(
    "SP238",
    "`custom_call @{target}` calls the host and {reason}, where shardpass cannot tell which devices make the call",
    "call it outside of the region, or make the region manual over all axes",
    explanation="A callback runs once, on whole arrays, or on each device: inside of a fully manual region, or where "
    "JAX asks for local shards (`partitioned=True`).",
)
TOO_MANY_OPS = Code(
    "SP229",
    "a body for each call makes {count} ops of @main and the {calls} calls that it reaches, {times} times the {size} "
    "that these functions hold; the most is {most}",
    "write what is called so often as the body of a stablehlo.while (jax.lax.scan)",
    explanation="Each call gets a body of its own, which may be split in its own way. Where each function calls the "
    "next twice, the ops double each time. The most is 65536 ops or, if that is more, 1024 for each op of the "
    "functions, and never more than 2097152.",
)
GROUP_SHAPES = Code(
    "SP230",
    "member {text} of sharding group {group} is {type} {where}, but the first member is {first_type} {first_where}",
    "put the value into a group of its own, or leave it out: the members of a group get one sharding, so they have one "
    "shape and are all in the same manual region or all outside",
    explanation="`sdy.sharding_group`, `shard_as` and `shard_like` tie values to one sharding. A sharding splits "
    "dimension by dimension, and in a manual region it splits tiles.",
)
OF_PARTITIONER = Code(
    "SP231",
    "custom_call @{target} is a note of XLA's own partitioner, which would rewrite it after shardpass has partitioned "
    "the program, and the results would be wrong",
    "start from the module before XLA's passes ran; a rotation is written as two slices and a concatenate (jnp.roll)",
    explanation="XLA puts `@_SPMDInternalOp_RotateRight` and its kin in place of patterns that it knows. They say "
    "nothing in StableHLO.",
)
REPLICA_GROUPS = Code(
    "SP232",
    "{op} has no channel, so its groups name replicas, and they name replica {replica}; the program has one replica, 0",
    "give the op a channel_handle inside of shard_map (sdy.manual_computation), where it works over partitions; or "
    "remove it, because over one replica it changes nothing",
    explanation="Without a channel a collective works over replicas: copies of the whole program. A partitioned "
    "program has one, and XLA refuses groups of others.",
)
STRAY_MANUAL = Code(
    "SP233",
    "{op} is marked {{manual}}, but {value} is a whole array outside of manual regions",
    "remove the mark, or put the op between custom_call @SPMDFullToShardShape and @SPMDShardToFullShape "
    "(shard_map writes both)",
    explanation="`{manual}` on an op says that the op works on tiles. Arrays become tiles at "
    "`@SPMDFullToShardShape` alone, and whole again at `@SPMDShardToFullShape`.",
)
NO_RESOURCE = Code(
    "SP234",
    "the module does not hold the elements of this constant: dense_resource<{name}> is missing, or is not {type}",
    "write the module again with its resources (mlir-opt without --mlir-elide-resource-strings-if-larger), or make the "
    "constant an argument",
    explanation="Elements of large constants may stand under `dialect_resources` at the end of the file. A file that "
    "was printed for people lacks them.",
)
REPLICAS = Code(
    "SP235",
    "mhlo.num_replicas is {value}, but a partitioned program has one replica",
    "write `mhlo.num_replicas = 1 : i32`, or remove the attribute; shardings say which data is copied "
    "(last_tile_dim_replicate)",
    explanation="XLA can run copies of a whole program beside its partitions. shardpass splits one program.",
)
OWN_ORDER = Code(
    "SP217",
    "the device order of {text} is not one that the axes of {mesh} can express; the value keeps its own order and is "
    "permuted where other values meet it",
    "list the devices in an order that the axes of the mesh express, to save the permutations",
    severity=Severity.REMARK,
    explanation="Example: `{devices=[4]0,2,3,1}` in a module whose other shardings use `0,1,2,3`.",
)
NOT_REPLICATED = Code(
    "SP237",
    "{what} of the manual region is replicated over {axes}, as its out sharding says, but its value may differ: "
    "devices {one} and {other} should hold the same and may not",
    "make the devices agree before the region ends (psum, all_gather or a broadcast over {axes}), or name {axes} in "
    "the output's sharding (out_specs), so that each device keeps its own tile",
    explanation="A manual region (`shard_map`) promises that all devices hold the same tile of an output whose "
    "sharding names no axis that tells these devices apart. `shardpass-check-replication` follows each value through "
    "the region and reports an output that may break the promise. The notes go back to where the two devices first "
    "differ. Some programs that keep the promise are refused too, for example where values cancel (`x - x`).",
)
REDISTRIBUTED = Code(
    "SP240",
    "{what} ({type}) comes as {source} and is needed as {target}: it is redistributed, and a device receives {bytes} "
    "bytes{times}",
    "make the value as {target} from the start, or change the shardings that it meets (with_sharding_constraint); "
    "shardpass-explain lists the collectives",
    severity=Severity.REMARK,
    explanation="Two shardings of the program do not fit each other, or an op cannot work on the tiles that it is "
    "given. Example: an `add` of an array that is split along its rows and one that is split along its columns over "
    "the same devices. A redistribution settles that, and the remark gives its price. `shardpass-check --strict` makes "
    "it an error, also where no bytes are sent.",
)
GATHERED = Code(
    "SP241",
    "{what} ({type}), which is split as {source}, is gathered in full on every device: {bytes} bytes received{times}, "
    "{whole} bytes on each device",
    "split what needs it along a dimension that this value has too, or keep the value split and let the op reduce",
    severity=Severity.REMARK,
    explanation="After a full gather each device holds the whole array. `shardpass check` reports it.",
)
REPEATED_WORK = Code(
    "SP242",
    "{op} is cut into {parts} parts, and there are {devices} devices: {times} devices compute each part, {wasted:.0f}% "
    "of its {work} multiplications are repeated",
    "split another dimension of its operands, so that each device has a part of its own",
    severity=Severity.REMARK,
    explanation="A product or convolution whose operands are replicated over a mesh axis is computed alike by all "
    "devices along that axis. `shardpass check` reports it.",
)
COSTLY_CONSTRAINT = Code(
    "SP246",
    "this constraint to {sharding} ({type}) holds: a device receives {bytes} bytes to bring the array there and on, "
    "and would receive {saved} bytes less in all if the constraint did not hold",
    "remove the constraint, or move it to the value that you want split so; constraints=free shows the program without",
    severity=Severity.REMARK,
    explanation="What a constraint (`with_sharding_constraint`) returns has its sharding, and what uses it starts from "
    "that copy, though the value may be there in another sharding from which less would be sent. "
    "Example: `with_sharding_constraint(x, P())` of an `x` that its user takes split as `x` is. "
    "`shardpass check` compares the plan with one in which this constraint alone does not hold, under the same "
    "shardings.",
)
UNSPLIT_ARGUMENT = Code(
    "SP243",
    "argument {index} ({type}) is whole on each of {devices} devices: {bytes} bytes instead of {least}",
    "split it over a mesh axis (in_shardings), if memory matters",
    severity=Severity.REMARK,
    explanation="Nothing splits the argument. `shardpass check` reports it where the argument is at least a "
    "hundredth of all arguments' bytes.",
)

UNDIVIDED = Code(
    "SP247",
    "{size} over {count}: the {count} shards over {axes} do not divide dimension {dim} of {type} at {op}, and a device "
    "receives {bytes} bytes because of that",
    "{would} would divide; or split another dimension, or split this one over a number of devices that divides {size}",
    severity=Severity.REMARK,
    explanation="A size that its shards do not divide causes redistributions, often at a later op: the remark sums "
    "what they send. The usual case is attention whose heads an axis of the mesh does not divide. Example: `x @ w` "
    "has a last dimension of 1920, which is split over 8 devices, and is reshaped to 30 heads of 64. A device has 3.75 "
    "heads, so the array is gathered. With 24 or 32 heads nothing would be sent.",
)

NOT_WRITTEN_OUT = Code(
    "SP244",
    "{op} cannot be written out in simpler ops: {reason}",
    "correct the op's attributes and the type of its result, or replace the op by the simpler ones yourself",
    explanation="StableHLO's parser takes ops of old, and CHLO's, without checking that their attributes fit their "
    "operands and results. shardpass replaces such ops by simpler ones before propagation, and MLIR checks these. "
    "Example: `torch_index_select` along dimension 5 of an array of rank 2.",
)

UNREADABLE_ATTRIBUTE = Code(
    "SP245",
    "the value of an attribute cannot be read: {what}",
    "remove the attribute, or say its value as a string",
    explanation="MLIR's Python bindings have no class for some values of attributes: locations and arrays of complex "
    "numbers. Attributes of ops that nobody reads may have such values and keep them. Attributes of a function's "
    "arguments and results may not.",
)

TUPLE_OP = Code(
    "SP248",
    "{op} takes or gives {type}, and shardpass does not know how to take the tuple apart",
    "pass the elements of the tuple one by one",
    explanation="Tuples hold arrays together and have no tile. Import takes apart those of `tuple`, "
    "`get_tuple_element`, `custom_call` and `mhlo.copy`.",
)

NO_RULE = Code(
    "SP301",
    "{op} is computed in full on every device: {why}; {bytes} bytes are gathered for it on each device",
    "constrain its operands to be replicated if that is intended, or add a rule (of a custom call: "
    "shardpass.ops.register_custom_call; for the commands: entry points shardpass.ops)",
    severity=Severity.REMARK,
    explanation="shardpass has no way to split this op. Its operands are gathered, every device computes the full "
    "result, and each keeps its tile of the result.",
)
TAKEN_WHOLE = Code(
    "SP304",
    "{op} needs {dims} of its operand {operand} ({type}) in full on each device; {bytes} bytes are gathered for that",
    "{hint}; how the op may be split: {note}",
    severity=Severity.REMARK,
    explanation="The operand is split along a dimension that the op cannot split, and no other dimension of the op "
    "can be split over the same axes instead. Example: the dimension along which `stablehlo.sort` sorts.",
)
MANUAL_SHAPE = Code(
    "SP302",
    "the manual region takes {found}, but a tile of {text} is {expected}",
    "give the region's argument the shape of a tile",
    explanation="The argument of a manual region is what one device holds of an outer array under the given sharding.",
)
STAYS_IN_LOOP = Code(
    "SP303",
    "the same value is redistributed in every iteration of the loop, {bytes} bytes each time; redistributing it once "
    "before the loop would keep {growth} more bytes alive during the loop",
    "if there is enough memory, hoist it with shardpass-hoist{{most={growth}}}, or constrain the value before the loop",
    severity=Severity.REMARK,
    explanation="Gathering weights where they are used, and releasing them afterwards, saves memory and costs bytes. "
    "The remark gives both numbers.",
)
OPS_CANNOT_BE_LOADED = Code(
    "SP305",
    "the ops of the plugin {name} cannot be loaded from {target}: {reason}",
    "repair or remove the package that provides it; shardpass finds ops through the entry-point group shardpass.ops",
    explanation="A package names a module in the entry-point group `shardpass.ops`, and importing that module fails.",
)
TOO_LONG = Code(
    "SP306",
    "{op} needs the number {number}, which its type, {type}, does not hold",
    "give the array more dimensions, each shorter than that",
    explanation="The result of `get_dimension_size` and the positions of `chlo.top_k` are i32 by definition, and i32 "
    "does not count the elements of a longer dimension. All other ops compute sizes and positions beyond 32 bits as "
    "i64.",
)
BAD_CALL_RULE = Code(
    "SP307",
    "the rule '{rule}' of a custom call cannot be read: {reason}",
    "name each dimension of the operands and results, as in 'i j, j k -> i k' with reduction_factors=('j',)",
    explanation="`shardpass.ops.register_custom_call` takes rules in the manner of einsum: names of dimensions with "
    "spaces between, a comma between operands or results, and one arrow. `...` stands for leading dimensions of any "
    "number, and `(a b)` for a dimension of several factors.",
)
CALL_RULE_MISFIT = Code(
    "SP308",
    "the rule '{rule}' does not fit this call of @{target}: {reason}",
    "correct the rule that was given to shardpass.ops.register_custom_call; `...` takes leading dimensions",
    explanation="Each dimension of the call's operands and results must be one of the rule, and a factor has one size "
    "wherever it stands.",
)
CUSTOM_PARTITIONING = Code(
    "SP309",
    "this call of a custom_partitioning {reason}",
    "partition the program in the process that lowered it; the partition function must take the shardings that it is "
    "given, or return others",
    explanation="`jax.experimental.custom_partitioning` keeps the functions of its author in the process. A text names "
    "them by a number, and only `shardpass.jax`, or `run_pipeline` on the module that JAX lowered, can call them.",
)
NOT_ALONE = Code(
    "SP314",
    "{op} has the sharding {text}, and yet all {devices} devices compute it, as they run one program; its result is "
    "the same",
    "remove the sharding where any device may compute the op; to keep other devices from the work, compile it as a "
    "program of device {device} (jax.device_put its operands there, and jax.jit)",
    severity=Severity.REMARK,
    explanation="`{maximal device=k}` says that a value lies on device k alone. Where an op has this sharding, every "
    "device computes the value, and those other than k drop it. Calls of the host are made by device k alone.",
)
INTERNAL_SHAPE = Code(
    "SP399",
    "the partitioner made {op} with the shape {found} instead of {expected}; this is a fault of shardpass",
    "report the fault with the module",
    explanation="A check after each op that the partitioner rewrote found a shape that is not the tile's.",
)

MATMUL_LOOP = Code(
    "SP310",
    "{kind} of {type} is done in turn with {products}, in {count} blocks: a device holds {held} bytes of it in place "
    "of {whole}; modelled time {in_turn} us in place of {apart} us ({profile})",
    "give matmul-one-way to hold fewer tiles, or matmul-loops=off to leave the two apart",
    severity=Severity.REMARK,
    explanation="`shardpass-collective-matmul` writes a collective and the matrix products beside it as a loop of "
    "collective_permutes and partial products. The time is that of the collective and its products, under the profile "
    "that `matmul-loops` names. What a device holds is the tiles that travel and, where each is a term of a sum, one "
    "term of that sum.",
)

MATMUL_LEFT = Code(
    "SP311",
    "{kind} of {type} and {products} stay apart: in turn, in {count} blocks, they would take {in_turn} us in place of "
    "{apart} us ({profile}), and hold {held} bytes in place of {whole}",
    "give matmul-loops=all to build the loop, or matmul-loops=memory where it holds less",
    severity=Severity.REMARK,
    explanation="A loop of collective_permutes has a latency for each round, and reads the other operand of the "
    "product again and again. With a machine it is built only where the modelled time is less, with "
    "`matmul-loops=memory` where it holds less, and with `matmul-loops=all` always.",
)

MATMUL_PEAK = Code(
    "SP312",
    "with {count} collectives in turn with products, {after} bytes are alive at once in place of {before}",
    "compile the module and read memory_stats() for what XLA needs",
    severity=Severity.REMARK,
    explanation="The most bytes of values that are alive at one op of the block, arguments and results not counted, "
    "before and after `shardpass-collective-matmul`.",
)

MATMUL_NOT_BUILT = Code(
    "SP313",
    "the plan does this product in turn with its {kind}, but a later pass moved the {kind} or gave it another use",
    "name the passes without shardpass-defer, -hoist and cse, to see which one it was",
    severity=Severity.REMARK,
    explanation="`shardpass-partition` plans which products are done in turn with a collective; "
    "`shardpass-collective-matmul` builds these loops after passes that move and merge collectives. A loop whose "
    "collective is no longer beside its products is left out: the plan's memory and time are those with it.",
)

NAN_CHOICE = Code(
    "SP316",
    "there is no way {value!r} to treat NaN",
    "write nan=VALUE with one of {known}",
    explanation="`shardpass-keep-nan`, and the pipeline `partition`, take `nan=xla` (the default) or `nan=exact`.",
)

NAN_TYPE = Code(
    "SP315",
    "`{op}` takes the max or min of {type} across devices, and stays as it is: NaN may be lost there",
    "convert the operand to f16 or wider before the collective",
    severity=Severity.REMARK,
    explanation="`nan=exact` compares floats as integers of the same width, for f16, bf16, f32 and f64. shardpass "
    "itself reduces no narrower floats across devices; a program may, in its manual regions, as with `jax.lax.pmax`.",
)
