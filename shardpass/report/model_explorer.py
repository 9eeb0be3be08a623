"""Convert the schedule of a report to a graph for Model Explorer, with a node for each computation or transfer.

``model_explorer`` is a graph collection: a node is in the layers of its loops and of its line, and has its kind, axes,
bytes, seconds, shardings and reason as attributes. For each mesh axis there is an overlay of edges: into and out of the
collectives over this axis. ``node_data`` is a file of its own, which colours the nodes by their seconds.

Source: the format of ``graph_builder.py`` and ``node_data_builder.py`` of the package ai-edge-model-explorer 0.1.34.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from shardpass.diagnostics import NOWHERE
from shardpass.report.report import Report
from shardpass.report.rows import short
from shardpass.report.schedule import Schedule, Span

_COLOURS = ("#2f6fde", "#e07b00", "#12906b", "#c2408f", "#8256d0", "#a08400", "#0c8fa8", "#9c5a3c")  # as of the page
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e07b00"}]


def model_explorer(report: Report) -> str:
    """Write the graph collection as JSON; ``report`` must have a schedule."""
    plan = _plan(report)
    leaves = [number for number, span in enumerate(plan.spans) if span.tracks]
    graph = {
        "id": report.file,
        "nodes": [_node(report, plan, number) for number in leaves],
        "groupNodeAttributes": {"": _about(report, plan)},
        "tasksData": {"edgeOverlaysDataListLeftPane": [_overlays(plan)]},
    }
    return json.dumps({"label": report.file, "graphs": [graph]})


def node_data(report: Report) -> str:
    """Write the seconds of each node as JSON: for work, all seconds; for a collective, those not overlapped by work."""
    plan = _plan(report)
    leaves = [(str(number), span) for number, span in enumerate(plan.spans) if span.tracks]
    results = {number: {"value": span.exposed if span.rows else span.seconds} for number, span in leaves}
    return json.dumps({report.file: {"name": "seconds of the step", "results": results, "gradient": _GRADIENT}})


def _plan(report: Report) -> Schedule:
    assert report.schedule is not None
    return report.schedule


def _about(report: Report, plan: Schedule) -> dict[str, str]:
    return {
        "partitioner": report.partitioner,
        "machine": report.profile,
        "mesh": ", ".join(f"{name}={size}" for name, size in report.mesh),
        "bytes received": str(report.total_bytes_received),
        "seconds of a step": f"{plan.seconds:.3g}",
        "one after the other": f"{plan.one_by_one:.3g}",
    }


def _node(report: Report, plan: Schedule, number: int) -> dict[str, Any]:
    span = plan.spans[number]
    return {
        "id": str(number),
        "label": span.name,
        "namespace": "/".join(_layers(plan, number)),
        "attrs": [{"key": key, "value": value} for key, value in _attributes(report, span) if value],
        "incomingEdges": [
            {"sourceNodeId": str(maker), "sourceNodeOutputId": "0", "targetNodeInputId": str(place)}
            for place, maker in enumerate(_makers(plan, number))
        ],
        "outputsMetadata": [],
    }


def _layers(plan: Schedule, number: int) -> list[str]:
    """Return the loops around a node, the outermost first, and its line."""
    layers = [] if plan.spans[number].place == NOWHERE else [short(plan.spans[number].place)]
    outside = plan.around[number]
    while outside is not None:
        span = plan.spans[outside]
        layers.insert(0, f"{span.name} #{outside}" + (f", {span.trips} trips" if span.trips > 1 else ""))
        outside = plan.around[outside]
    return [layer.replace("/", "_") for layer in layers]


def _makers(plan: Schedule, number: int) -> list[int]:
    """Return the nodes whose results a node uses: for a loop, its last node; without any, the inputs of the loop
    around.
    """
    result: dict[int, None] = {}
    for need in plan.needs[number] or _outside(plan, number):
        inside = need
        while not plan.spans[inside].tracks:
            body = [place for place, outside in enumerate(plan.around) if outside == inside]
            if not body:
                break
            inside = max(body, key=lambda place: plan.spans[place].end)
        if plan.spans[inside].tracks:
            result[inside] = None
    return list(result)


def _outside(plan: Schedule, number: int) -> Iterable[int]:
    """List the inputs of the nearest enclosing loop that has any."""
    outside = plan.around[number]
    while outside is not None and not plan.needs[outside]:
        outside = plan.around[outside]
    return () if outside is None else plan.needs[outside]


def _attributes(report: Report, span: Span) -> list[tuple[str, str]]:
    place = "" if span.place == NOWHERE else str(span.place)
    about = [("line", place), ("seconds", f"{span.seconds:.3g}")]
    for row in (report.rows[number] for number in span.rows):
        about += [
            ("axes", ",".join(row.axes)),
            ("array", row.array),
            ("type", row.type),
            ("sharding before", row.source),
            ("sharding after", row.target),
            ("bytes received", str(row.bytes_received)),
            ("times", str(row.times)),
            ("direction", row.direction),
            ("reason", row.reason),
        ]
    return [*about, ("exposed seconds", f"{span.exposed:.3g}")] if span.rows else about


def _overlays(plan: Schedule) -> dict[str, Any]:
    """Return the edges into and out of the collectives of each mesh axis."""
    edges: dict[str, list[dict[str, str]]] = {}
    for number, span in enumerate(plan.spans):
        if not span.tracks:
            continue
        for maker in _makers(plan, number):
            ends = [one for one in (span, plan.spans[maker]) if one.rows]
            for axis in dict.fromkeys(track for one in ends for track in one.tracks):
                edges.setdefault(axis, []).append({"sourceNodeId": str(maker), "targetNodeId": str(number)})
    overlays = [
        {"name": axis, "edgeColor": _COLOURS[place % len(_COLOURS)], "edgeWidth": 2, "edges": some}
        for place, (axis, some) in enumerate(edges.items())
    ]
    return {"type": "edge_overlays", "name": "collectives by mesh axis", "overlays": overlays}
