"""Before propagation: ops that are written in others (``OpDef.expand``) are replaced by these.

The ops that take the place of one have its location. A sharding that the user wrote on it becomes a constraint on each
of its results. Ops in regions that are manual over all axes, where nothing is propagated, stay as they are.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import CONSTRAINT, MANUAL, SHARDING, make_custom_call, text
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import operation, walk_blocks
from shardpass.ops.registry import table
from shardpass.program.manual_regions import CONTROL_FLOW, marked_scope
from shardpass.program.validate import read_for


def expand_ops(function: Any) -> None:
    """Writes out the ops of ``function``, in the regions of its control flow too. O(ops)."""
    expands = {name: entry.expand for name, entry in table().items() if entry.expand}
    for block in list(walk_blocks(operation(function))):
        if operation(block.owner).name not in ("func.func", *CONTROL_FLOW):
            continue
        for op in [operation(op) for op in block.operations]:
            if op.name in expands and marked_scope(op) != MANUAL:
                with ir.InsertionPoint(op), op.location:
                    values = expands[op.name](op)
                    if values is not None:
                        _replace(op, values)


def _replace(op: Any, values: list[Any]) -> None:
    if SHARDING in op.attributes:
        types = [result.type for result in op.results]
        said = read_for(text(op.attributes[SHARDING]), types, place_of(op.location))
        values = [
            make_custom_call(CONSTRAINT, value, kind, {SHARDING: ir.StringAttr.get(str(sharding))})
            for value, kind, sharding in zip(values, types, said, strict=True)
        ]
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()
