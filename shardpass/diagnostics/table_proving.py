"""SP9xx: proofs."""

from __future__ import annotations

from shardpass.diagnostics.core import code

OTHER_SIGNATURE = code("SP951")
NO_HLO = code("SP952")
NO_RESULT_SHARDING = code("SP953")
REFUTED = code("SP954")
NOT_PROVED = code("SP955")
NO_PROOF = code("SP956")
NOTHING_WHOLE = code("SP957")
