"""The files that other tools open: traces, graphs and findings, by the rules of their formats."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from support.schedules import LOOP, beside, explained, explained_hlo

import shardpass
from shardpass.cost.schedule import COMPUTE
from shardpass.diagnostics import Place, ShardpassError, collect
from shardpass.report.explanation import Explanation
from shardpass.report.findings import DROP, Annotated, Figures, Finding, Findings
from shardpass.report.judged import as_sarif, judged, over, replacements
from shardpass.report.rows import ConstraintFact, HintFact

jsonschema = pytest.importorskip("jsonschema", reason="the schemas are tried where pip installed the extra test")

# ---------------------------------------------------------------- a trace


def phase(name: str, required: list[str], **properties: Any) -> dict[str, Any]:
    """An event of the Trace Event Format with its fields, and no other."""
    known = {"ph": {"const": name}, "pid": {"type": "integer"}, "tid": {"type": "integer"}, "name": {"type": "string"}}
    known |= {"cat": {"type": "string"}, "args": {"type": "object"}} | properties
    return {
        "type": "object",
        "required": ["ph", "pid", "tid", "name", *required],
        "properties": known,
        "additionalProperties": False,
    }


TIME = {"type": "number", "minimum": 0}
NUMBERS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}
TRACE = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    phase("X", ["ts", "dur"], ts=TIME, dur=TIME),
                    phase("s", ["ts", "id", "cat"], ts=TIME, id={"type": "integer"}),
                    phase("f", ["ts", "id", "cat", "bp"], ts=TIME, id={"type": "integer"}, bp={"const": "e"}),
                    phase("C", ["ts", "args"], ts=TIME, args=NUMBERS),
                    phase("M", ["args"]),
                ]
            },
        },
    },
    "additionalProperties": False,
}


def trace_of(report: Explanation) -> dict[str, list[dict[str, Any]]]:
    """The events by their phases."""
    trace = json.loads(report.emit("perfetto"))
    jsonschema.validate(trace, TRACE)
    found = defaultdict(list)
    for event in trace["traceEvents"]:
        found[event["ph"]].append(event)
    return found


@cache
def reports() -> list[Explanation]:
    return [explained(beside(True)), explained(LOOP), explained_hlo()]


def test_a_trace_has_a_track_for_compute_and_each_axis() -> None:
    for report in reports():
        assert report.schedule is not None
        found = trace_of(report)
        names = {event["tid"]: event["args"]["name"] for event in found["M"] if event["name"] == "thread_name"}
        axes = dict.fromkeys(axis for row in report.rows for axis in row.axes)
        assert sorted(names.values()) == sorted(["loops", COMPUTE, *(f"links of {axis}" for axis in axes)])
        by_track = defaultdict(list)
        for event in found["X"]:
            by_track[names[event["tid"]]].append((event["ts"], event["ts"] + event["dur"]))
        ends = [end for track in by_track.values() for _, end in track]
        assert max(ends) == pytest.approx(1e6 * report.schedule.seconds)
        computed = sum(end - start for start, end in by_track[COMPUTE])
        assert computed == pytest.approx(1e6 * (report.compute_seconds or 0))
        for name, slices in by_track.items():
            if name != "loops":  # which nest
                for before, after in zip(sorted(slices), sorted(slices)[1:], strict=False):
                    assert before[1] <= after[0] * (1 + 1e-9)


def test_flows_lead_from_slices_to_slices() -> None:
    """Each begins within a slice of its thread and ends where a later slice begins."""
    flows = 0
    for report in reports():
        found = trace_of(report)
        slices = [(event["tid"], event["ts"], event["ts"] + event["dur"]) for event in found["X"]]
        ends = {event["id"]: event for event in found["f"]}
        assert sorted(ends) == sorted(event["id"] for event in found["s"])
        for event in found["s"]:
            flows += 1
            assert any(tid == event["tid"] and start < event["ts"] < end for tid, start, end in slices)
            taken = ends[event["id"]]
            assert any(tid == taken["tid"] and start == taken["ts"] for tid, start, _ in slices)
            assert taken["ts"] >= event["ts"]
    assert flows > 4


def test_a_trace_counts_the_bytes_that_are_alive() -> None:
    report = explained(beside(True))
    assert report.memory is not None
    alive = {size for _, size in report.memory.at}
    counted = [event["args"]["bytes"] for event in trace_of(report)["C"]]
    assert counted
    assert set(counted) <= alive
    assert report.memory.total in counted
    assert not trace_of(explained_hlo())["C"]  # of HLO bytes by op are not known


# ---------------------------------------------------------------- a graph

VALUE = {"type": "object", "required": ["key", "value"], "additionalProperties": False, "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}  # fmt: skip # noqa: E501
STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}


def fields(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


TEXT, LIST = {"type": "string"}, "array"
EDGE = fields(["sourceNodeId"], sourceNodeId=TEXT, sourceNodeOutputId=TEXT, targetNodeInputId=TEXT)
NODE = fields(
    ["id", "label"],
    id=TEXT,
    label=TEXT,
    namespace=TEXT,
    attrs={"type": LIST, "items": VALUE},
    incomingEdges={"type": LIST, "items": EDGE},
    outputsMetadata={"type": LIST},
)
OVERLAY = fields(
    ["name", "edgeColor", "edges"],
    name=TEXT,
    edgeColor=TEXT,
    edgeWidth={"type": "integer"},
    edges={"type": LIST, "items": fields(["sourceNodeId", "targetNodeId"], sourceNodeId=TEXT, targetNodeId=TEXT)},
)
OVERLAYS = fields(
    ["name", "type", "overlays"],
    name=TEXT,
    type={"const": "edge_overlays"},
    overlays={"type": LIST, "items": OVERLAY},
)
GRAPH = fields(
    ["id", "nodes"],
    id=TEXT,
    nodes={"type": LIST, "items": NODE},
    groupNodeAttributes={"type": "object", "additionalProperties": STRINGS},
    tasksData=fields([], edgeOverlaysDataListLeftPane={"type": LIST, "items": OVERLAYS}),
)
GRAPHS = fields(["label", "graphs"], label=TEXT, graphs={"type": LIST, "items": GRAPH})


@pytest.mark.parametrize("number", range(3))
def test_a_graph_has_its_nodes_edges_and_overlays(number: int) -> None:
    """By the classes of Model Explorer's graph builder; each edge has both of its nodes, and goes forward in time."""
    report = reports()[number]
    plan = report.schedule
    assert plan is not None
    collection = json.loads(report.emit("model-explorer"))
    jsonschema.validate(collection, GRAPHS)
    (graph,) = collection["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"]) == sum(bool(span.tracks) for span in plan.spans)
    edges = {(edge["sourceNodeId"], node["id"]) for node in graph["nodes"] for edge in node["incomingEdges"]}
    assert edges
    assert all(plan.spans[int(a)].end <= plan.spans[int(b)].start * (1 + 1e-9) for a, b in edges)
    overlays = graph["tasksData"]["edgeOverlaysDataListLeftPane"][0]["overlays"]
    assert {one["name"] for one in overlays} <= {axis for row in report.rows for axis in row.axes}
    for one in overlays:
        for edge in one["edges"]:
            ends = (edge["sourceNodeId"], edge["targetNodeId"])
            assert ends in edges
            assert any(one["name"] in plan.spans[int(end)].tracks for end in ends)


