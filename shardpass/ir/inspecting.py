"""Remove ``custom_call @InspectSharding``, whose only effect is a report of its operand's sharding at compile time.

The configuration of the call is the address of a Python function in the process that lowered the program. XLA follows
the address unchecked (a text from another process crashes this one), so a program that shardpass compiles itself has no
such call: the chosen shardings are in ``shardpass.inspected``.
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.annotations import custom_call_target
from shardpass.ir.walk import OpLists, named

INSPECT = "InspectSharding"


def inspections(lists: OpLists) -> list[Any]:
    return [op for op in named(lists.blocks, ("stablehlo.custom_call",)) if custom_call_target(op) == INSPECT]


def drop_inspections(module: Any) -> None:
    """Replace the inspection calls of ``module`` by their operands."""
    for op in inspections(OpLists(module.operation)):
        for value, result in zip(op.operands, op.results, strict=False):
            result.replace_all_uses_with(value)
        op.erase()
