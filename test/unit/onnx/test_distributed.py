"""ONNX Runtime's distributed ops, and hints about pipelines: read, checked by the rules, shown, and kept."""

from __future__ import annotations

from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

from support.onnx_models import N, model, split  # noqa: E402

from shardpass.diagnostics import ShardpassError  # noqa: E402
from shardpass.onnx import Layout, check_model, completed_model, read_model, to_stablehlo  # noqa: E402
from shardpass.onnx.check import Report, summary_lines  # noqa: E402


def distributed(
    op: str, inputs: list[str], outputs: list[str], mesh: str = "[2]", elements: str = "[0, 1]", **more: Any
) -> N:
    """A node of ONNX Runtime: one spec for each input and output."""
    attributes: dict[str, Any] = dict(more)
    for side, specs in (("input", inputs), ("output", outputs)):
        attributes[f"{side}_shard_specs"] = specs
        attributes[f"{side}_device_mesh_shapes"] = [mesh] * len(specs)
        attributes[f"{side}_device_mesh_elements"] = [elements] * len(specs)
    return N(op, "AB"[: len(inputs)], "C", attributes=attributes, domain="com.microsoft")


def run(node: N, shapes: dict[str, list[int | str]], **options: Any) -> Report:
    proto = model([node], shapes, configurations=[], ir_version=8)
    del proto.configuration[:]
    return check_model(read_model(proto.SerializeToString(), "m.onnx"), **options)


def rules(report: Report) -> list[str]:
    return [d.message.split(":")[0] for d in report.findings if str(d.severity) == "error"]


MATRICES: dict[str, list[int | str]] = {"A": [8, 8], "B": [8, 8]}


def test_a_product_split_over_its_sum_is_right() -> None:
    report = run(distributed("DistributedMatMul", ["RS[0]", "S[0]R"], ["RR"]), MATRICES)
    assert report.findings == ()
    placed = report.completed[0].nodes[0]
    assert placed["A"].layout == Layout((1, 2), (frozenset({0}), frozenset({1})))
    assert placed["C"].layout == Layout((1, 1), (frozenset({0, 1}),))


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "broken"),
    [
        ("DistributedMatMul", ["RS[0]", "RS[0]"], ["RR"], ["ONNX-M2"]),  # 8 of K on one side, 4 on the other
        ("DistributedMatMul", ["S[0]R", "RR"], ["S[0]R"], []),
        ("DistributedMatMul", ["RR", "RS[0]"], ["RS[0]"], []),
        ("DistributedAdd", ["S[0]R", "RS[0]"], ["RR"], ["ONNX-B1", "ONNX-B1"]),
    ],
)
def test_the_rules_of_the_plain_op_hold(op: str, inputs: list[str], outputs: list[str], broken: list[str]) -> None:
    assert rules(run(distributed(op, inputs, outputs), MATRICES)) == broken


def test_another_output_than_the_inferred_one_is_a_redistribution() -> None:
    """C is inferred in rows, and asked for whole."""
    report = run(distributed("DistributedMatMul", ["S[0]R", "RR"], ["RR"]), {"A": [16, 8], "B": [8, 8]})
    (found,) = report.findings
    assert found.code == "SP721"


def test_a_mesh_of_two_axes_makes_groups() -> None:
    """S[0] over [2, 2] of devices 3, 2, 1, 0: shards on {3, 2} and {1, 0}; S[1]: on {3, 1} and {2, 0}."""
    node = distributed("DistributedMatMul", ["S[0]R", "RS[1]"], ["S[0]S[1]"], "[2, 2]", "[3, 2, 1, 0]")
    report = run(node, MATRICES)
    assert report.findings == ()
    placed = report.completed[0].nodes[0]
    assert placed["A"].layout == Layout((2, 1), (frozenset({3, 2}), frozenset({1, 0})))
    assert placed["B"].layout == Layout((1, 2), (frozenset({3, 1}), frozenset({2, 0})))
    assert placed["C"].layout == Layout((2, 2), tuple(frozenset({k}) for k in (3, 2, 1, 0)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"input_shard_specs": ["RT[0]", "RR"]}, "'RT[0]' is no sequence of R and S[k]"),
        ({"input_shard_specs": ["RS[1]", "RR"]}, "an axis that the mesh [2] lacks"),
        ({"input_shard_specs": ["S[0]S[0]", "RR"]}, "or over one twice"),
        ({"input_shard_specs": ["RR"]}, "have 1, 2, 2 entries for 2 inputs"),
        ({"input_device_mesh_elements": ["[0, 1, 2]", "[0, 1]"]}, "has 2 devices, and 3 are listed"),
        ({"input_device_mesh_elements": ["[0, 0]", "[0, 1]"]}, "lists a device twice"),
        ({"input_device_mesh_shapes": ["2", "[2]"]}, "'2' is no list of integers"),
        ({"input_shard_specs": 3}, "is no list of strings"),
    ],
)
def test_attributes_that_cannot_be_read(change: dict[str, Any], reason: str) -> None:
    node = distributed("DistributedMatMul", ["RS[0]", "S[0]R"], ["RR"])
    report = run(N(node.op, node.inputs, node.outputs, {}, {**node.attributes, **change}, domain=node.domain), MATRICES)
    (found,) = [one for one in report.findings if one.code == "SP719"]
    assert reason in found.message
    assert "node 'n0' (DistributedMatMul)" in found.message