@pytest.mark.parametrize("number", range(3))
def test_the_data_of_nodes_adds_up_to_the_step(number: int) -> None:
    report = reports()[number]
    assert report.schedule is not None
    ((graph, data),) = json.loads(report.emit("model-explorer-data")).items()
    assert graph == json.loads(report.emit("model-explorer"))["graphs"][0]["id"]
    assert sum(one["value"] for one in data["results"].values()) == pytest.approx(report.schedule.seconds)
    assert [one["stop"] for one in data["gradient"]] == [0, 1]


def test_what_a_loop_runs_is_in_its_layer() -> None:
    (graph,) = json.loads(explained(LOOP).emit("model-explorer"))["graphs"]
    inside = [node["label"] for node in graph["nodes"] if ", 5 trips" in node["namespace"].split("/")[0]]
    assert [label for label in inside if label in ("all_to_all", "tanh")] == ["all_to_all", "tanh", "all_to_all"]


def test_a_partitioned_module_has_no_schedule_to_write() -> None:
    with collect():
        built = str(shardpass.run_pipeline(LOOP, "partition"))
    with pytest.raises(ShardpassError, match="SP628"):
        explained(built).emit("perfetto")
    with pytest.raises(ShardpassError, match="SP140"):
        explained(LOOP).emit("svg")


