"""Every rule of ONNX's sharding formalism: a model that keeps it, and one that breaks it.

The examples of the documents are here by name, with the text's verdicts. All others are small enough to be worked out
on paper: the expected layout, or the rule that is broken, stands beside each.
"""

from __future__ import annotations

from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

from support.onnx_models import N, model, split  # noqa: E402

from shardpass.onnx import Layout, check_model, read_model  # noqa: E402
from shardpass.onnx.check import Report  # noqa: E402

ROWS2, COLUMNS2 = split([0, 1], (0, 2)), split([0, 1], (1, 2))
GRID = split([0, 1, 2, 3], (0, 2), (1, 2))
BOTH = split([[0, 1]])


def run(proto: Any, **options: Any) -> Report:
    return check_model(read_model(proto.SerializeToString(), "m.onnx"), **options)


def rules(report: Report, *severities: str) -> list[str]:
    """The ids of the rules, of findings of these severities (all where none is named)."""
    return [d.message.split(":")[0] for d in report.findings if not severities or str(d.severity) in severities]


def placed(report: Report, tensor: str, node: int = -1) -> Layout:
    return report.completed[0].nodes[node][tensor].layout


def layout(counts: tuple[int, ...], *held: set[int]) -> Layout:
    return Layout(counts, tuple(map(frozenset, held)))


# ------------------------------------------------------------------------------------- the documents' examples


def test_add_of_matrices_split_along_different_axes_makes_no_sense() -> None:
    shapes = {"A": [32, 1024], "B": [32, 1024]}
    wrong = run(model([N("Add", "AB", "C", {"A": ROWS2, "B": COLUMNS2})], shapes))
    assert rules(wrong, "error") == ["ONNX-B1", "ONNX-B1"]  # axis 0, and axis 1
    right = run(model([N("Add", "AB", "C", {"A": ROWS2, "B": ROWS2})], shapes))
    assert rules(right) == []
    assert placed(right, "C") == layout((2, 1), {0}, {1})


def test_two_broadcast_axes_compose_where_device_sets_meet() -> None:
    first, second = split([[0, 1], [2, 3]], (0, 2)), split([[0, 2], [1, 3]], (1, 2))
    shapes = {"A": [6, 1], "B": [1, 8]}
    right = run(model([N("Add", "AB", "C", {"A": first, "B": second})], shapes))
    assert rules(right) == []
    assert placed(right, "C") == layout((2, 2), {0}, {1}, {2}, {3})
    told = run(model([N("Add", "AB", "C", {"A": first, "B": second, "C": GRID})], shapes))
    assert rules(told) == []  # the spec that the text gives for the output is the inferred one
    wrong = run(model([N("Add", "AB", "C", {"A": first, "B": split([[0, 1], [2, 3]], (1, 2))})], shapes))
    assert rules(wrong, "error") == ["ONNX-B3"]
    assert "shard (axis 0 0, axis 1 1)" in wrong.findings[0].message


def test_product_with_the_summed_axis_split_in_two_ways_is_invalid() -> None:
    shapes = {"A": [8, 16], "B": [16, 4]}
    wrong = run(model([N("MatMul", "AB", "C", {"A": COLUMNS2, "B": split([0, 1, 2, 3], (0, 4))})], shapes))
    assert rules(wrong, "error") == ["ONNX-M2"]
    right = run(model([N("MatMul", "AB", "C", {"A": COLUMNS2, "B": ROWS2})], shapes))
    assert rules(right) == []
    assert placed(right, "C") == layout((1, 1), {0, 1})  # R3: on all devices of the reduction


# ------------------------------------------------------------------------------------- structure

ONE = {"X": [4, 6]}


def unary(spec: str, shape: list[int | str] | None = None, **more: Any) -> Report:
    return run(model([N("Abs", "X", "Y", {"X": spec})], {"X": shape or [4, 6]}, **more))


STRUCTURE = {
    # rule: (valid, invalid, what the message names)
    "ONNX-S3": (split([0, 1], (-1, 2)), split([0, 1], (2, 2)), "axis 2"),
    "ONNX-S3 twice": (GRID, split([0, 1, 2, 3], (1, 2), (-1, 2)), "axis 1 2 times"),
    "ONNX-S4": (ROWS2, split([0, 1, 2], (0, 2)), "2 shards but lists 3"),
    "ONNX-S4 whole": (BOTH, split([0, 1]), "1 shards but lists 2"),
    "ONNX-S5": (split([2, 3], (0, 2)), split([2, 4], (0, 2)), "entry 4"),
    "ONNX-S5 key": (BOTH, "{device = [-1] sharded_dim = []}", "entry -1 is no key"),
    "ONNX-S5 group": (BOTH, split([[0, 7]]), "names device 7"),
    "ONNX-S5 empty": (BOTH, "{device = [-1] device_map = {-1: []} sharded_dim = []}", "is empty"),
    "ONNX-S5 member twice": (BOTH, split([[0, 0]]), "twice"),
    "ONNX-S6": (ROWS2, split([], (0, 0)), "0 shards"),
    "ONNX-S6 size": (
        "{device = [0, 1] sharded_dim = [{axis = 0 simple_sharding = [{dim_value = 4 num_shards = 2}]}]}",
        "{device = [0, 1] sharded_dim = [{axis = 0 simple_sharding = [{dim_value = 8 num_shards = 2}]}]}",
        "has size 4, and the spec says 8",
    ),
}


