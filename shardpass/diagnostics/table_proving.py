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
