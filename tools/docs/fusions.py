"""The page of the table of fusions."""

from __future__ import annotations

from shardpass.cost.factorizations import NAMED, ROUTINES
from shardpass.cost.fusion import OTHER, ROWS, Flops, Row


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
        "",
        "Custom calls of LAPACK, cuSOLVER, hipSOLVER and XLA's own libraries are counted by what they compute, as",
        "Golub and Van Loan count (`shardpass/cost/factorizations.py`):",
        "",
        "| routines | other targets | flops |",
        "|---|---|---|",
        *map(_routines, ROUTINES),
    ]
    return "\n".join(lines)


def _routines(flops: Flops) -> str:
    called, others = ROUTINES[flops].split(), [name for name, counted in NAMED.items() if counted is flops]
    cells = (", ".join(f"`{name}`" for name in names) for names in (called, others))
    return f"| {' | '.join(cells)} | {flops.value} |"


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
