"""Convert diagnostics to JSON and to SARIF results, in the same form for all commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shardpass.diagnostics import NOWHERE, Diagnostic, Severity
from shardpass.report.sarif import ERROR, NOTE, WARNING, Replacement, SarifPlace, SarifResult, sarif

LEVELS = {Severity.ERROR: ERROR, Severity.WARNING: WARNING, Severity.REMARK: NOTE, Severity.NOTE: NOTE}


def diagnostics_json(file: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Return {"file", "summary": {severity: count}, "findings": [...]} as JSON; each finding has its notes."""
    counts = Counter(str(one.severity) for one in diagnostics)
    findings = [as_dict(one) for one in diagnostics]
    return json.dumps({"file": file, "summary": dict(counts), "findings": findings}, indent=2)


def as_dict(diagnostic: Diagnostic) -> dict[str, Any]:
    """Convert a diagnostic and its notes to a dict."""
    return {
        "severity": str(diagnostic.severity),
        "code": diagnostic.code,
        "message": diagnostic.message,
        "remedy": diagnostic.remedy,
        "file": diagnostic.place.file,
        "line": diagnostic.place.line,
        "column": diagnostic.place.column,
        "notes": [as_dict(one) for one in diagnostic.notes],
    }


def diagnostics_sarif(file: str, diagnostics: Sequence[Diagnostic], tool: str) -> str:
    """Return a SARIF log of one run of the command ``tool``. Diagnostics without a place are put at ``file``,
    the program.
    """
    return sarif(tool, [sarif_result(one, LEVELS[one.severity]) for one in diagnostics], file)


def sarif_result(
    diagnostic: Diagnostic,
    level: str,
    *,
    fix: str = "",
    replacements: Iterable[Replacement] = (),
    properties: Mapping[str, object] | None = None,
) -> SarifResult:
    """Convert a diagnostic to a SARIF result of ``level``. ``fix`` and ``replacements``: the edit of the
    user's files.
    """
    place = diagnostic.place
    return SarifResult(
        diagnostic.code,
        level,
        f"{diagnostic.message}. Help: {diagnostic.remedy}" if diagnostic.remedy else diagnostic.message,
        "" if place == NOWHERE else place.file,
        place.line,
        place.column,
        related=tuple(
            SarifPlace(one.message, one.place.file, one.place.line, one.place.column) for one in diagnostic.notes
        ),
        fix=fix,
        replacements=tuple(replacements),
        properties=properties or {},
    )
