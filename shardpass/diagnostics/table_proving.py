"""SP9xx: proofs."""

from __future__ import annotations

from shardpass.diagnostics.core import Code

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
