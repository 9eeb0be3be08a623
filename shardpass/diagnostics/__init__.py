"""Diagnostics: see ``core``. The tables of codes are the ``table_*`` modules."""

from shardpass.diagnostics.core import (
    NOWHERE,
    Code,
    Diagnostic,
    Place,
    Severity,
    ShardpassError,
    collect,
    note,
    printable,
    report,
)

__all__ = [
    "NOWHERE",
    "Code",
    "Diagnostic",
    "Place",
    "Severity",
    "ShardpassError",
    "collect",
    "note",
    "printable",
    "report",
]
