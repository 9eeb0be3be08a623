"""Print findings in the format of ``--format``, and count them in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shardpass.diagnostics import Diagnostic, Severity

FORMATS = ("text", "json", "sarif")


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Count the diagnostics of each severity, in words."""
    counts = Counter(d.severity for d in diagnostics)
    if not counts:
        return "no problem found"
    return ", ".join(f"{n} {severity}{'' if n == 1 else 's'}" for severity in Severity if (n := counts[severity]))


def written(form: str, file: str, diagnostics: Sequence[Diagnostic], tool: str) -> str:
    """Format the diagnostics of the program ``file`` as JSON or SARIF 2.1.0, which names the command ``tool``."""
    from shardpass.report.diagnostics import diagnostics_json, diagnostics_sarif

    return diagnostics_json(file, diagnostics) if form == "json" else diagnostics_sarif(file, diagnostics, tool)
