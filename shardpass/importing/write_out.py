"""Expand ops that are defined by other ops, before propagation.

An op family may define its op by simpler ones (``OpDef.expand``). The simpler ops have the location of the
op that they replace. A sharding that the user wrote on it becomes a constraint on each of its results. In a region that
is manual over all axes nothing is propagated, so such ops stay there. O(ops of such families).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import NOT_WRITTEN_OUT
from shardpass.ir.annotations import CONSTRAINT, MANUAL, SHARDING, make_custom_call, text
from shardpass.ir.locations import place_of
from shardpass.ir.walk import CONTROL_FLOW, OpLists, named
from shardpass.ops.border import is_own, written_out
from shardpass.ops.registry import Expand, find
from shardpass.program.manual_regions import marked_scope
from shardpass.program.validate import read_for


def expand_ops(lists: OpLists) -> None:
    """Expand shorthand ops of a function, in regions of control flow too."""
    expands = {name: entry.expand for name in lists.names if (entry := find(name)) is not None and entry.expand}
    if not expands:
        return
    blocks = [inside for inside in lists.blocks if inside.owner_name in ("func.func", *CONTROL_FLOW)]
    for op in named(blocks, expands):
        if marked_scope(op) != MANUAL:
            with ir.InsertionPoint(op), op.location:
                values = _written_out(op, expands[op.name])
                if values is not None:
                    _replace(op, values)
    lists.changed()


def _written_out(op: Any, expand: Expand) -> list[Any] | None:
    """Return the results of ``expand`` for ``op``.

    Raises:
        ShardpassError: SP244 where ``op`` is no valid one; SP139 where ``expand`` is another package's and at fault.
    """
    try:
        values = written_out(expand, op)
    except (ir.MLIRError, ValueError) as error:
        if not is_own(expand):
            raise
        reason = str(error).strip().splitlines()[-1].rpartition(": ")[2]
        raise NOT_WRITTEN_OUT.error(place_of(op.location), op=op.name, reason=reason) from None
    for value, result in zip(values or (), op.results, strict=False):
        if value.type != result.type:
            reason = f"they give {value.type}, where its result is {result.type}"
            raise NOT_WRITTEN_OUT.error(place_of(op.location), op=op.name, reason=reason)
    return values


def _replace(op: Any, values: list[Any]) -> None:
    if SHARDING in op.attributes:
        types = [result.type for result in op.results]
        shardings = read_for(text(op.attributes[SHARDING]), types, place_of(op.location))
        values = [
            make_custom_call(CONSTRAINT, value, kind, {SHARDING: ir.StringAttr.get(str(sharding))})
            for value, kind, sharding in zip(values, types, shardings, strict=True)
        ]
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()
