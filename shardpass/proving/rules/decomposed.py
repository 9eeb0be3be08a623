"""CHLO's ops that HLO has not, by the StableHLO that defines them: both programs are walked by it.

XLA writes these ops out before it partitions. The decomposition is StableHLO's own pass.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from shardpass.ir.annotations import main_of
from shardpass.ir.chlo import write_out_chlo
from shardpass.ir.context import parse_module
from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Unknown

DECOMPOSED = ("erf_inv", "next_after")


def decomposed(site: Any) -> list[Any]:
    """Relate the ops into which ``site.op`` decomposes, in either walk."""
    types = tuple(str(value.type) for value in site.op.operands)
    module = _written_out(site.op.name, types, str(site.op.results[0].type))
    block = operation(main_of(module)).regions[0].blocks[0]
    if any(operation(op).name.startswith("chlo.") for op in block.operations):
        raise Unknown(f"{site.op.name} has no decomposition")
    returned: list[Any] = site.walk.block(block, site.operands)
    return returned


@cache  # walks keep the values of a module, which must live as long
def _written_out(name: str, operands: tuple[str, ...], result: str) -> Any:
    """Build a module whose main computes the op."""
    values = ", ".join(f"%{k}" for k in range(len(operands)))
    arguments = ", ".join(f"%{k}: {kind}" for k, kind in enumerate(operands))
    module = parse_module(
        f"func.func @main({arguments}) -> {result} {{\n"
        f'  %r = "{name}"({values}) : ({", ".join(operands)}) -> {result}\n  return %r : {result}\n}}'
    )
    write_out_chlo(module)
    return module


RULES = {f"chlo.{name}": decomposed for name in DECOMPOSED}