# ---------------------------------------------------------------- findings

DIFF = """--- a/train.py
+++ b/train.py
@@ -4,5 +4,4 @@
 def layer(x, p):
     u = f(x)
-    u = pinned(u)
     return u
 def step(p, x):
@@ -20,3 +19,5 @@
 a = 1
-b = 2
+b = 3
+c = 4
+-- d
 e = 5
"""


def test_a_diff_as_replacements() -> None:
    """Applied from the last to the first they make what ``patch`` makes of it."""
    lines = [f"{number}\n" for number in range(1, 30)]
    made = list(replacements(DIFF))
    assert [(one.file, one.line, one.count, one.text) for one in made] == [
        ("train.py", 6, 1, ""),
        ("train.py", 21, 1, "b = 3\nc = 4\n-- d\n"),
    ]
    for one in reversed(made):
        lines[one.line - 1 : one.line - 1 + one.count] = one.text.splitlines(keepends=True)
    assert lines[4:7] == ["5\n", "7\n", "8\n"]
    assert lines[18:23] == ["20\n", "b = 3\n", "c = 4\n", "-- d\n", "22\n"]


def test_lines_that_come_alone_go_before_a_line() -> None:
    (one,) = replacements("--- a/a.py\n+++ b/a.py\n@@ -3,0 +4,1 @@\n+x = 1\n")
    assert (one.line, one.count, one.text) == (4, 0, "x = 1\n")


def with_all() -> Explanation:
    """4096 bytes saved by a finding, 2000 by a constraint, 1000 by a hint."""
    figures = (Figures(8192, 100, 10, 1e-3), Figures(4096, 90, 10, 1e-4))
    annotation = Annotated("constraint", "u", "P('x')", "", Place("train.py", 6, 5))
    finding = Finding(
        DROP, "the constraint costs", (annotation,), ("drop it",), *figures, DIFF, Place("train.py", 6, 5)
    )
    findings = Findings((finding,))
    constraint = ConstraintFact(Place("train.py", 7), "P()", "f32[8]", 3000, 2000)
    hint = HintFact("line", "h", "P('x')", "P()", Place("train.py", 8), 3000, 2000, 0)
    report = explained(beside(False))
    return replace(
        report, find_findings=lambda: findings, find_constraints=lambda: (constraint,), hints=(hint,), partitioner="xla"
    )


def test_findings_are_results_and_errors_over_the_limit() -> None:
    report = with_all()
    (row,) = report.rows
    limit = 2500
    found = judged(report, limit)
    log = json.loads(as_sarif(report, found, limit))
    results = log["runs"][0]["results"]
    assert [(one["ruleId"], one["level"], one["properties"]["bytes"]) for one in results] == [
        ("SP810", "error", 4096),
        ("SP246", "warning", 2000),
        ("SP627", "warning", 1000),
        ("SP626", "error", row.bytes_received),
    ]
    assert [one.bytes for one in over(found, limit)] == [4096, row.bytes_received]
    assert over(found, None) == ()
    changes = results[0]["fixes"][0]["artifactChanges"]
    assert [change["deletedRegion"]["startLine"] for change in changes[0]["replacements"]] == [6, 21]
    plain = json.loads(report.emit("sarif"))["runs"][0]["results"]
    assert {one["level"] for one in plain} == {"warning"}
    assert [one["ruleId"] for one in plain] == ["SP810", "SP246", "SP627"]
