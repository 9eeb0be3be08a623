"""The one-sentence summary of a report: the greatest cost, and the edit that fixes it, if known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.findings import NAME, headline
from shardpass.report.report import Report
from shardpass.report.rows import short
from shardpass.report.text import exposed_by_line, show_bytes, show_seconds


@dataclass(frozen=True, slots=True)
class Worst:
    """The most important item of a report. ``sentence``: with figures. ``code``: the edit as JAX text or as a diff, ()
    if unknown. ``saves``: the saving, and how the saving is known.
    """

    sentence: str
    code: tuple[str, ...] = ()
    saves: str = ""


def micro(seconds: float) -> str:
    """Return the seconds as the page writes them."""
    return show_seconds(seconds).replace("us", "\u00b5s")


def worst(report: Report) -> Worst:
    """Return the first of these in the report: a finding, the most expensive constraint, the best hint, the line by
    which a device receives the most.
    """
    for finding in report.findings or ():
        if finding.action == NAME:
            return Worst(headline(finding), finding.code)
        before, after = finding.before, finding.after
        received = f"received {show_bytes(before.bytes)} \u2192 {show_bytes(after.bytes)}"
        step = f"step {micro(before.seconds)} \u2192 {micro(after.seconds)}"
        code = tuple(finding.diff.splitlines()) or finding.code
        return Worst(headline(finding), code, f"{received}, {step}, as compiled")
    edits = [
        (one.saved, one.place, f"this constraint to {one.spec} costs {show_bytes(one.bytes)}", "drop the constraint")
        for one in report.constraints
    ] + [(one.saves, one.place, f"{one.name} is {one.now}", one.code) for one in report.hints or ()]
    if edits:
        saved, place, words, edit = max(edits, key=lambda one: one[0])
        saves = f"saves {show_bytes(saved)} of {show_bytes(report.total_bytes_received)}, as planned"
        return Worst(f"{_at(place)}{words}", (edit,), saves)
    return Worst(_most(report))


def _at(place: Place) -> str:
    return "" if place == NOWHERE else f"{short(place)}: "


def _most(report: Report) -> str:
    total = report.total_bytes_received
    if not total:
        return "No device receives anything."
    line = report.by_line()[0]
    where = line.key if line.place == NOWHERE else short(line.place)
    words = f"Most is received at {where or 'no known line'}: {show_bytes(line.bytes_received)} of {show_bytes(total)}"
    bare = exposed_by_line(report).get(replace(line.place, column=0))
    exposed = "" if bare is None else f", of which {micro(bare)} are exposed"
    looked = report.findings is not None and not report.findings.why_not
    none = "; no edit was found that saves" if looked else ""
    return f"{words}, {micro(line.seconds)}{exposed}{none}."
