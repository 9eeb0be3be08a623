"""SP6xx: hooks into JAX."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

FALLBACK = Code(
    "SP601",
    "XLA partitions {name} instead of shardpass: {reason}",
    remedy="{remedy}. The results are the same; to learn more, lower the function and run shardpass-check on the text "
    "that as_text(debug_info=True) returns",
    severity=Severity.WARNING,
    explanation="Inside `shardpass.jax.use()` a program that shardpass cannot partition is compiled as JAX would have "
    "compiled it. The warning stands at the call that compiled the program, and names the line of the op that could "
    "not be partitioned. `shardpass.jax.stats()` counts these under 'fallback', and lists them under 'reasons'.",
)

STRICT = Code(
    "SP607",
    "shardpass cannot partition {name}: {reason}",
    remedy="{remedy}. Without strict=True, XLA would partition the program",
    explanation="Inside `shardpass.jax.use(strict=True)` a program that would be left to XLA is an error.",
)

UNEVEN = Code(
    "SP604",
    "{where} has shape {shape}, which its sharding {sharding} does not divide",
    remedy="give the value a sharding that divides its shape, with out_shardings= or with_sharding_constraint",
    explanation="Inside a program, arrays may be split unevenly. Arguments and results of a `jax.jit` may not: the "
    "number of tiles must divide each dimension.",
)

NO_AXES = Code(
    "SP605",
    "{where} has the sharding {sharding}, which the axes of one mesh cannot express",
    remedy="give all arguments and results one order of devices, or complete the partial sums before",
    explanation="Shardy's annotations name axes of a mesh, which has one order of devices. Where arguments and results "
    "have several, the program is handed to XLA with GSPMD's annotations. These say no partial sums, nor has Shardy a "
    "word for an array that one device alone holds.",
)

OTHER_SHARDING = Code(
    "SP606",
    "XLA reports the sharding {found} of {where}, which was given {wanted}",
    remedy="give the value a sharding, with in_shardings= or out_shardings=",
    explanation="JAX names the arrays that a program returns by what XLA reports. A sharding that differs from the one "
    "in the partitioned module would be refused by JAX when the function is called, so the program is left to XLA.",
)

NOT_A_SHARDING = Code(
    "SP610",
    "redistribute() needs a jax.sharding.NamedSharding, but was given {given}",
    remedy="write jax.NamedSharding(mesh, PartitionSpec(...)) with an entry for each dimension, or a PartitionSpec "
    "inside of jax.set_mesh(mesh)",
    explanation="The target of a redistribution names mesh axes for each dimension of the array.",
)

OTHER_TREE = Code(
    "SP612",
    "redistribute(): the tree of {name} does not fit the tree of arrays: {reason}",
    remedy="give one sharding for all arrays, or a tree whose every branch is one of the arrays' tree",
    explanation="A tree of shardings may stop at any branch of the tree of arrays: that sharding then is for all "
    "arrays below.",
)

INDIVISIBLE = Code(
    "SP611",
    "redistribute() to {sharding}: dimension {dim} of shape {shape} has size {size}, which {count} tiles do not divide",
    remedy="pad the array, or split another dimension",
    explanation="JAX splits arrays only evenly, and `redistribute()` returns an array of JAX. (Inside a program "
    "shardpass pads arrays that do not divide.)",
)

OTHER_JOB = Code(
    "SP616",
    "redistribute() moves arrays between devices of one job, and {device} is of another backend or job",
    remedy="take both meshes from jax.devices(), or move the bytes by the schedule: plan_reshard_tree(...).json()",
    explanation="Between meshes of different devices pieces are copied within a process, or permuted between the "
    "processes of one `jax.distributed` job. Where JAX knows no way, docs/device_sets.md has the format of a plan.",
)

TRANSFER_FAILED = Code(
    "SP617",
    "redistribute() moved {moved} of {count} arrays to their new devices, and then stopped: {reason}",
    remedy="free memory or mend the connection, and call again with `error.arrays`, in which every array is whole",
    explanation="A source is freed only when its array has arrived as a whole in every process (`donate=True`). The "
    "attribute `arrays` of the error lists the leaves of the tree: those that have moved, and the others where they "
    "were. So do KeyboardInterrupt, SystemExit, and whatever else a handler of signals raises: these stay what they "
    "are, with this message as a note. A process that stops while the others confirm a wave frees none of its sources.",
)

CONSTRAINTS_OF_PIPELINE = Code(
    "SP613",
    "use() takes constraints={value} with its own pipeline, and was given the pipeline {pipeline}",
    remedy="write constraints={value} as an option of shardpass-propagate, or of the named pipeline, in pipeline=",
    explanation='`use(constraints="free")` stands for `use(pipeline="partition{constraints=free}")`.',
)

NOT_PINNED = Code(
    "SP614",
    "XLA partitions {name} without constraints of shardpass: {reason}",
    remedy="{remedy}. The results are the same",
    severity=Severity.WARNING,
    explanation="`shardpass.jax.pin` writes constraints into a program before XLA partitions it. Where shardpass can "
    "not decide about the program, or XLA makes no program of it in the process in which constraints are compared, the "
    "program is compiled as JAX lowered it.",
)

NOTHING_TO_PIN = Code(
    "SP615",
    "no constraint that shardpass tried makes XLA's program of {name} cheaper within its memory",
    remedy="nothing needs to be done: the function is compiled as it is",
    severity=Severity.REMARK,
    explanation="`shardpass.jax.pin` keeps constraints with which XLA's program receives fewer bytes, or takes less "
    "time, and exceeds the plain program in neither bytes, time nor memory. Here there were none.",
)
