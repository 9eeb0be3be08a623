"""Read estimates in HLO: the cycles of a fusion by XLA:TPU's cost model."""

from __future__ import annotations

import re

from shardpass.hlo.read import HloOp

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


def estimated_cycles(op: HloOp) -> int | None:
    """Return the compiler's cycle estimate for one run of ``op``; None without an estimate."""
    match = _CYCLES.search(op.attributes)
    return None if match is None or match[1] == "0" else int(match[1])
