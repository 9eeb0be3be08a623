"""Rewrite concatenates of slices as splices of the sliced arrays (``concatenate``), before partitioning.

Slice by slice, each part would be moved into tiles of its own first: most of an array that is rolled by one row would
cross devices twice. The ops stay apart until here, so that propagation and other tools see StableHLO.

An operand counts as a part of the array that it was cut from where it is a slice along that dimension, with unit
stride, and all parts together are at least half of the array: else less moves if it is cut first.
O(concatenates and operands).
"""

from __future__ import annotations

from typing import Any

from shardpass.program.program import OpKind
from shardpass.program.table import Table, forget, table_of


def spliced_table(module: Any) -> Table:
    """Rewrite concatenates of slices as splices; return the table of ``module``. Raises as ``table_of``."""
    table = table_of(module, "partition")
    if _make_splices(table):
        forget()
        table = table_of(module, "partition")
    return table


def _make_splices(table: Table) -> bool:
    """Rewrite concatenates of slices in every block as splices; returns whether there were any."""
    ops = list(table.program.body.every_op())
    cut = {value for op in ops if op.name == "stablehlo.slice" for value in op.results}
    joined = [op for op in ops if op.name == "stablehlo.concatenate" and not cut.isdisjoint(op.operands)]
    handles = [table.handles.ops[op.number] for op in joined if op.kind is OpKind.SPLIT]
    if not handles:
        return False
    from shardpass.partition.make_splice import make_splice  # with it the family, which few programs hold

    for handle in handles:
        make_splice(handle)
    return True
