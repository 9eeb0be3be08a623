"""SP64x: collectives that tests and budgets assert."""

from __future__ import annotations

from shardpass.diagnostics.core import code

BAD_BUDGET = code("SP640")
OVER_BUDGET = code("SP641")
NO_BUDGET = code("SP642")
OLD_REVISION = code("SP643")
