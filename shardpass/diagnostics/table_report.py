"""SP62x and SP63x: what reports say of programs, and the files that belong to them."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

SENDS_MORE = Code(
    "SP625",
    "each device receives {sent} in the program of {partitioner}, and {ours} in that of shardpass",
    remedy="pin the shardings that shardpass decides (shardpass.jax.pin)",
    severity=Severity.REMARK,
    explanation="No edit was found that saves, and shardpass's program receives fewer bytes in all. "
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
