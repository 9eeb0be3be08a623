"""Findings for people (text), for programs (JSON), and for editors and code review (SARIF 2.1.0)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardpass.diagnostics import Diagnostic, Severity, on_one_line

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.REMARK: "note", Severity.NOTE: "note"}


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Counts the diagnostics of each severity, in words."""
    counts = Counter(d.severity for d in diagnostics)
    if not counts:
        return "no problem found"
    return ", ".join(f"{n} {severity}{'' if n == 1 else 's'}" for severity in Severity if (n := counts[severity]))


def as_text(file: str, diagnostics: Sequence[Diagnostic]) -> str:
    return "\n".join([*map(str, diagnostics), f"{on_one_line(file)}: {summary(diagnostics)}"])


def as_json(file: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Formats as {"file", "summary": {severity: count}, "findings": [...]}, each finding with its notes."""
    counts = Counter(str(d.severity) for d in diagnostics)
    return json.dumps({"file": file, "summary": dict(counts), "findings": [_finding(d) for d in diagnostics]}, indent=2)


def _finding(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "severity": str(diagnostic.severity),
        "code": diagnostic.code,
        "message": diagnostic.message,
        "remedy": diagnostic.remedy,
        "file": diagnostic.place.file,
        "line": diagnostic.place.line,
        "column": diagnostic.place.column,
        "notes": [_finding(one) for one in diagnostic.notes],
    }


def as_sarif(file: str, diagnostics: Sequence[Diagnostic], tool: str = "shardpass-check") -> str:
    """Formats the diagnostics of one run of ``tool`` as a SARIF log; one without a place is put at the file that was
    checked.
    """
    from shardpass.report.sarif import SarifPlace, SarifResult, sarif

    results = [
        SarifResult(
            one.code,
            _LEVELS[one.severity],
            f"{one.message}. Help: {one.remedy}" if one.remedy else one.message,
            one.place.file,
            one.place.line,
            one.place.column,
            related=tuple(
                SarifPlace(row.message, row.place.file, row.place.line, row.place.column) for row in one.notes
            ),
        )
        for one in diagnostics
    ]
    return sarif(tool, results, file)


FORMATS: Mapping[str, Callable[[str, Sequence[Diagnostic]], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
}
