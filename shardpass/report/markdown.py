"""Write tables and reports in Markdown, for the summaries of jobs and comments in reviews."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shardpass.report.collectives import Collectives, collectives_of
from shardpass.report.findings import Finding, headline
from shardpass.report.report import Report
from shardpass.report.text import counted, figures_text, findings_title, show_bytes

MOST_ROWS = 30


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table. Text in cells is shown as it is."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return lines + [f"| {' | '.join(map(_cell, row))} |" for row in rows]


def collectives_markdown(program: Collectives) -> str:
    """Return the totals of a program and its collectives, the most bytes first."""
    return "\n".join(_collectives(program))


def report_markdown(report: Report) -> str:
    """Return the collectives of a report and the edits that save, each with its diff."""
    lines = list(_collectives(collectives_of(report)))
    findings = report.findings or ()
    if findings:
        title = findings_title(report.partitioner, several=len(findings) > 1)
        lines += ["", f"#### {title[:1].upper()}{title[1:].rstrip(':')}"]
    for number, one in enumerate(findings, 1):
        lines += ["", *_finding(one, number)]
    return "\n".join(lines)


def _collectives(program: Collectives) -> Iterator[str]:
    mesh = "".join(f" {name}={size}" for name, size in program.mesh)
    memory = "" if program.memory is None else f", memory {show_bytes(program.memory)}"
    yield f"### Collectives of {_cell(program.name)}"
    yield ""
    yield (
        f"**{show_bytes(program.bytes_received)} received**{memory}; {counted(program.devices, 'device')}{mesh}, "
        f"partitioner {program.partitioner}"
    )
    yield ""
    if not program.rows:
        yield "No collectives."
        return
    rows = sorted(program.rows, key=lambda row: -row.bytes)
    cells = (
        (show_bytes(one.bytes), str(one.count), one.kind, ", ".join(one.axes), one.where, one.array, one.reason)
        for one in rows[:MOST_ROWS]
    )
    yield from markdown_table(("bytes", "arrays", "collective", "over", "line", "array", "cause"), cells)
    if len(rows) > MOST_ROWS:
        yield f"\nand {counted(len(rows) - MOST_ROWS, 'collective')} more"


def _finding(one: Finding, number: int) -> list[str]:
    language, code = ("diff", one.diff) if one.diff else ("python", "\n".join(one.code))
    return [f"{number}. {_cell(headline(one))}", "", f"```{language}", code.rstrip("\n"), "```", "", figures_text(one)]


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("*", "\\*")