@pytest.mark.parametrize("case", STRUCTURE)
def test_structure(case: str) -> None:
    valid, invalid, told = STRUCTURE[case]
    assert rules(unary(valid)) == []
    wrong = unary(invalid)
    assert set(rules(wrong, "error")) == {case.split()[0]}
    assert any(told in d.message and "node 'n0' (Abs)" in d.message for d in wrong.findings)


def test_a_node_names_a_configuration_of_the_model() -> None:
    nodes = [N("Abs", "X", "Y", {"X": ROWS2}, configuration="other")]
    wrong = run(model(nodes, ONE))
    assert rules(wrong, "error") == ["ONNX-S1"]
    right = run(model(nodes, ONE, configurations=[("cfg", 4), ("other", 2)]))
    assert rules(right) == []
    assert rules(run(model(nodes, ONE, configurations=[("other", 2), ("other", 2)])), "error") == ["ONNX-S1"]


def test_a_configuration_names_each_of_its_devices() -> None:
    proto = model([N("Abs", "X", "Y")], ONE, devices=2)
    proto.configuration[0].device.extend(["gpu0", "gpu1"])
    assert rules(run(proto)) == []
    proto.configuration[0].device.append("gpu2")
    assert rules(run(proto), "error") == ["ONNX-S5"]


def test_a_spec_is_about_a_tensor_of_its_node_and_the_only_one() -> None:
    assert rules(run(model([N("Abs", "X", "Y", {"Y": ROWS2})], ONE))) == []
    assert rules(run(model([N("Abs", "X", "Y", {"Z": ROWS2})], ONE)), "error") == ["ONNX-S2"]
    proto = model([N("Abs", "X", "Y", {"X": ROWS2})], ONE)
    specs = proto.graph.node[0].device_configurations[0].sharding_spec
    specs.add().CopyFrom(specs[0])
    assert rules(run(proto), "error") == ["ONNX-S2"]


def test_uneven_splits_are_allowed_and_told() -> None:
    assert rules(unary(ROWS2, [5, 6])) == ["ONNX-S6"]
    assert rules(unary(ROWS2, [5, 6]), "error") == []
    assert rules(unary(ROWS2, ["batch", 6])) == []


def test_one_device_with_two_shards_is_told() -> None:
    assert rules(unary(split([0, 1, 0, 1], (0, 4)))) == ["ONNX-S7"]
    assert rules(unary(split([0, 1, 2, 3], (0, 4)))) == []


# ------------------------------------------------------------------------------------- defaults


def test_a_missing_input_spec_is_that_of_the_producer() -> None:
    report = run(model([N("Abs", "X", "Y", {"X": ROWS2}), N("Neg", "Y", "Z")], ONE))
    assert rules(report) == []
    assert placed(report, "Z") == layout((2, 1), {0}, {1})
    assert report.completed[0].nodes[1]["Y"].source == "ONNX-D1"


def test_a_graph_input_without_spec_is_unsharded() -> None:
    report = run(model([N("Abs", "X", "Y")], ONE))
    assert placed(report, "Y").is_anywhere
    assert rules(report) == []


def test_an_output_may_be_redistributed_after_the_op() -> None:
    # device 0 holds rows 0-1, of 6 floats, and is to hold columns 0-2: it lacks 2 rows of 3, 24 bytes
    report = run(model([N("Abs", "X", "Y", {"X": ROWS2, "Y": COLUMNS2})], ONE))
    assert rules(report) == rules(report, "remark") == ["ONNX-D4"]
    assert "24 bytes" in report.findings[0].message
    assert placed(report, "Y") == layout((1, 2), {0}, {1})


def test_an_input_may_be_repartitioned_before_the_op() -> None:
    # whole on both: each lacks the other's 2 rows of 6 floats
    nodes = [N("Abs", "X", "Y", {"X": ROWS2}), N("Neg", "Y", "Z", {"Y": BOTH})]
    report = run(model(nodes, ONE))
    assert rules(report) == rules(report, "remark") == ["ONNX-D5"]
    assert "48 bytes" in report.findings[0].message
    assert placed(report, "Z") == layout((1, 1), {0, 1})


