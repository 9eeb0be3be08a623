"""Findings for people (text), for programs (JSON), and for editors and code review (SARIF 2.1.0)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardpass.diagnostics import Diagnostic, Place, Severity, on_one_line

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.REMARK: "note", Severity.NOTE: "note"}


def summary(found: Sequence[Diagnostic]) -> str:
    """How many findings of each kind, in words."""
    counts = Counter(d.severity for d in found)
    if not counts:
        return "no problem found"
    return ", ".join(f"{n} {severity}{'' if n == 1 else 's'}" for severity in Severity if (n := counts[severity]))


def as_text(file: str, found: Sequence[Diagnostic]) -> str:
    return "\n".join([*map(str, found), f"{on_one_line(file)}: {summary(found)}"])


def as_json(file: str, found: Sequence[Diagnostic]) -> str:
    """{"file", "summary": {severity: count}, "findings": [...]}, each finding with its notes."""
    counts = Counter(str(d.severity) for d in found)
    return json.dumps({"file": file, "summary": dict(counts), "findings": [_finding(d) for d in found]}, indent=2)


def _finding(found: Diagnostic) -> dict[str, Any]:
    return {
        "severity": str(found.severity),
        "code": found.code,
        "message": found.message,
        "remedy": found.remedy,
        "file": found.place.file,
        "line": found.place.line,
        "column": found.place.column,
        "notes": [_finding(one) for one in found.notes],
    }


def as_sarif(file: str, found: Sequence[Diagnostic]) -> str:
    """A SARIF log of one run; a finding without a place is put at the file that was checked."""
    from shardpass import __version__

    codes = list(dict.fromkeys(d.code for d in found))
    rows = _codes()
    rules = [
        {
            "id": code,
            "fullDescription": {"text": rows[code].explanation or code},
            "help": {"text": rows[code].remedy or code},
        }
        if code in rows
        else {"id": code}
        for code in codes
    ]
    driver = {"name": "shardpass-check", "version": __version__, "rules": rules}
    results = [
        {
            "ruleId": one.code,
            "ruleIndex": codes.index(one.code),
            "level": _LEVELS[one.severity],
            "message": {"text": on_one_line(f"{one.message}. Help: {one.remedy}" if one.remedy else one.message)},
            "locations": [_location(one.place, file)],
            "relatedLocations": [
                {**_location(row.place, file), "message": {"text": on_one_line(row.message)}} for row in one.notes
            ],
        }
        for one in found
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2)


def _location(place: Place, file: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file or file)}}
    if place.line:
        physical["region"] = {"startLine": place.line, **({"startColumn": place.column} if place.column else {})}
    return {"physicalLocation": physical}


_OF_URIS = frozenset(b"-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")


def _uri(file: str) -> str:
    """A relative or absolute path as RFC 3986 writes it: any other byte is ``%20`` or the like."""
    return "".join(chr(b) if b in _OF_URIS else f"%{b:02X}" for b in file.encode("utf-8", "surrogateescape"))


def _codes() -> Mapping[str, Any]:
    """Every row of the tables of diagnostics, by its code."""
    import importlib
    import pkgutil

    import shardpass.diagnostics as tables
    from shardpass.diagnostics import Code

    found = {}
    for module in pkgutil.iter_modules(tables.__path__):
        if module.name.startswith("table_"):
            loaded = importlib.import_module(f"shardpass.diagnostics.{module.name}")
            found.update({row.id: row for row in vars(loaded).values() if isinstance(row, Code)})
    return found


FORMATS: Mapping[str, Callable[[str, Sequence[Diagnostic]], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
}
