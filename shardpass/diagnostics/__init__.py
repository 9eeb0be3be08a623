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
    report,
)
from shardpass.diagnostics.printable import on_one_line, printable

__all__ = [
    "NOWHERE",
    "Code",
    "Diagnostic",
    "Place",
    "Severity",
    "ShardpassError",
    "collect",
    "note",
    "on_one_line",
    "printable",
    "report",
]
