"""SP9xx: proofs."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

OTHER_SIGNATURE = Code(
    "SP951",
    "the program of one device is of another program: {what}, but {other}",
    remedy="give the whole program that this program of one device was partitioned from",
    explanation="A proof compares main of the whole program with main of the program of one device, argument by "
    "argument and result by result: as many, of the types that `shardpass.global_type` names.",
)

NO_HLO = Code(
    "SP952",
    "the program of one device is HLO that cannot be read as StableHLO: {reason}",
    remedy="give the HLO as it is behind the partitioner, with --xla_dump_hlo_pass_re=spmd-partitioning in XLA_FLAGS",
    explanation="XLA translates its HLO to StableHLO. Behind the partitioner HLO has no fusions, no layouts that "
    "matter and no instructions of one backend, none of which StableHLO has.",
)

NO_RESULT_SHARDING = Code(
    "SP953",
    "nothing says how result {index} of main is split: HLO text does not, and the whole program has no sharding there",
    remedy="give result {index} of the whole program its `mhlo.sharding`, or let XLA partition: --partitioner xla",
    explanation="A proof compares tiles of results with the whole program's. HLO text names the shardings of "
    "parameters and not those of results.",
)

REFUTED = Code(
    "SP954",
    "the program of one device does not compute the whole program: `{op}`: {why} ({about})",
    remedy="do not run the program of one device; report both programs to the authors of the partitioner",
    explanation="The two programs differ on StableHLO's reference interpreter, and the notes list the inputs with "
    "which they do. The op is the first at which the proof ends. A partitioned program is compared with the module "
    "that its pipeline was given (`partition{prove=true}`), or with a file (`shardpass-prove`).",
)

NOT_PROVED = Code(
    "SP955",
    "it is not proved that the program of one device computes the whole program: `{op}`: {why} ({about})",
    remedy="nothing needs to be done, as no difference was seen; docs/proving.md lists the ops of which nothing is "
    "proved yet",
    severity=Severity.WARNING,
    explanation="A proof follows each result back to values of the whole program. The message names the first op at "
    "which that relation is lost, and the notes the line of the whole program and what was known of the operands.",
)

NO_PROOF = Code(
    "SP956",
    "it is not proved that the program of one device computes the whole program: `{op}`: {why} ({about})",
    remedy="leave out require-proof=true, or prove=True of use(), to run programs that are not proved",
    explanation="With `require-proof=true` a program that `shardpass-prove` does not prove is an error. "
    "`shardpass.jax.use(prove=True)` asks for that, so such a program is left to XLA.",
)

NOTHING_WHOLE = Code(
    "SP957",
    "{name} was given no whole program to compare with: this module was partitioned before the pipeline began",
    remedy="run it in the pipeline that partitions the program, or compare two files: shardpass-prove WHOLE LOCAL",
    explanation="The pass compares the module that it gets with the one that the first pass of the pipeline got, which "
    "must be a program of whole arrays.",
)
