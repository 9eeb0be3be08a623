"""The schedule for the page's scripts: bars by track, with loops in the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardpass.diagnostics import NOWHERE
from shardpass.report.report import Report
from shardpass.report.rows import short
from shardpass.report.schedule import Span

MOST_SPANS = 1500  # bars that are drawn: the longest
LEAST = 1e-4  # of the step: what is shorter is no bar


def schedule(report: Report, numbers: Mapping[int, int]) -> dict[str, Any] | None:
    """Prepare the schedule for the page; None if no seconds are known. ``numbers``: the page's row for the ``id`` of a
    report's row.
    """
    plan = report.schedule
    if plan is None or not plan.seconds:
        return None
    tracks = plan.tracks
    bars = [span for span in plan.spans if span.tracks and span.seconds >= LEAST * plan.seconds]
    bars = sorted(bars, key=lambda span: -span.seconds)[:MOST_SPANS]

    def bar(span: Span) -> dict[str, Any]:
        return {
            "tracks": [tracks.index(track) for track in span.tracks],
            "start": span.start,
            "end": span.end,
            "name": span.name,
            "place": "" if span.place == NOWHERE else short(span.place),
            "exposed": span.exposed,
            "row": numbers[id(report.rows[span.rows[0]])] if span.rows else None,
        }

    return {
        "seconds": plan.seconds,
        "one": plan.one_by_one,
        "exposed": sum(plan.exposed),
        "tracks": list(tracks),
        "bars": [bar(span) for span in sorted(bars, key=lambda span: span.start)],
        "loops": [
            {"start": span.start, "end": span.end, "trips": span.trips, "depth": span.depth}
            for span in plan.spans
            if not span.tracks and span.trips > 1 and span.seconds >= LEAST * plan.seconds
        ],
    }
