"""``Explanation``: a report that prints, shows itself in notebooks, and writes its page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardpass.diagnostics.arguments import wrong_argument
from shardpass.ir.whole_file import write_whole
from shardpass.report.collectives import collectives_of
from shardpass.report.diff import Difference, difference
from shardpass.report.emit import FORMS, emitted
from shardpass.report.markdown import report_markdown
from shardpass.report.notebook import framed
from shardpass.report.page import to_html
from shardpass.report.report import Report
from shardpass.report.text import text


@dataclass(frozen=True)
class Explanation(Report):
    """The report of ``shardpass.explain``; its parts are those of ``Report``."""

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        first, second, *_ = str(self).splitlines()
        return f"<Explanation of {first}; {second}>"

    def _repr_html_(self) -> str:
        return framed(to_html(self), str(self))

    def diff(self, other: Report) -> Difference:
        """Compare the collectives with the collectives of ``other``: new, gone, moved or changed."""
        return difference(collectives_of(self), collectives_of(other))

    def emit(self, form: str) -> str:
        """Write the schedule for another tool: "perfetto", a trace; "model-explorer", a graph, and
        "model-explorer-data", the seconds of its nodes. "sarif": the findings for review tools.

        Raises ShardpassError: SP140 for another form, SP628 for a program without a schedule.
        """
        if form not in FORMS:
            raise wrong_argument("emit", "form", form, ", or ".join(map(repr, FORMS)))
        return emitted(self, form)

    def to_pandas(self) -> Any:
        """Return the collectives as a ``pandas.DataFrame``, a row for each, with the columns of the JSON report.

        Raises ImportError where pandas is not installed.
        """
        from pandas import DataFrame

        return DataFrame([row.as_dict() for row in self.rows])

    def markdown(self) -> str:
        """Return the collectives and the findings as Markdown, for the summary of a job or a comment in a review."""
        return report_markdown(self)

    def html(self, path: str | Path) -> None:
        """Write the report as a self-contained page."""
        write_whole(path, to_html(self))
