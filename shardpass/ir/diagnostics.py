"""Between MLIR's diagnostics and ours."""

from __future__ import annotations

import re
from typing import Any

from shardpass.diagnostics import NOWHERE, Diagnostic, Place, Severity
from shardpass.ir.locations import place_of

_SEVERITY = {"ERROR": Severity.ERROR, "WARNING": Severity.WARNING, "REMARK": Severity.REMARK}


def from_mlir(found: Any, filename: str = "-", line_offset: int = 0) -> Diagnostic:
    """An ``ir.Diagnostic`` (or a ``DiagnosticInfo``) as one of ours, without a code.

    A place in MLIR's nameless text "-" gets ``filename``, and its line is moved by ``line_offset``.
    """
    place = place_of(found.location)
    if place.file == "-":
        place = Place(filename, place.line and place.line + line_offset, place.column)
    return Diagnostic(
        _SEVERITY.get(found.severity.name, Severity.NOTE),
        "",
        found.message,
        place,
        notes=tuple(from_mlir(n, filename, line_offset) for n in found.notes),
    )


_HEADLINE = re.compile(r'^(?:"(?P<file>[^"]*)":(?P<line>\d+):(?P<column>\d+): )?(?P<message>.*)', re.DOTALL)


def from_text(text: str) -> Diagnostic:
    """A complaint of MLIR that comes as plain text only (pipelines), as an error of ours without a code."""
    match = _HEADLINE.match(text.strip())
    assert match is not None  # the pattern matches every text
    place = NOWHERE
    if match["file"]:
        place = Place(match["file"], int(match["line"]), int(match["column"]))
    return Diagnostic(Severity.ERROR, "", match["message"], place)
