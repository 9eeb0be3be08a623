"""Convert the findings of a report to diagnostics with bytes, for review tools (SARIF) and for failing builds over a
limit.

In this order: edits that reduce cost (``findings``), a program by shardpass with fewer bytes, constraints that cost
more than necessary, annotations that reduce cost (``hints``), and with a limit the lines at which a device receives
more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardpass.diagnostics import Diagnostic, Severity
from shardpass.diagnostics.table_passes import COSTLY_CONSTRAINT
from shardpass.diagnostics.table_report import HINT_SAVES, LINE_RECEIVES, SENDS_MORE
from shardpass.diagnostics.table_suggest import EDIT_SAVES
from shardpass.report.diagnostics import sarif_result
from shardpass.report.findings import DECIDED, NAME, NOW
from shardpass.report.report import Report
from shardpass.report.sarif import ERROR, NOTE, WARNING, Replacement, SarifResult, sarif
from shardpass.report.text import COMPILERS, show_bytes

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Judged:
    """A diagnostic with the bytes a device receives or would save, and the edit as a diff."""

    diagnostic: Diagnostic
    bytes: int
    diff: str = ""


def judged(report: Report, limit: int | None = None) -> tuple[Judged, ...]:
    """List the findings of ``report``, and the lines at which a device receives ``limit`` bytes or more."""
    return tuple(_judged(report, limit))


def over(some: Sequence[Judged], limit: int | None) -> tuple[Judged, ...]:
    """Select the diagnostics of at least ``limit`` bytes; no diagnostics if ``limit`` is None."""
    return () if limit is None else tuple(one for one in some if one.bytes >= limit)


def as_sarif(report: Report, some: Sequence[Judged], limit: int | None = None) -> str:
    """Write the SARIF log of ``shardpass-explain``; diagnostics that reach ``limit`` are errors."""
    failing = set(map(id, over(some, limit)))
    properties = {
        "partitioner": report.partitioner,
        "machine": report.profile,
        "bytes_received": report.total_bytes_received,
    }
    results = [_result(one, id(one) in failing) for one in some]
    return sarif("shardpass-explain", results, report.file, properties=properties)


def _judged(report: Report, limit: int | None) -> Iterator[Judged]:
    compiler = COMPILERS.get(report.partitioner, "shardpass")
    findings = [one for one in report.findings or () if one.action != NAME]
    for one in findings:
        edit = EDIT_SAVES.at(
            one.place,
            sentence=one.sentence,
            partitioner=compiler,
            received=f"{show_bytes(one.after.bytes)} are received",
            memory=f"{show_bytes(one.after.memory)} held",
            edit="; ".join(one.code),
        )
        yield Judged(edit, one.before.bytes - one.after.bytes, one.diff)
    rows = {} if findings or report.gap is None else dict(report.gap.rows)
    if DECIDED in rows and rows[DECIDED].bytes < rows[NOW].bytes:
        sent, ours = rows[NOW].bytes, rows[DECIDED].bytes
        sends = SENDS_MORE.at(sent=show_bytes(sent), partitioner=compiler, ours=show_bytes(ours))
        yield Judged(sends, sent - ours)
    for constraint in report.constraints:
        costs = COSTLY_CONSTRAINT.at(
            constraint.place,
            bytes=f"{constraint.bytes:,}",
            type=constraint.type,
            sharding=constraint.spec,
            saved=f"{constraint.saved:,}",
        )
        yield Judged(costs, constraint.saved)
    for hint in report.hints or ():
        saves = HINT_SAVES.at(
            hint.place,
            name=hint.name,
            now=hint.now,
            saved=show_bytes(hint.saves),
            before=show_bytes(hint.before),
            code=hint.code,
        )
        yield Judged(saves, hint.saves)
    if limit is None:
        return
    for group in report.by_line():
        if group.bytes_received >= max(1, limit):
            kinds = ", ".join(dict.fromkeys(row.kind for row in group.rows))
            receives = LINE_RECEIVES.at(
                group.place, bytes=show_bytes(group.bytes_received), kinds=kinds, limit=show_bytes(limit)
            )
            yield Judged(receives, group.bytes_received)


def _result(one: Judged, fails: bool) -> SarifResult:
    level = ERROR if fails else NOTE if one.diagnostic.severity == Severity.NOTE else WARNING
    return sarif_result(
        one.diagnostic,
        level,
        fix=one.diagnostic.remedy,
        replacements=replacements(one.diff),
        properties={"bytes": one.bytes},
    )


def replacements(diff: str) -> Iterator[Replacement]:
    """Yield the replacements of a unified diff: runs of removed and added lines, without the lines around them."""
    file, line = "", 0
    gone, come, start = 0, list[str](), 0
    for row in (*diff.splitlines(), " "):
        if not line:  # above the first hunk
            file = row[4:].split("\t")[0].removeprefix("a/") if row.startswith("--- ") else file
        if not line and not _HUNK.match(row):
            continue
        if hunk := _HUNK.match(row):
            line = int(hunk[1]) + (hunk[2] == "0")
        elif row.startswith("-"):
            start, gone, line = start or line, gone + 1, line + 1
        elif row.startswith("+"):
            start = start or line
            come.append(f"{row[1:]}\n")
        elif not row.startswith("\\"):
            if start:
                yield Replacement(file, start, gone, "".join(come))
            gone, come, start, line = 0, [], 0, line + 1