def test_a_refusal_names_what_helps() -> None:
    proto = model([distributed("DistributedMatMul", ["RS[0]", "S[0]R"], ["RR"])], MATRICES)
    with pytest.raises(ShardpassError) as raised:
        to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
    (one,) = raised.value.diagnostics
    assert one.code == "SP727"
    assert "write it as MatMul with its specs in device_configurations" in one.remedy
    other = model([N("Mine", "A", "C", domain="my.ops")], {"A": [4]})
    with pytest.raises(ShardpassError) as raised:
        to_stablehlo(read_model(other.SerializeToString(), "m.onnx"))
    (one,) = raised.value.diagnostics
    assert one.code == "SP727"
    assert "my.ops" in one.message
    assert "as a function of the model" in one.remedy


def test_specs_on_nodes_of_another_domain_are_checked() -> None:
    node = N("Mine", "A", "C", {"A": split([0, 9], (0, 2))}, domain="my.ops")
    report = check_model(read_model(model([node], {"A": [4, 4]}).SerializeToString(), "m.onnx"))
    assert rules(report) == ["ONNX-S5"]
    node = N("Mine", "A", "C", {"A": split([0, 1], (0, 2))}, domain="my.ops")
    report = check_model(read_model(model([node], {"A": [4, 4]}).SerializeToString(), "m.onnx"))
    (found,) = report.findings
    assert (found.code, str(found.severity)) == ("SP752", "warning")
    assert "write the specs of its outputs" in found.remedy


# ------------------------------------------------------------------------------------- pipelines and unequal groups


def staged(*stages: int | None) -> Any:
    """Abs nodes in a row, each with its stage."""
    names = "ABCDEF"
    proto = model([N("Abs", names[k], names[k + 1]) for k in range(len(stages))], {"A": [4, 4]})
    for node, stage in zip(proto.graph.node, stages, strict=True):
        annotation = node.device_configurations.add(configuration_id="cfg")
        if stage is not None:
            annotation.pipeline_stage = stage
    return proto


@pytest.mark.parametrize(
    ("stages", "codes"),
    [
        ((0, 0, 1, 2), []),
        ((0, None, 1), []),
        ((1, 0), [("SP726", "warning")]),
        ((1, None, 0), [("SP726", "warning")]),  # through a node without a stage
        ((-1,), [("SP726", "error")]),
    ],
)
def test_stages(stages: tuple[int | None, ...], codes: list[tuple[str, str]]) -> None:
    report = check_model(read_model(staged(*stages).SerializeToString(), "m.onnx"))
    assert [(one.code, str(one.severity)) for one in report.findings] == codes


def test_stages_are_shown_and_kept() -> None:
    read = read_model(staged(0, 1).SerializeToString(), "m.onnx")
    report = check_model(read)
    lines = list(summary_lines(read, report))
    assert "  node 'n0' (Abs), pipeline stage 0" in lines
    assert "  node 'n1' (Abs), pipeline stage 1" in lines
    kept = onnx.load_model_from_string(completed_model(read, report))
    assert [node.device_configurations[0].pipeline_stage for node in kept.graph.node] == [0, 1]


def test_groups_of_unequal_size_are_checked_shown_and_completed() -> None:
    """Rows on {0} and {1, 2, 3}: the output has them too."""
    unequal = split([0, [1, 2, 3]], (0, 2))
    read = read_model(model([N("Abs", "A", "C", {"A": unequal})], {"A": [4, 4]}).SerializeToString(), "m.onnx")
    report = check_model(read)
    assert report.findings == ()
    assert report.completed[0].nodes[0]["C"].layout == Layout((2, 1), (frozenset({0}), frozenset({1, 2, 3})))
    assert any("{0} {1,2,3}" in line.replace(", ", ",") for line in summary_lines(read, report))
    again = read_model(completed_model(read, report), "m.onnx")
    assert check_model(again).findings == ()
    (annotation,) = again.nodes[0].annotations
    assert {spec.tensor_name: spec.holders() for spec in annotation.specs} == {
        "A": [(0,), (1, 2, 3)],
        "C": [(0,), (1, 2, 3)],
    }
    wrong = split([0, [1, 2, 9]], (0, 2))
    read = read_model(model([N("Abs", "A", "C", {"A": wrong})], {"A": [4, 4]}).SerializeToString(), "m.onnx")
    assert rules(check_model(read)) == ["ONNX-S5"]
