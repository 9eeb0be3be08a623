"""Convert CHLO to StableHLO: for StableHLO's interpreter, and as XLA does before it partitions."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

_PASS = "builtin.module(func.func(chlo-legalize-to-stablehlo))"


def write_out_chlo(module: Any) -> None:
    """Rewrite the CHLO ops of ``module`` in place, except ops that StableHLO's pass does not know."""
    stablehlo.register_stablehlo_passes()
    with module.context:
        PassManager.parse(_PASS).run(module.operation)
