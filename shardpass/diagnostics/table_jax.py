"""SP6xx: hooks into JAX."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

FALLBACK = Code(
    "SP601",
    "XLA partitions {name}, not shardpass: {reason}",
    remedy="the result is the same; to find out more, lower the function and run shardpass-check on its text",
    severity=Severity.WARNING,
    explanation="Inside `shardpass.jax.use()` a program that shardpass cannot partition is compiled as JAX would "
    "have compiled it. `shardpass.jax.stats()` counts these under 'fallback'.",
)

SIDE_EFFECT = Code(
    "SP602",
    "it calls back into Python or has side effects (`custom_call @{target}`), which must happen once and not on "
    "each device",
    remedy="take the callback out of the jitted function, or leave this function to XLA",
    explanation="jax.debug.print, io_callback and pure_callback are calls into the host.",
)

MANY_PROCESSES = Code(
    "SP603",
    "its devices belong to {processes} processes",
    remedy="use shardpass.jax in programs of a single process",
    explanation="The hook partitions programs whose devices all belong to this process.",
)

UNEVEN = Code(
    "SP604",
    "{where} has shape {shape}, which its sharding {sharding} does not divide",
    remedy="give the result a sharding that divides it: out_shardings=, or with_sharding_constraint",
    explanation="JAX has no sharding for arrays that their devices do not divide, at the border of a program.",
)

NO_AXES = Code(
    "SP605",
    "{where} is sharded {sharding}, which no axes of one mesh say",
    remedy="set jax_use_shardy_partitioner to False: GSPMD's annotations can say any order of devices",
    explanation="Shardy's annotations name axes of a mesh; a sharding over an arbitrary order of devices has none.",
)

NOT_A_SHARDING = Code(
    "SP610",
    "redistribute() wants a jax.sharding.NamedSharding, and is given {given}",
    remedy="write jax.NamedSharding(mesh, PartitionSpec(...))",
    explanation="The target of a redistribution names mesh axes for each dimension of the array.",
)

INDIVISIBLE = Code(
    "SP611",
    "redistribute() to {sharding}: dimension {dim} of shape {shape} has size {size}, which {count} tiles do not divide",
    remedy="pad the array, or split another dimension",
    explanation="JAX's arrays divide evenly over their devices; redistribution follows that rule here, although "
    "shardpass itself pads.",
)
