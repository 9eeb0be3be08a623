"""Convert the numbers of a report to plain values for the page's JSON, in the order of the page.

Sums are the totals and groups of the report. Repeated rows are merged, as in the text, and each group lists its rows
by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from shardpass.diagnostics import NOWHERE, Place
from shardpass.report.findings import Finding, headline
from shardpass.report.groups import AXIS, GROUPINGS, KIND, Folded, Group, fold, group
from shardpass.report.page_program import course, sections
from shardpass.report.page_schedule import schedule
from shardpass.report.page_steps import Ways
from shardpass.report.report import Report
from shardpass.report.rows import BACKWARD, FORWARD, Row, short
from shardpass.report.text import COMPILERS, PARTITIONED, decided_saving, show_bytes, show_flops
from shardpass.report.worst import micro, worst
from shardpass.sharding.quoting import listed
from shardpass.version import installed_version

MOST_WORK = 3  # lines of the user's that are named beside the time of computing

Plain = dict[str, Any]


def contents(report: Report) -> Plain:
    """Collect the report's facts as the page's scripts read them."""
    folded = fold(report.rows)
    numbers = {id(row): number for number, one in enumerate(folded) for row in one.rows}
    ways = Ways(report)
    exposed = () if report.schedule is None else report.schedule.exposed
    bare = {id(row): share for row, share in zip(report.rows, exposed, strict=False)}
    seconds = () if report.measured is None else report.measured.seconds
    took = {id(row): one or 0.0 for row, one in zip(report.rows, seconds, strict=False)}
    by = report.compiler or report.stand_in
    return {
        "file": report.file,
        "devices": report.devices,
        "mesh": [list(axis) for axis in report.mesh],
        "ids": ways.ids,
        "profile": report.profile,
        "partitioner": COMPILERS.get(report.partitioner, "shardpass"),
        "version": installed_version(),
        "command": report.command,
        "worst": asdict(worst(report)),
        "schedule": schedule(report, numbers),
        "partitioned": PARTITIONED.get(report.partitioner, "") + (f", compiled by {by}" if by else ""),
        "bytes": report.total_bytes_received,
        "most": None if report.trips is None else report.bytes_at_most(report.trips),
        "trips": report.trips,
        "unknown": report.unknown_loops,
        "seconds": report.seconds,
        "compute": report.compute_seconds,
        "step": report.step_seconds if report.schedule is None else report.schedule.one_by_one,
        "bound": report.bound_by,
        "work": [
            {**place(where), "seconds": seconds} for where, seconds in report.compute_by_line()[:MOST_WORK] if seconds
        ],
        "runs": report.runs,
        "memory": _memory(report),
        "rows": [{**_row(a, report, ways), "exposed": _sum(bare, a), "measured": _sum(took, a)} for a in folded],
        "groups": {by: [_group(one, report, numbers) for one in report.grouped(by)] for by in GROUPINGS},
        "bars": _bars(report),
        "ways": ways.listed,
        "program": sections(report),
        "course": course(report, numbers),
        "decided": [{**asdict(one), **place(one.place), "saves": decided_saving(one)} for one in report.decided],
        "changes": [] if report.decided else [
            {"message": one.message, "saved": one.saved, "place": _short(one.place)}
            for one in sorted(report.changes, key=lambda one: -one.saved)
            if one.saved > 0
        ],
        "loops": [
            {**asdict(one), **place(one.place), "axes": list(one.axes)}
            for one in sorted(report.loops, key=lambda one: -one.whole)
        ],
        "findings": [_finding(one) for one in report.findings or ()],
        "gap": [] if report.gap is None else report.gap.as_list(),
        "constraints": [{**asdict(one), **place(one.place)} for one in report.constraints],
        "hints": None if report.hints is None else [{**asdict(h), **place(h.place), "code": h.code, "saves": h.saves}
                                                   for h in report.hints],
    }  # fmt: skip


def _sum(bare: Mapping[int, float], one: Folded) -> float | None:
    """Return the total seconds of equal rows; None if unknown."""
    return sum(bare[id(row)] for row in one.rows) if bare else None


def _finding(one: Finding) -> Plain:
    return {
        "headline": headline(one),
        "code": list(one.code),
        "diff": one.diff.splitlines(),
        "figures": [
            ["received", show_bytes(one.before.bytes), show_bytes(one.after.bytes)],
            ["memory", show_bytes(one.before.memory), show_bytes(one.after.memory)],
            ["products", show_flops(one.before.flops), show_flops(one.after.flops)],
            ["modelled step", micro(one.before.seconds), micro(one.after.seconds)],
        ],
    }


def place(where: Place) -> Plain:
    """Format a place twice: short for display, and in full."""
    return {"place": _short(where), "full": "" if where == NOWHERE else str(where)}


def _short(where: Place) -> str:
    return "" if where == NOWHERE else short(where)


def _received(rows: Sequence[Row]) -> list[Plain] | None:
    """Return the bytes of each row with the receiving devices; None if all rows reach every device."""
    if all(row.receivers is None for row in rows):
        return None
    return [{"bytes": row.bytes_received, "devices": row.receivers} for row in rows]


def _row(one: Folded, report: Report, ways: Ways) -> Plain:
    row = one.row
    return {
        "kind": row.kind,
        "axes": list(row.axes),
        "size": row.group_size,
        "array": one.array,
        "type": row.type,
        "source": row.source,
        "target": row.target,
        "before": row.source_dims,
        "after": row.target_dims,
        "backward": row.direction == BACKWARD,
        "names": row.names,
        **_where(row),
        "line": report.sources.line(row.place),
        "path": [str(step) for step in row.path],
        "reason": row.reason,
        "count": one.count,
        "runs": one.runs,
        "times": row.times,
        "each": row.bytes_each,
        "bytes": one.bytes_received,
        "received": _received(one.rows),
        "seconds": one.seconds,
        "counted": row.counted,
        "unknown": row.unknown_loops,
        "op": row.op,
        "way": ways.of(row),
    }


def _where(row: Row) -> Plain:
    """Return the line of a row; if unknown, its name scopes."""
    if row.place != NOWHERE or not row.path:
        return place(row.place)
    return {"place": row.where, "full": row.where}


def _group(one: Group, report: Report, numbers: Mapping[int, int]) -> Plain:
    nowhere = one.depth == 0 and one.place == NOWHERE  # a line that is not known
    title = {"place": one.key, "full": one.key} if one.place == NOWHERE and not nowhere else place(one.place)
    return {
        **title,
        "line": report.sources.line(one.place),
        "bytes": one.bytes_received,
        "backward": one.backward_bytes,
        "seconds": one.seconds,
        "runs": one.runs,
        "rows": [numbers[id(each.row)] for each in one.folded],
        "parts": [_group(part, report, numbers) for part in one.parts(report.total_bytes_received)],
    }


def _bars(report: Report) -> Plain:
    """Return bytes by direction and by kind, each in parts by axes."""
    ways = {way: [row for row in report.rows if row.direction == way] for way in (FORWARD, BACKWARD)}
    return {
        "direction": [_bar(Group(way, tuple(rows))) for way, rows in ways.items()],
        "kind": list(map(_bar, report.grouped(KIND))),
    }


def _bar(whole: Group) -> Plain:
    parts = sorted((part.key, part.bytes_received) for part in group(whole.rows, AXIS))
    split = [{"axes": listed(axes), "bytes": size} for axes, size in parts]
    return {"name": whole.key, "bytes": whole.bytes_received, "runs": whole.runs, "parts": split}


def _memory(report: Report) -> Plain | None:
    memory = report.memory
    if memory is None:
        return None
    return {
        "arguments": memory.arguments,
        "results": memory.results,
        "temporaries": memory.temporaries,
        "total": memory.total,
        "limit": report.memory_limit,
        "peak": memory.peak_op,
        **place(memory.peak_place),
        "holdings": [
            {"name": one.name, "type": one.type, "bytes": one.bytes, "count": one.count, **place(one.place)}
            for one in memory.holdings
        ],
    }
