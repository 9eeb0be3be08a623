"""Write diagnostics as a code quality report, which GitLab shows beside the changed lines of a merge request.

Source: GitLab, "Code Quality report format": an array of objects with description, check_name, fingerprint, severity,
location.path and location.lines.begin.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from hashlib import sha256

from shardpass.diagnostics import Diagnostic, Severity

_LEVELS = {Severity.ERROR: "major", Severity.WARNING: "minor"}


def code_quality(diagnostics: Iterable[Diagnostic], file: str) -> str:
    """Return the report as JSON text. ``file``: the place of a diagnostic that names no file."""
    return json.dumps([_entry(one, file) for one in diagnostics], indent=1)


def _entry(one: Diagnostic, file: str) -> dict[str, object]:
    path = one.place.file or file
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    path = path if relative.startswith("..") else relative
    return {
        "description": one.message,
        "check_name": one.code,
        "fingerprint": sha256(repr((one.code, path, one.message)).encode()).hexdigest(),
        "severity": _LEVELS.get(one.severity, "info"),
        "location": {"path": path, "lines": {"begin": max(1, one.place.line)}},
    }
