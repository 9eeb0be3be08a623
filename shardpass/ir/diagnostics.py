"""Convert MLIR's diagnostics to shardpass's."""

from __future__ import annotations

from typing import Any

from shardpass.diagnostics import Diagnostic, Place, Severity
from shardpass.ir.locations import place_of

_SEVERITY = {"ERROR": Severity.ERROR, "WARNING": Severity.WARNING, "REMARK": Severity.REMARK}


def from_mlir(diagnostic: Any, filename: str = "-", line_offset: int = 0) -> Diagnostic:
    """Convert an ``ir.Diagnostic`` (or a ``DiagnosticInfo``), without a code.

    A place in MLIR's nameless text "-" gets ``filename``, and its line is moved by ``line_offset``.
    """
    place = place_of(diagnostic.location)
    if place.file == "-":
        place = Place(filename, place.line and place.line + line_offset, place.column)
    return Diagnostic(
        _SEVERITY.get(diagnostic.severity.name, Severity.NOTE),
        "",
        _shortened(diagnostic.message),
        place,
        notes=tuple(from_mlir(n, filename, line_offset) for n in diagnostic.notes),
    )


_CURRENT = "see current operation:"


def _shortened(message: str) -> str:
    """Keep the first line of a message: the verifier's note prints the whole operation, often the whole program."""
    if not message.startswith(_CURRENT):
        return message
    shown, *rest = message.removeprefix(_CURRENT).strip().splitlines()
    return f"{_CURRENT} {shown[:200]}{' ...' if rest or len(shown) > 200 else ''}"
