"""SP5xx: compile, run, interpreter."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity, ShardpassError

NOT_PARTITIONED = Code(
    "SP501",
    "the module is not partitioned: {missing}",
    remedy="run the pipeline first: shardpass.run_pipeline(module, 'partition'), or `shardpass-run FILE partition`",
    explanation="To run, a module needs `mhlo.num_partitions`, and on each argument and result of main `mhlo.sharding "
    '= "{manual}"`, `shardpass.global_type` and `shardpass.sharding`. The pipeline `partition` writes all of them.',
)

BAD_BOUNDARY = Code(
    "SP502",
    "{where} of main has type {local}, but a tile of {whole} sharded {sharding} has type {tile}",
    remedy="make the type, `shardpass.global_type` and `shardpass.sharding` agree: along each dimension, a tile has "
    "ceil(size / tiles) elements",
    explanation="The three facts that a partitioned module states about an argument or result contradict each other. "
    "XLA would run such a module, and its results would be assembled wrongly.",
)

WRONG_DEVICE_COUNT = Code(
    "SP503",
    "{where} of main is sharded over {sharding_devices} devices ({sharding}), but the module is for {devices}",
    remedy="shard over all devices of the module, or change `mhlo.num_partitions`",
    explanation="Each sharding in a partitioned module is over `mhlo.num_partitions` devices, or names no devices, as "
    "`{replicated}`.",
)

NO_GLOBAL_VALUE = Code(
    "SP504",
    "{where} of main has the sharding {sharding}, from which no whole array can be assembled",
    remedy="use a tiled, replicated or maximal sharding there; to finish a partial sum, add a sharding constraint "
    "without unreduced axes",
    explanation="A `{manual}`, `{unknown}` or unreduced argument or result has no meaning outside of the program.",
)

UNSUPPORTED_TYPE = Code(
    "SP505",
    "{where} of main has type {type}, which cannot be run: {reason}",
    remedy="give main ranked tensors of static shape and of an element type that NumPy or ml_dtypes has",
    explanation="Tokens, tuples, arrays of dynamic shape and quantized arrays have no counterpart in NumPy.",
)

LEFT_OVER = Code(
    "SP506",
    "`{op}` is left over from partitioning, and XLA cannot run it",
    remedy="end the pipeline with shardpass-redistribute; the named pipeline `partition` does",
    explanation="A pipeline that stops early leaves custom calls that only its later passes replace.",
)

CALLS_PYTHON = Code(
    "SP508",
    "`custom_call @{target}` calls a Python function, which the text of a module does not hold",
    remedy="run the program in the process that lowered it, inside of shardpass.jax.use()",
    explanation="JAX numbers the functions of `pure_callback`, `io_callback` and `debug.print` as it lowers a program, "
    "and hands them to XLA beside the module. Run from its text, the call reaches no function, and ends the process.",
)

BAD_CHANNEL = Code(
    "SP507",
    "`{op}` has {channel}, but collectives of a partitioned module need a channel handle of type 1",
    remedy="add channel_handle = #stablehlo.channel_handle<handle = K, type = 1>, with a different K for each "
    "collective",
    explanation="Without the handle, XLA reads the device ids as ids of replicas, and a partitioned program has only "
    "one replica.",
)

TOO_FEW_DEVICES = Code(
    "SP510",
    "the program is for {needed} devices, and there are {available} ({platform})",
    remedy="give `--devices {needed}`, or call jax.config.update('jax_num_cpu_devices', {needed}) before JAX is first "
    "used, or pass devices=; of several processes, give each more devices",
    explanation="JAX creates its devices once, when it is first used. A number that is set later has no effect.",
)

COMPILE_FAILED = Code(
    "SP511",
    "XLA refuses the module: {reason}",
    remedy="run `shardpass-check` on the program, which may say more than this message of XLA's",
    explanation="The module is valid StableHLO, but XLA's compiler for this platform cannot compile it. Example: an "
    "integer all_reduce with `or` on CPU.",
)

RUN_FAILED = Code(
    "SP512",
    "XLA stopped while running the program: {reason}",
    remedy="compare memory_stats(), which says how much memory the program needs on each device, with the memory of a "
    "device",
    explanation="The program compiled, but an op failed at run time: it ran out of memory, or the platform does not "
    "support it. The message is XLA's own.",
)

WRONG_ARGUMENT_COUNT = Code(
    "SP520",
    "the program takes {expected} arguments, and {given} are given",
    remedy="give one whole array for each argument of main",
    explanation="`place()` and calls take whole arrays, in the order of main's arguments.",
)

WRONG_ARGUMENT = Code(
    "SP521",
    "argument {index} must be {expected}, and is {given}",
    remedy="give the whole array in exactly this shape and element type; shardpass converts no array silently",
    explanation="`place()` takes whole arrays. The usual causes are NumPy's float64 where the program has f32, and a "
    "tile in place of the whole array.",
)

NOT_PLACED = Code(
    "SP522",
    "argument {index} is not placed for this program: it is {given}, and must be {expected}",
    remedy="pass the array through place() first, or call the executable itself with whole arrays",
    explanation="`run()` takes the arrays that `place()` returned, and results of earlier runs that have the right "
    "shardings.",
)

MANUAL_REGION = Code(
    "SP530",
    "a program with a manual region (`{op}`) cannot run on one device",
    remedy="compare with XLA's own partitioner on as many devices (shardpass.runtime.compile_by_xla)",
    explanation="The code of a manual region is the code of one device among several, so it has no meaning on a "
    "single device.",
)

INTERPRETER_FAILED = Code(
    "SP540",
    "StableHLO's reference interpreter stopped: {reason}",
    remedy="run on XLA (without --interpreter); the interpreter lacks some ops, and is meant for small programs",
    explanation="The interpreter ends its process when it meets an op that it does not know, or when devices wait for "
    "each other too long. shardpass runs it in a process of its own.",
)

DEVICES_WAIT = Code(
    "SP541",
    "the devices wait for one another: device {device} waits at {op} for device {other}, which {away}",
    remedy="let all devices of a group choose alike where a branch or a loop has a collective",
    explanation="A collective ends once every device of its group meets it. The program ran on all devices in step, "
    "and with these arguments one of them never comes.",
)

CHECK_NEEDS_WHOLE = Code(
    "SP550",
    "--check needs the program before partitioning, and {file} is partitioned already",
    remedy="give the annotated program and a pipeline: shardpass-run FILE partition --check",
    explanation="`--check` compares the results with those of the unpartitioned program, which a per-device module no "
    "longer contains.",
)

DIFFERS = Code(
    "SP551",
    "{count} of {total} results differ from the unpartitioned program; the worst is result {index}: {difference}",
    remedy="repeat the run with --seed {seed} for the same inputs; add --interpreter to find out whether XLA or the "
    "program is at fault",
    explanation="The partitioned program computes other values than the unpartitioned one. The cause is a fault of "
    "shardpass, a fault of XLA, or a program that is discontinuous at these inputs.",
)

SPECIAL_DIFFERS = Code(
    "SP554",
    "{count} of {total} results differ from the unpartitioned program where inputs hold NaN or infinities: {first}",
    remedy="repeat the run with --seed {seed} for the same inputs; add --interpreter to find out whether XLA or the "
    "program is at fault",
    explanation="`--check` runs the program again with NaN, infinities and -0 in its float arguments. NaN and "
    "infinities must come out where the unpartitioned program has them. The cause is a fault of shardpass, a fault of "
    "XLA, or a program whose result is open with NaN. Where XLA is known to lose a NaN, there is a remark (SP555, "
    "SP557) and no error.",
)

NAN_LOST = Code(
    "SP555",
    "XLA loses NaN in max or min across devices, so {count} of {total} results differ from the unpartitioned program: "
    "{first}; the collectives are {collectives}",
    remedy="add the option nan=exact, as in 'partition{{nan=exact}}', which keeps NaN for an elementwise loop before "
    "and after each of these collectives",
    severity=Severity.REMARK,
    explanation="XLA's CPU client compares floats across devices so that a NaN is lost, or kept, by the device that "
    "has it, under its own partitioner too. With `nan=exact` the results are those of the unpartitioned program: "
    "`--check` has tried that before it makes this remark.",
)

NAN_LOST_ON_ONE_DEVICE = Code(
    "SP557",
    "XLA loses NaN on one device, so {count} of {total} results differ from the unpartitioned program: {first}",
    remedy="where NaN matter on CPU, look for them with isnan before the max, the min or the product with a mask; "
    "nan=exact is about collectives",
    severity=Severity.REMARK,
    explanation="Two parts of XLA's CPU compiler lose NaN, in plain JAX too. A reduction of some thousand elements "
    "goes to a library whose max and min lose NaN: `jnp.max` of 4096 elements with a NaN is a number. The algebraic "
    "simplifier turns a product with a mask, `x * (i == j).astype(x.dtype)` or a `dot_general` that is one, into a "
    "choice of x or 0: 0 times NaN or infinity is 0 there, and NaN by the specification. As tiles are smaller than "
    "whole arrays, one of the two programs may lose a NaN that the other keeps. Without these parts both give the "
    "same: `--check` has tried that before it makes this remark.",
)

NOT_COMPARED = Code(
    "SP556",
    "--check compares no NaN, infinities and -0: {reason}",
    remedy="run parts of the program by themselves to compare these values",
    severity=Severity.REMARK,
    explanation="`--check` runs the program again with NaN, infinities and -0 in its float arguments. That tells "
    "nothing where all results are NaN in the unpartitioned program, or where XLA's partitioner, with which programs "
    "with manual regions are compared, loses NaN itself. A loop that runs until a condition holds might never end. A "
    "reducer such as `x >= y ? x : y` gives with NaN what the order of elements makes of them, which no program "
    "promises. Ordinary numbers were compared.",
)

XLA_DIFFERS = Code(
    "SP558",
    "XLA on one device differs from StableHLO's specification in {count} of {total} results; the worst is result "
    "{index}: {difference}",
    remedy="report the unpartitioned program to XLA; results are compared with StableHLO's interpreter",
    severity=Severity.REMARK,
    explanation="A small program (at most a million steps of elements, floats of 32 bits or more, no custom calls) "
    "runs on StableHLO's interpreter, which is what results are compared with. Where XLA on one device gives other "
    "results, one of its passes changed the program, or the program turns roundings into other numbers, as `floor` "
    "does. The partitioned program passes where it agrees with the interpreter. Where it gives what XLA gives on one "
    "device, it is run on the interpreter and judged by that.",
)

PEER_FAILED = Code(
    "SP553",
    "the partitioner {way} made no program of this: {reason}",
    remedy="compare with another, as in --against xla, or with none",
    explanation="Another partitioner runs in a process of its own, on virtual CPU devices. Some refuse what they "
    "cannot partition, some end their process.",
)

ADDED_BY_XLA = Code(
    "SP552",
    "XLA's own partitioner added {count} collectives to the compiled program; the first is {first}",
    remedy="report this with the module: a per-device program should leave XLA nothing to partition",
    explanation="Every value of a partitioned module is manual, so the collectives of the compiled program must be "
    "those of the module. Reports do not count the bytes of a collective that XLA adds.",
)


class Disagreement(ShardpassError):
    """The processes of a program do not run the same program: none of them may go on."""


PROGRAMS_DIFFER = Code(
    "SP560",
    "the processes have different partitioned programs of `{name}`: {found}",
    remedy="run the same Python program with the same versions in every process; constants of the program, and the "
    "order of sets and of files in a folder, must not depend on the process",
    explanation="Before XLA compiles a program over the devices of several processes, each process shows the others a "
    "hash of the partitioned module. Collectives of different programs would wait for each other, or mix their data. "
    "`none (SPnnn)` in place of a hash says that the process could not partition the program.",
    exception=Disagreement,
)

NOBODY_CAME = Code(
    "SP561",
    "the other processes did not compile `{name}` within {seconds} s: {reason}",
    remedy="call the same functions, in the same order, in every process; look at the output of the process that is "
    "missing",
    explanation="A program over the devices of several processes is compiled by each of them. One that does not "
    "reach the call, or has ended, would let the others wait in the first collective.",
    exception=Disagreement,
)

PROCESS_LOST = Code(
    "SP562",
    "another process of the program is gone: {reason}",
    remedy="look at the output of the process that ended first, then start all processes again",
    explanation="A collective over several processes failed, as the connection to one of them was closed. The process "
    "was killed (often by the system, for want of memory), or it ended with an error of its own.",
)

UNSHARED = Code(
    "SP563",
    "the program is for {needed} devices, which {processes} processes cannot share equally",
    remedy="start as many processes as divide {needed}, or pass devices=",
    explanation="Where there are more devices than a program needs, it runs on the first of each process, the same "
    "number of each.",
)

CANNOT_JOIN = Code(
    "SP564",
    "this process cannot join the others: {reason}",
    remedy="start the processes with `python -m tools.run_distributed`, or set JAX_COORDINATOR_ADDRESS (host:port of "
    "process 0), SHARDPASS_PROCESSES and SHARDPASS_PROCESS in each",
    explanation="The processes of a program find each other at the address of process 0, before JAX is first used.",
)

PROCESS_ENDED = Code(
    "SP565",
    "process {index} of {count} {how} after {seconds:.0f} s; the others were stopped",
    remedy="look at the lines that begin with [{index}]",
    explanation="`tools/run_distributed.py` stops all processes of a program when one of them fails: the others would "
    "wait for it in a collective.",
)