def test_an_input_without_spec_that_breaks_a_rule_is_repartitioned_and_strictly_an_error() -> None:
    nodes = [N("Abs", "X", "Y", {"X": COLUMNS2}), N("Add", ["Y", "B"], "Z", {"B": ROWS2})]
    proto = model(nodes, {"X": [4, 6], "B": [4, 6]})
    report = run(proto)
    assert set(rules(report)) == {"ONNX-B1"}
    assert rules(report, "error") == []
    assert "24 bytes" in report.findings[0].message
    assert placed(report, "Z") == layout((2, 1), {0}, {1})
    assert "ONNX-B1" in rules(run(proto, strict=True), "error")


# ------------------------------------------------------------------------------------- broadcasting


def test_shards_that_meet_are_on_the_same_devices() -> None:
    shapes = {"A": [4, 6], "B": [4, 6]}
    other_order = split([1, 0], (0, 2))
    assert rules(run(model([N("Mul", "AB", "C", {"A": ROWS2, "B": other_order})], shapes)), "error") == ["ONNX-B1"]


def test_a_broadcast_axis_is_whole_and_everywhere() -> None:
    shapes = {"A": [4, 6], "B": [1, 6]}
    right = run(model([N("Sub", "AB", "C", {"A": ROWS2, "B": BOTH})], shapes))
    assert rules(right) == []
    assert placed(right, "C") == layout((2, 1), {0}, {1})
    assert rules(run(model([N("Sub", "AB", "C", {"A": ROWS2, "B": ROWS2})], shapes)), "error") == ["ONNX-B2"]
    assert rules(run(model([N("Sub", "AB", "C", {"A": ROWS2, "B": split([0])})], shapes)), "error") == ["ONNX-B2"]


def test_a_missing_leading_axis_is_broadcast() -> None:
    shapes = {"A": [4, 6], "B": [6]}
    right = run(model([N("Sub", "AB", "C", {"A": COLUMNS2, "B": split([0, 1], (0, 2))})], shapes))
    assert rules(right) == []
    assert placed(right, "C") == layout((1, 2), {0}, {1})
    assert rules(run(model([N("Sub", "AB", "C", {"A": ROWS2, "B": split([0])})], shapes)), "error") == ["ONNX-B3"]


def test_axes_of_size_one_in_all_inputs_stay_whole() -> None:
    report = run(model([N("Add", "AB", "C", {"A": BOTH, "B": BOTH})], {"A": [1, 1], "B": [1, 1]}))
    assert rules(report) == []
    assert placed(report, "C") == layout((1, 1), {0, 1})


def test_three_inputs_meet_in_all_device_sets() -> None:
    specs = {
        "A": split([[0, 1, 2, 3], [4, 5, 6, 7]], (0, 2)),
        "B": split([[0, 1, 4, 5], [2, 3, 6, 7]], (1, 2)),
        "C": split([[0, 2, 4, 6], [1, 3, 5, 7]], (2, 2)),
    }
    shapes = {"A": [2, 1, 1], "B": [1, 2, 1], "C": [1, 1, 2]}
    report = run(model([N("Sum", "ABC", "D", specs)], shapes, devices=8))
    assert rules(report) == []
    assert placed(report, "D") == layout((2, 2, 2), *({k} for k in range(8)))


# ------------------------------------------------------------------------------------- reductions and products


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"keepdims": 1}, layout((1, 2), {0, 2}, {1, 3})),
        ({"keepdims": 0}, layout((2,), {0, 2}, {1, 3})),
    ],
)
def test_a_reduction_leaves_its_result_on_all_devices_of_the_reduction(attributes: dict, expected: Layout) -> None:
    nodes = [N("ReduceSum", ["X", "axes"], "Y", {"X": GRID}, attributes)]
    report = run(model(nodes, ONE, constants={"axes": [-2]}))
    assert rules(report) == []
    assert placed(report, "Y") == expected
    told = run(
        model(
            [N("ReduceSum", ["X", "axes"], "Y", {"X": GRID, "Y": split([0])}, attributes)],
            ONE,
            constants={"axes": [-2]},
        )
    )
    if attributes["keepdims"]:
        assert rules(told) == ["ONNX-D4"]  # one distinguished device must be asked for
        assert "by ONNX-R2" in told.findings[0].message


def test_a_reduction_over_all_axes() -> None:
    report = run(model([N("ReduceMax", "X", "Y", {"X": GRID}, {"keepdims": 0})], ONE))
    assert placed(report, "Y") == layout((), {0, 1, 2, 3})


