"""SP8xx: suggestions."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

NOT_A_PROGRAM = Code(
    "SP801",
    "a program is needed, but {given} was given",
    remedy="give a function and its arguments, what jax.jit returns, what lower() returns, a module, or a file's path",
    explanation="A function is lowered by JAX first; its arguments may be arrays or jax.ShapeDtypeStruct.",
)

SHARDINGS_OF_WHAT = Code(
    "SP806",
    "{names} apply to a function, but {given} was given",
    remedy="give the function itself, or give the shardings to jax.jit",
    explanation="What was lowered or jitted already has its shardings.",
)

NO_MESH = Code(
    "SP802",
    "no mesh of several devices is known, so there is nothing to split the program over",
    remedy="give one: --mesh data=4,model=2 on the command line, mesh=jax.sharding.AbstractMesh(...) in Python",
    explanation="A module that JAX lowered without any sharding runs on one device and names no mesh.",
)

MESH_SIZE = Code(
    "SP803",
    "the mesh {mesh} has {size} devices, but the module runs on {count}",
    remedy="give a mesh of {count} devices, or lower the program without shardings over other devices",
    explanation="The annotations of a module hold for the number of devices that it names.",
)

LIMIT_TOO_LOW = Code(
    "SP804",
    "no shardings were found that keep the memory of a device below {limit}: the least found is {least}",
    remedy="raise the limit to at least {bytes} bytes, use more devices, or make the program hold less (recompute "
    "activations with jax.checkpoint)",
    explanation="Memory is the most bytes alive at once in the plan, arguments included. XLA may need more or less, as "
    "it fuses and reorders.",
)

DOES_NOT_FIT = Code(
    "SP807",
    "the program does not fit the memory of {machine}, {limit}: the least that was found is {least}; the cheapest "
    "shardings are chosen, which hold {cheapest}",
    remedy="use more devices, make the program hold less (recompute activations with jax.checkpoint), or say the "
    "memory of a device (fit=16GiB; fit=none does not look)",
    explanation="Without a limit from the user, that of the machine's file holds. Memory is the most bytes alive at "
    "once in the plan, arguments included. XLA may need more or less, as it fuses and reorders.",
    severity=Severity.REMARK,
)

MESH_TEXT = Code(
    "SP805",
    "{text} is no mesh",
    remedy="write axes with their sizes, as in --mesh data=4,model=2",
    explanation="The command builds a mesh of the devices 0, 1, ... in order; the last axis varies fastest.",
)

EDIT_SAVES = Code(
    "SP810",
    "{sentence} in the program of {partitioner}: with the edit {received}, {memory}",
    remedy="{edit}",
    severity=Severity.REMARK,
    explanation="`shardpass-check --perf --partitioner xla` compiles the program with each such edit before it reports "
    "the edit; of several, each with those before it. `shardpass-explain --partitioner xla` shows the same with diffs.",
)

SENDS_MORE = Code(
    "SP625",
    "this line sends {sent} in the program of {partitioner}, and would send {ours} in that of shardpass",
    remedy="pin the shardings that shardpass decides (shardpass.jax.pin), or say those of the arrays of this line",
    severity=Severity.REMARK,
    explanation="No edit of one annotation was found that saves, and other shardings send less at this line. "
    "`shardpass-explain --partitioner xla --format sarif` reports it.",
)

LINE_RECEIVES = Code(
    "SP626",
    "by this line a device receives {bytes} ({kinds}); the limit is {limit}",
    remedy="split the arrays of this line otherwise (shardpass-suggest looks for shardings), or raise the limit",
    severity=Severity.WARNING,
    explanation="`shardpass-explain --fail-on 64MiB` reports each line of the program by which a device receives so "
    "much or more, and ends with status 1.",
)

HINT_SAVES = Code(
    "SP627",
    "{name} is {now}; an annotation saves {saved} of the {before} that a device receives",
    remedy="{code}",
    severity=Severity.REMARK,
    explanation="`shardpass-explain --hints` plans the program again with each such annotation before it reports it.",
)

NO_SCHEDULE = Code(
    "SP628",
    "the program has no schedule: it is partitioned already, and its plan, which says what it computes, is not known",
    remedy="give the program before it is partitioned, or the HLO that XLA compiled",
    explanation="`shardpass-explain --emit` writes the schedule of a program: its collectives beside what it computes. "
    "A module of shardpass's own says nothing of the times of the latter.",
)

NO_PROFILE = Code(
    "SP629",
    "this is no profile of JAX: {reason}",
    remedy="give the folder that jax.profiler.trace(folder) wrote, or a file NAME.xplane.pb in it",
    explanation="`explain(..., profile_dir=)` and `shardpass-explain --profile-dir` read what JAX's profiler measured.",
)

OTHER_PROFILE = Code(
    "SP630",
    "the profile has no event of a collective of {module}; it has events of these programs: {modules}",
    remedy="give the compiled program that ran (jitted.lower(...).compile(), or its text), or profile this one",
    explanation="Events are joined with collectives by the names of ops in HLO. These are the same where the program "
    "is compiled for the same backend, by the same XLA, from the same source.",
)

NOT_MEASURED = Code(
    "SP631",
    "measured times are joined with a program of HLO, and this report is of shardpass's plan",
    remedy='ask for partitioner="xla" (--partitioner xla), or give the compiled program',
    explanation="`explain(..., profile_dir=)` knows a collective by the name of its op in the HLO that ran.",
)
