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
    explanation="`shardpass-check --partitioner xla` compiles the program with each such edit before it reports "
    "the edit; of several, each with those before it. `shardpass-explain --partitioner xla` shows the same with diffs.",
)
