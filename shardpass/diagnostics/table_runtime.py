"""SP5xx: compile, run, interpreter."""

from __future__ import annotations

from shardpass.diagnostics.core import Code

NOT_PARTITIONED = Code(
    "SP501",
    "the module is not partitioned: {missing}",
    remedy="run the pipeline first: shardpass.run_pipeline(module, 'partition'), or `shardpass-run FILE partition`",
    explanation="Running needs `mhlo.num_partitions` on the module, and on each argument and result of main "
    '`mhlo.sharding = "{manual}"`, `shardpass.global_type` and `shardpass.sharding`. The pipeline `partition` '
    "leaves them.",
)

BAD_BOUNDARY = Code(
    "SP502",
    "{where} of main has type {local}, but a tile of {whole} sharded {sharding} has type {tile}",
    remedy="make the type, `shardpass.global_type` and `shardpass.sharding` agree: a tile is ceil(size / tiles) "
    "along each dimension",
    explanation="The three facts that a partitioned module tells of an argument or result contradict each other. "
    "XLA would run such a module and the result would be put together wrongly.",
)

WRONG_DEVICE_COUNT = Code(
    "SP503",
    "{where} of main is sharded over {sharding_devices} devices ({sharding}), but the module is for {devices}",
    remedy="shard over all devices of the module, or change `mhlo.num_partitions`",
    explanation="Each sharding in a partitioned module is over `mhlo.num_partitions` devices, or says nothing of "
    "devices, as {replicated}.",
)

NO_GLOBAL_VALUE = Code(
    "SP504",
    "{where} of main is sharded {sharding}, of which no whole array can be made",
    remedy="end the program with a value that is tiled, replicated or on one device; a partial sum needs a "
    "constraint that makes it whole",
    explanation="A manual, unknown or unreduced argument or result has no meaning outside the program.",
)

UNSUPPORTED_TYPE = Code(
    "SP505",
    "{where} of main has type {type}, which cannot be run: {reason}",
    remedy="give main ranked tensors of static shape, of an element type that NumPy or ml_dtypes has",
    explanation="Tokens, tuples, dynamic shapes and quantized types have no NumPy array.",
)

LEFT_OVER = Code(
    "SP506",
    "`{op}` is left over from partitioning, and XLA cannot run it",
    remedy="end the pipeline with shardpass-redistribute; the named pipeline `partition` does",
    explanation="A pipeline that stops early leaves custom calls that only later passes understand.",
)

BAD_CHANNEL = Code(
    "SP507",
    "`{op}` has {channel}, but collectives of a partitioned module need a channel handle of type 1",
    remedy="add channel_handle = #stablehlo.channel_handle<handle = K, type = 1> with a K of its own",
    explanation="Without it XLA takes the device ids for replicas, of which a partitioned program has only one.",
)

TOO_FEW_DEVICES = Code(
    "SP510",
    "the program is for {needed} devices, and there are {available} ({platform})",
    remedy="give `--devices {needed}`, or call jax.config.update('jax_num_cpu_devices', {needed}) before JAX is "
    "first used, or pass devices=",
    explanation="JAX makes its devices once, at first use: a number set later has no effect.",
)

COMPILE_FAILED = Code(
    "SP511",
    "XLA refuses the module: {reason}",
    remedy="the message is XLA's own; `shardpass-check` may say more about the program's shardings",
    explanation="The module is valid StableHLO, but XLA's compiler for this platform cannot compile it, for "
    "example an integer all_reduce with `or` on CPU.",
)

RUN_FAILED = Code(
    "SP512",
    "XLA stopped while running the program: {reason}",
    remedy="the message is XLA's own; memory_stats() tells what the program needs on each device",
    explanation="Compiled, but an operation failed at run time: out of memory, or not supported on this platform.",
)

WRONG_ARGUMENT_COUNT = Code(
    "SP520",
    "the program takes {expected} arguments, and {given} are given",
    remedy="give one whole array for each argument of main",
    explanation="place() and calls take the whole arrays in the order of main's arguments.",
)

WRONG_ARGUMENT = Code(
    "SP521",
    "argument {index} must be {expected}, and is {given}",
    remedy="give the whole array, in exactly this shape and element type; nothing is converted silently",
    explanation="place() takes whole arrays. The usual cause is NumPy's float64 where the program has f32, or a "
    "tile in place of the whole.",
)

NOT_PLACED = Code(
    "SP522",
    "argument {index} is not placed for this program: it is {given}, and must be {expected}",
    remedy="pass it through place() first, or call the executable itself with whole arrays",
    explanation="run() takes what place() returned, or results of a run whose shardings are the same.",
)

MANUAL_REGION = Code(
    "SP530",
    "a program with a manual region (`{op}`) cannot run on one device",
    remedy="compare with XLA's own partitioner on as many devices (shardpass.runtime.compile_by_xla)",
    explanation="Inside a manual region the program says what each of several devices does.",
)

INTERPRETER_FAILED = Code(
    "SP540",
    "StableHLO's reference interpreter stopped: {reason}",
    remedy="run on XLA (without --interpreter); the interpreter lacks some operations, and is for small programs",
    explanation="The interpreter ends its process on an operation that it does not know, or when devices wait for "
    "each other for too long; shardpass runs it in a process of its own.",
)

CHECK_NEEDS_WHOLE = Code(
    "SP550",
    "--check needs the program before partitioning, and {file} is partitioned already",
    remedy="give the annotated program and a pipeline: shardpass-run FILE partition --check",
    explanation="--check compares with the unpartitioned program, which a per-device module no longer holds.",
)

DIFFERS = Code(
    "SP551",
    "{count} of {total} results differ from the unpartitioned program; the worst is result {index}: {difference}",
    remedy="run again with --seed {seed} for the same inputs; --interpreter tells whether XLA or the program is at "
    "fault",
    explanation="The partitioned program computes something else. This is a fault of shardpass, or of XLA, or the "
    "program is discontinuous at these inputs.",
)

ADDED_BY_XLA = Code(
    "SP552",
    "XLA's own partitioner put {count} collectives into the compiled program that shardpass did not; the first is "
    "{first}",
    remedy="report it with the module: a per-device program should leave XLA nothing to partition",
    explanation="Every value of a partitioned module is manual, so the collectives of the compiled program must be "
    "those of the module. One that is not costs what no report counts.",
)
