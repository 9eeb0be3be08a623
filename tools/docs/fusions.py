"""The page of the table of fusions."""

from __future__ import annotations

from shardpass.cost.fusion import OTHER, ROWS, Row


def fusions_page() -> str:
    lines = [
        "# Fusions",
        "",
        "How ops share a loop when XLA compiles them, which decides what of them goes through memory. How the table",
        "is used, and how often XLA does so: [Cost](../cost.md#work-as-it-is-compiled). Ops without a dialect are",
        "StableHLO's. The table is `shardpass/cost/fusion.py`.",
        "",
        "| ops | values used | result | flops | |",
        "|---|---|---|---|---|",
        *(_row(row, ", ".join(f"`{name}`" for name in row.ops)) for row in ROWS),
        _row(OTHER, "all others"),
    ]
    return "\n".join(lines)


def _row(row: Row, ops: str) -> str:
    marks = {
        "element by element": row.straight,
        "in place": row.in_place,
        "in part": row.in_part,
        "spreads": row.spreads,
        "folds": row.folds,
    }
    operands = ", ".join([row.operands.value, *(mark for mark, holds in marks.items() if holds)])
    return f"| {ops} | {operands} | {row.result.value} | {row.flops.value} | {row.reason} |"