def test_rows_and_columns_of_a_product_compose() -> None:
    specs = {"A": split([[0, 1], [2, 3]], (0, 2)), "B": split([[0, 2], [1, 3]], (1, 2))}
    shapes = {"A": [4, 6], "B": [6, 8]}
    report = run(model([N("MatMul", "AB", "C", specs)], shapes))
    assert rules(report) == []
    assert placed(report, "C") == layout((2, 2), {0}, {1}, {2}, {3})
    specs["B"] = split([[0, 1], [2, 3]], (1, 2))
    assert rules(run(model([N("MatMul", "AB", "C", specs)], shapes)), "error") == ["ONNX-B3"]


def test_batches_of_products_broadcast() -> None:
    specs = {"A": split([0, 1], (0, 2)), "B": split([[0, 1]])}
    report = run(model([N("MatMul", "AB", "C", specs)], {"A": [2, 4, 6], "B": [6, 8]}))
    assert rules(report) == []
    assert placed(report, "C") == layout((2, 1, 1), {0}, {1})


def test_gemm_turns_its_factors_and_adds() -> None:
    specs = {"A": COLUMNS2, "B": BOTH, "C": BOTH}
    nodes = [N("Gemm", "ABC", "Y", specs, {"transA": 1, "transB": 1})]
    report = run(model(nodes, {"A": [6, 4], "B": [8, 6], "C": [8]}))
    assert rules(report) == []
    assert placed(report, "Y") == layout((2, 1), {0}, {1})
    nodes = [N("Gemm", "ABC", "Y", {**specs, "C": split([0, 1], (0, 2))}, {"transA": 1, "transB": 1})]
    assert rules(run(model(nodes, {"A": [6, 4], "B": [8, 6], "C": [8]})), "error") == ["ONNX-B1"]


def test_an_einsum_of_two_operands() -> None:
    specs = {"A": split([0, 1], (1, 2)), "B": split([0, 1], (0, 2))}
    nodes = [N("Einsum", "AB", "C", specs, {"equation": "bhqd,bhkd->bhqk"})]
    shapes = {"A": [2, 4, 8, 16], "B": [2, 4, 8, 16]}
    assert set(rules(run(model(nodes, shapes)), "error")) == {"ONNX-B1"}
    nodes = [N("Einsum", "AB", "C", {**specs, "B": specs["A"]}, {"equation": "bhqd,bhkd->bhqk"})]
    assert placed(run(model(nodes, shapes)), "C") == layout((1, 2, 1, 1), {0}, {1})


# ------------------------------------------------------------------------------------- ops without rules


def test_an_op_that_the_documents_exclude() -> None:
    nodes = [N("LayerNormalization", ["X", "s"], "Y", {"X": ROWS2})]
    shapes = {"X": [4, 6], "s": [6]}
    assert rules(run(model(nodes, shapes)), "error") == ["ONNX-X1"]
    nodes = [N("LayerNormalization", ["X", "s"], "Y", {"X": BOTH})]
    report = run(model(nodes, shapes))
    assert rules(report) == []
    assert placed(report, "Y") == layout((1, 1), {0, 1})


def test_an_op_in_no_list() -> None:
    proto = model([N("Relu", "X", "Y", {"X": ROWS2})], ONE)
    assert rules(run(proto), "warning") == ["ONNX-X2"]
    assert rules(run(proto, strict=True), "error") == ["ONNX-X2"]
    report = run(proto, extended=True)
    assert rules(report) == []
    assert placed(report, "Y") == layout((2, 1), {0}, {1})


# ------------------------------------------------------------------------------------- defects of the text


def test_max_of_two_inputs_is_held_to_the_broadcast_rules() -> None:
    shapes = {"A": [4, 6], "B": [4, 6]}
    assert "ONNX-B1" in rules(run(model([N("Max", "AB", "C", {"A": ROWS2, "B": COLUMNS2})], shapes)), "error")
    assert rules(run(model([N("Max", "A", "C", {"A": ROWS2})], {"A": [4, 6]}))) == []


def test_dropout_gives_both_outputs_the_sharding_of_its_data() -> None:
    nodes = [N("Dropout", ["X", "r"], ["Y", "M"], {"X": ROWS2})]
    report = run(model(nodes, ONE, constants={"r": 0.5}))
    assert rules(report) == []
    assert placed(report, "Y") == placed(report, "M") == layout((2, 1), {0}, {1})


def test_constant_of_shape_does_not_take_the_sharding_of_a_shape() -> None:
    nodes = [N("ConstantOfShape", ["s"], "Y", {"s": split([0, 1], (0, 2))})]
    report = run(model(nodes, {}, constants={"s": [4, 6]}))
    assert placed(report, "Y").is_anywhere
