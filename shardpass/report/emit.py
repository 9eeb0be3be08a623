"""Write files for other tools, chosen by format name."""

from __future__ import annotations

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_report import NO_SCHEDULE
from shardpass.report.judged import as_sarif, judged
from shardpass.report.perfetto import perfetto
from shardpass.report.report import Report

FORMS = ("perfetto", "sarif")


def emitted(report: Report, form: str) -> str:
    """Write ``report`` in one of FORMS. Raises ShardpassError (SP628) for a trace of a report without a schedule."""
    if form == "sarif":
        return as_sarif(report, judged(report))
    if report.schedule is None:
        raise NO_SCHEDULE.error(Place(report.file))
    return perfetto(report)
