"""The writer of SARIF: against the standard's own rules for the parts that are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardpass.report.sarif import (
    FAIL,
    NONE,
    NOTE,
    OPEN,
    PASS,
    WARNING,
    Replacement,
    SarifPlace,
    SarifResult,
    SarifRule,
    sarif,
)

jsonschema = pytest.importorskip("jsonschema", reason="the schemas are tried where pip installed the extra test")


# of SARIF 2.1.0 the objects that a log here may have; as in the standard's schema no other property is allowed
def one_of(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


TEXT = one_of(["text"], text={"type": "string", "minLength": 1})
ARTIFACT = one_of(["uri"], uri={"type": "string", "pattern": "^[A-Za-z0-9._~/%-]+$"})
REGION = one_of(
    ["startLine"],
    **{name: {"type": "integer", "minimum": 1} for name in ("startLine", "startColumn", "endLine", "endColumn")},
)
PHYSICAL = one_of(["artifactLocation"], artifactLocation=ARTIFACT, region=REGION)
CHANGE = one_of(["deletedRegion"], deletedRegion=REGION, insertedContent=TEXT)
FIX = one_of(
    ["artifactChanges"],
    description=TEXT,
    artifactChanges={
        "type": "array",
        "minItems": 1,
        "items": one_of(
            ["artifactLocation", "replacements"],
            artifactLocation=ARTIFACT,
            replacements={"type": "array", "minItems": 1, "items": CHANGE},
        ),
    },
)
RESULT = one_of(
    ["message"],
    ruleId={"type": "string"},
    ruleIndex={"type": "integer", "minimum": 0},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level={"enum": ["none", "note", "warning", "error"]},
    message=TEXT,
    locations={"type": "array", "items": one_of([], physicalLocation=PHYSICAL)},
    relatedLocations={"type": "array", "items": one_of([], physicalLocation=PHYSICAL, message=TEXT)},
    fixes={"type": "array", "items": FIX},
    properties={"type": "object"},
)
RULE = one_of(["id"], id={"type": "string"}, fullDescription=TEXT, help=TEXT)
DRIVER = one_of(["name"], name={"type": "string"}, version={"type": "string"}, rules={"type": "array", "items": RULE})
RUN = one_of(
    ["tool"],
    tool=one_of(["driver"], driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
    properties={"type": "object"},
)
LOG = one_of(
    ["version", "runs"],
    **{"$schema": {"type": "string"}, "version": {"const": "2.1.0"}, "runs": {"type": "array", "items": RUN}},
)


def valid(text: str) -> Any:
    """The run of a log, which is what the standard allows; each result points to its rule."""
    log = json.loads(text)
    jsonschema.validate(log, LOG)
    (run,) = log["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["kind"] == "fail") == (result["level"] != "none")  # 3.27.10
    return run


RESULTS = (
    SarifResult(
        "own",
        WARNING,
        "too much\nis sent",
        "a b.py",
        3,
        5,
        related=(SarifPlace("here", "a b.py", 7),),
        fix="drop the constraint",
        replacements=(Replacement("a b.py", 3, 2, "y = x\n"), Replacement("a b.py", 9, 0, "z = y\n")),
        properties={"bytes": 12},
    ),
    SarifResult("SP203", NOTE, "no place"),
    SarifResult("own", NONE, "proved", kind=PASS),
    SarifResult("own", NONE, "not known", kind=OPEN),
)


def test_a_log_of_all_parts() -> None:
    run = valid(sarif("shardpass-explain", RESULTS, "m.mlir", rules=[SarifRule("own", "it is sent", "drop it")]))
    first, second, *others = run["results"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["own", "SP203"]
    assert (rules[0]["fullDescription"]["text"], rules[0]["help"]["text"]) == ("it is sent", "drop it")
    assert "\n" not in first["message"]["text"]
    where = first["locations"][0]["physicalLocation"]
    assert where == {"artifactLocation": {"uri": "a%20b.py"}, "region": {"startLine": 3, "startColumn": 5}}
    assert second["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "m.mlir"}}
    assert [one["kind"] for one in (first, second, *others)] == [FAIL, FAIL, PASS, OPEN]
    assert first["properties"] == {"bytes": 12}


def test_a_fix_is_applied_as_an_editor_does() -> None:
    """Regions are of the file as it is, the last first; a region's end is not in it (3.30)."""
    lines = [f"line {number}\n" for number in range(1, 11)]
    run = valid(sarif("shardpass-explain", RESULTS, "m.mlir"))
    (change,) = run["results"][0]["fixes"][0]["artifactChanges"]
    for one in reversed(change["replacements"]):
        region = one["deletedRegion"]
        assert region["startColumn"] == region["endColumn"] == 1
        lines[region["startLine"] - 1 : region["endLine"] - 1] = [one["insertedContent"]["text"]]
    numbers = [1, 2, "y", 5, 6, 7, 8, "z", 9, 10]
    assert "".join(lines) == "".join({"y": "y = x\n", "z": "z = y\n"}.get(str(one), f"line {one}\n") for one in numbers)


def test_paths_below_the_working_directory_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    some = [SarifResult("own", WARNING, "x", str(path)) for path in (tmp_path / "src/a.py", tmp_path.parent / "b.py")]
    uris = [
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in valid(sarif("shardpass-explain", some, "m.mlir"))["results"]
    ]
    assert uris == ["src/a.py", str(tmp_path.parent / "b.py")]


def test_no_result_is_a_log_too() -> None:
    run = valid(sarif("shardpass-prove", (), "m.mlir", properties={"seconds": 1}))
    assert run["results"] == []
    assert run["properties"] == {"seconds": 1}
