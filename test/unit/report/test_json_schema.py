"""The JSON of reports is as docs/report.schema.json says: with all parts, of any partitioner."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from support import daily
from support.corpus import corpus
from support.schedules import LOOP, beside, explained, explained_hlo

import shardpass
from shardpass.diagnostics import NOWHERE, Place, collect
from shardpass.report.explanation import Explanation
from shardpass.report.findings import DROP, Annotated, Figures, Finding, Findings, Gap, LineChange
from shardpass.report.profile import Measured
from shardpass.report.report import SCHEMA_VERSION
from shardpass.report.rows import ChangeFact, ConstraintFact, HintFact, LoopFact, Row

jsonschema = pytest.importorskip("jsonschema", reason="the schemas are tried where pip installed the extra test")

SCHEMA = json.loads((Path(shardpass.__file__).parents[1] / "docs" / "report.schema.json").read_text())


def check(report: Explanation) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report.json())
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def with_all() -> Explanation:
    """Every part that a report can have."""
    figures = Figures(8192, 100, 10, 1e-3)
    note = Annotated("argument", "w", "", "P('x')", NOWHERE, (0,))
    finding = Finding(DROP, "a", (note,), ("b",), figures, figures, "c", lines=(LineChange(Place("m.py", 1), 2, 1),))
    return replace(
        explained(LOOP),
        find_findings=lambda: Findings((finding,), 3),
        find_gap=lambda: Gap((("now", figures),)),
        find_constraints=lambda: (ConstraintFact(Place("m.py", 7), "P()", "f32[8]", 3000, 2000),),
        hints=(HintFact("line", "h", "P('x')", "P()", Place("m.py", 8), 3000, 2000, 0),),
        changes=(ChangeFact("a", NOWHERE, 2.0, 1.0),),
        loops=(LoopFact("all_gather", NOWHERE, 1, 2, 3, 0.5, 0.7, "h100", ("x",)),),
        measured=Measured((0.5, None), "a.xplane.pb"),
        trips=7,
        memory_limit=10,
    )


def test_reports_of_all_kinds() -> None:
    with collect():
        built = str(shardpass.run_pipeline(LOOP, "partition"))
        searched = shardpass.explain(beside(True), machine="h100")
    every = check(with_all())
    for report in (explained(LOOP), explained(built), searched, explained_hlo()):
        check(report)
    assert set(every) | {"decision", "decided", "compiler", "estimated_compute_seconds"} == set(SCHEMA["properties"])
    assert every["schema_version"] == SCHEMA_VERSION == SCHEMA["properties"]["schema_version"]["const"]


def test_decided_shardings() -> None:
    """Layers of which the search splits the loop's values; each decision is a part of the JSON."""
    mesh, spec = jax.sharding.AbstractMesh((8,), ("data",)), jax.sharding.PartitionSpec

    def layers(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = x + jnp.tanh(x @ w)
        return x

    arrays = jax.ShapeDtypeStruct((512, 64), "float32"), jax.ShapeDtypeStruct((64, 64), "float32")
    report = shardpass.explain(layers, *arrays, mesh=mesh, in_shardings=(spec(), spec("data")), machine="ideal")
    assert report.decided
    assert len(check(report)["decided"]) == len(report.decided)


def test_every_program_of_the_corpus() -> None:
    """The programs of the examples and of the lit tests that shardpass can explain, a part each day."""
    checked, programs = 0, daily.drawn(list(corpus()), 80)
    for name, text in programs:
        with collect():
            try:
                report = shardpass.explain(text, machine="ideal")
            except shardpass.ShardpassError:
                continue
            rows = check(report)["collectives"]
        checked += 1
        assert [tuple(row["axes"]) for row in rows] == [row.axes for row in report.rows], name
    assert checked > len(programs) / 3


def test_the_schema_knows_each_field_of_a_row() -> None:
    """And a report with another field is none: whoever adds one says so there."""
    known = set(SCHEMA["$defs"]["collective"]["properties"])
    assert known - {"file", "line", "column", "bytes_received", "exposed_seconds", "measured_seconds"} == {
        field.name for field in fields(Row)
    } - {"place"}
    found = json.loads(explained(LOOP).json())
    for change in ({"more": 1}, {"devices": "8"}, {"schema_version": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**found, **change}, SCHEMA)
