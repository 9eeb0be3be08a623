"""The one writer of SARIF 2.1.0, the format in which editors and code review take findings of any tool.

A log is one run of one command: its rules, and results that point to them. A path below the working directory is
written relative to it, as code review joins it with the repository's files.

Source: Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS Standard: 3.19 tool components, 3.27
results, 3.28 locations, 3.49 rules, 3.55 fixes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardpass.diagnostics import on_one_line
from shardpass.version import installed_version

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ERROR, WARNING, NOTE, NONE = "error", "warning", "note", "none"  # NONE: of a result that is no fault
FAIL, PASS, OPEN = "fail", "pass", "open"  # OPEN: neither, as the command could not say


@dataclass(frozen=True, slots=True)
class SarifRule:
    """A rule shared by results of one kind. ``description``: when the rule applies; ``remedy``: the user's remedy."""

    id: str
    description: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SarifPlace:
    """A place related to a result, with a description. Lines and columns count from 1; 0 means unknown."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replace lines ``line`` to ``line + count - 1`` of a file by ``text``; count 0 inserts before ``line``."""

    file: str
    line: int
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class SarifResult:
    """A result of SARIF: a rule, a message and a place.

    Attributes:
        rule: the id of its rule.
        level: ERROR, WARNING, NOTE, or NONE where ``kind`` is not FAIL.
        message: a sentence.
        file, line, column: its place; lines and columns count from 1, 0 and "" mean unknown.
        kind: FAIL, PASS or OPEN.
        related: places that belong to it.
        fix: what to do about it, in words; with ``replacements``, what this changes in files.
        properties: numbers for programs, by name.
    """

    rule: str
    level: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    kind: str = FAIL
    related: tuple[SarifPlace, ...] = ()
    fix: str = ""
    replacements: tuple[Replacement, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)


def sarif(
    command: str,
    results: Sequence[SarifResult],
    file: str,
    *,
    rules: Sequence[SarifRule] = (),
    properties: Mapping[str, object] | None = None,
) -> str:
    """Return the log of one run of ``command``, as text.

    ``file``: where results without a file are put. ``rules``: of which those are written that have results; a rule with
    the id of a diagnostic is described by the tables of diagnostics where it is not given. ``properties``: of the run.
    """
    given = {one.id: one for one in rules}
    ids = list(dict.fromkeys(one.rule for one in results))
    driver = {
        "name": command,
        "version": installed_version(),
        "rules": [_rule(given.get(id) or _of_diagnostics(id)) for id in ids],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, ids.index(one.rule), file) for one in results],
    }
    if properties:
        run["properties"] = dict(properties)
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _of_diagnostics(id: str) -> SarifRule:
    from shardpass.diagnostics.pages import code_of

    row = code_of(id)
    return SarifRule(id) if row is None else SarifRule(id, row.explanation, row.remedy)


def _rule(one: SarifRule) -> dict[str, Any]:
    texts = (("fullDescription", one.description), ("help", one.remedy))
    return {"id": one.id, **{name: {"text": on_one_line(text or one.id)} for name, text in texts}}


def _result(one: SarifResult, index: int, file: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": index,
        "kind": one.kind,
        "level": one.level,
        "message": {"text": on_one_line(one.message)},
        "locations": [_location(one.file or file, one.line, one.column)],
    }
    if one.related:
        result["relatedLocations"] = [
            {**_location(place.file or file, place.line, place.column), "message": {"text": on_one_line(place.message)}}
            for place in one.related
        ]
    if one.replacements:
        result["fixes"] = [{"description": {"text": on_one_line(one.fix)}, "artifactChanges": _changes(one)}]
    if one.properties:
        result["properties"] = dict(one.properties)
    return result


def _changes(one: SarifResult) -> list[dict[str, Any]]:
    files = dict.fromkeys(change.file for change in one.replacements)
    return [
        {
            "artifactLocation": {"uri": uri(file)},
            "replacements": [_replacement(change) for change in one.replacements if change.file == file],
        }
        for file in files
    ]


def _replacement(change: Replacement) -> dict[str, Any]:
    """Convert ``change`` to SARIF's region, in which whole lines end at the first column of the next line."""
    region = {
        "startLine": change.line,
        "startColumn": 1,
        "endLine": change.line + change.count,
        "endColumn": 1,
    }
    return {"deletedRegion": region, "insertedContent": {"text": change.text}}


def _location(file: str, line: int, column: int) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri(file)}}
    if line:
        physical["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
    return {"physicalLocation": physical}


_OF_URIS = frozenset(b"-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")


def uri(file: str) -> str:
    """Return a path as an RFC 3986 URI, relative to the working directory if below it."""
    if os.path.isabs(file):
        inner = os.path.relpath(file)
        file = file if inner.split(os.sep)[0] == os.pardir else inner
    return "".join(chr(b) if b in _OF_URIS else f"%{b:02X}" for b in file.encode("utf-8", "surrogateescape"))
