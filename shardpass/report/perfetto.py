"""Export the schedule of a report as a trace for ui.perfetto.dev and chrome://tracing.

The trace has one process, a device. Its threads are "loops", "compute", and one for each mesh axis; a collective over
two axes appears as a slice on both. A flow links the op that computes a value to an op that reads it, if at least one
of the two is a collective. A counter shows the live bytes, if the report has them for each op. Modeled seconds are
written as microseconds. The body of a loop is drawn once, with the duration of all its iterations.

Source: "Trace Event Format" (Chromium): complete events X, flow events s and f, counters C, metadata M.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from shardpass.cost.schedule import COMPUTE
from shardpass.diagnostics import NOWHERE
from shardpass.report.report import Report
from shardpass.report.rows import short
from shardpass.report.schedule import Schedule, Span

_DEVICE = 1
_LOOPS = "loops"
_MICRO = 1e6


def perfetto(report: Report) -> str:
    """Write the trace as JSON; ``report`` must have a schedule."""
    plan = report.schedule
    assert plan is not None
    tracks = (_LOOPS, *plan.tracks)
    events = [
        *_names(report, tracks),
        *_slices(report, plan, tracks),
        *_flows(plan, tracks),
        *_memory(report, plan),
    ]
    about = {"file": report.file, "machine": report.profile, "partitioner": report.partitioner}
    return json.dumps({"displayTimeUnit": "ns", "otherData": about, "traceEvents": events})


def _names(report: Report, tracks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    yield _event("M", 0, name="process_name", args={"name": f"a device of {report.file}, modelled on {report.profile}"})
    for number, track in enumerate(tracks):
        known = track in (_LOOPS, COMPUTE)
        yield _event("M", number, name="thread_name", args={"name": track if known else f"links of {track}"})
        yield _event("M", number, name="thread_sort_index", args={"sort_index": number})


def _slices(report: Report, plan: Schedule, tracks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for span in plan.spans:
        for track in span.tracks or (_LOOPS,):
            yield _event(
                "X",
                tracks.index(track),
                name=_title(span),
                cat="collective" if span.rows else "work" if span.tracks else "loop",
                ts=span.start * _MICRO,
                dur=span.seconds * _MICRO,
                args=_arguments(report, span),
            )


def _title(span: Span) -> str:
    if not span.tracks:
        return f"{span.name}, {span.trips} trips" if span.trips > 1 else span.name
    return span.name if span.place == NOWHERE else f"{span.name} {short(span.place)}"


def _arguments(report: Report, span: Span) -> dict[str, Any]:
    rows = [report.rows[number] for number in span.rows]
    about: dict[str, Any] = {} if span.place == NOWHERE else {"line": str(span.place)}
    if rows:
        about |= {
            "axes": ",".join(rows[0].axes),
            "array": ", ".join(dict.fromkeys(row.array for row in rows if row.array)),
            "bytes received": sum(row.bytes_received for row in rows),
            "times": rows[0].times,
            "exposed us": span.exposed * _MICRO,
            "reason": rows[0].reason,
        }
    return about


def _flows(plan: Schedule, tracks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield an arrow from inside the slice that computes a value to the start of the slice that uses the value."""
    number = 0
    for span, needs in zip(plan.spans, plan.needs, strict=True):
        for need in needs:
            maker = plan.spans[need]
            if not (span.rows or maker.rows) or not span.tracks or not maker.tracks:
                continue
            number += 1
            middle = maker.start + maker.seconds / 2
            begin, end = tracks.index(maker.tracks[0]), tracks.index(span.tracks[0])
            yield _event("s", begin, name="value", cat="value", id=number, ts=middle * _MICRO)
            yield _event("f", end, name="value", cat="value", id=number, ts=span.start * _MICRO, bp="e")


def _memory(report: Report, plan: Schedule) -> Iterator[dict[str, Any]]:
    """Yield a counter event for each op of the program: the bytes alive, at the start of the op's first span."""
    alive = dict(report.memory.at) if report.memory is not None else {}
    seen: set[int] = set()
    for span in plan.spans:
        if span.op is not None and span.op in alive and span.op not in seen:
            seen.add(span.op)
            size = {"bytes": alive[span.op]}
            yield _event("C", 0, name="bytes alive on a device", ts=span.start * _MICRO, args=size)


def _event(phase: str, thread: int, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "pid": _DEVICE, "tid": thread, **more}
