"""Write files for other tools, chosen by format name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_report import NO_SCHEDULE
from shardpass.report.judged import as_sarif, judged
from shardpass.report.model_explorer import model_explorer, node_data
from shardpass.report.perfetto import perfetto
from shardpass.report.report import Report

SCHEDULES: Mapping[str, Callable[[Report], str]] = {
    "perfetto": perfetto,
    "model-explorer": model_explorer,
    "model-explorer-data": node_data,
}
FORMS = (*SCHEDULES, "sarif")


def emitted(report: Report, form: str) -> str:
    """Write ``report`` in one of FORMS. Raises ShardpassError (SP628) if the report lacks the schedule that the form
    needs.
    """
    if form not in SCHEDULES:
        return as_sarif(report, judged(report))
    if report.schedule is None:
        raise NO_SCHEDULE.error(Place(report.file))
    return SCHEDULES[form](report)
