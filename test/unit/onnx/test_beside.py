"""Shardings beside a model: a mesh and names, for inputs, weights and values that nodes make."""

from __future__ import annotations

from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.onnx_models import N, model  # noqa: E402

import shardpass  # noqa: E402
from shardpass.diagnostics import ShardpassError  # noqa: E402
from shardpass.ir.collectives import collectives  # noqa: E402
from shardpass.onnx import check_model, completed_model, propagated, read_model, to_stablehlo  # noqa: E402

MESH = "data=2,model=4"


def perceptron() -> Any:
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 1, shape).astype("f") for name, shape in {"u.w": (6, 8), "d.w": (8, 6)}.items()}
    nodes = [N("MatMul", ["x", "u.w"], ["h"]), N("Relu", ["h"], ["r"]), N("MatMul", ["r", "d.w"], ["y"])]
    proto = model(nodes, {"x": [4, 6]}, constants=weights)
    del proto.configuration[:]
    proto.ir_version = 8
    return proto


SHARDINGS = {"x": 'P("data")', "u.w": P(None, "model"), "d.w": "P('model')"}


def test_a_model_without_annotations_gets_a_configuration() -> None:
    model_ = read_model(perceptron().SerializeToString(), mesh=MESH, shardings=SHARDINGS)
    (one,) = model_.configurations
    assert (one.name, one.num_devices) == ("given", 8)
    report = check_model(model_, extended=True)
    assert not [d for d in report.findings if d.severity.value == "error"]
    first, _, last = report.completed[0].nodes
    # data has stride 4 on the mesh, model stride 1: by hand
    assert str(first["x"].layout) == "2x1 shards on {0,1,2,3} {4,5,6,7}"
    assert str(first["h"].layout) == "2x4 shards on {0} {1} {2} {3} {4} {5} {6} {7}"
    assert str(last["y"].layout) == "2x1 shards on {0,1,2,3} {4,5,6,7}"
    # the completed model says by itself what stood beside it
    again = read_model(completed_model(model_, report))
    assert again.nodes[0].annotations[0].specs
    assert [str(p.layout) for node in check_model(again, extended=True).completed[0].nodes for p in node.values()] == [
        str(p.layout) for node in report.completed[0].nodes for p in node.values()
    ]


def test_the_program_has_the_shardings_of_inputs_and_weights() -> None:
    proto = perceptron()
    program = to_stablehlo(read_model(proto.SerializeToString(), "m.onnx", mesh=MESH, shardings=SHARDINGS))
    module = shardpass.run_pipeline(program.text, "partition")
    x = np.random.default_rng(1).normal(0, 1, (4, 6)).astype("f")
    (result,) = shardpass.compile(module)(*program.arguments({"x": x}))
    np.testing.assert_allclose(
        np.asarray(result), ReferenceEvaluator(proto).run(None, {"x": x})[0], rtol=1e-4, atol=1e-5
    )
    assert [use.kind for use in collectives(module)] == ["all_reduce"]
    assert [str(use.axes) for use in collectives(module)] == ["model"]


def test_a_value_that_a_node_makes_and_a_pattern() -> None:
    beside = {"h": 'P("data", "model")', "*.w": 'P("model")', "d.w": "P()"}
    model_ = read_model(perceptron().SerializeToString(), mesh={"data": 2, "model": 4}, shardings=beside)
    specs = model_.nodes[0].annotations[0].specs
    assert [spec.tensor_name for spec in specs] == ["h"]
    assert {name: len(spec.dims) for name, spec in model_.given.items()} == {"u.w": 1, "d.w": 0}


def test_an_annotated_model_keeps_its_configurations() -> None:
    proto = model([N("Relu", "x", "y")], {"x": [4, 6]}, configurations=[("given", 2)])
    model_ = read_model(proto.SerializeToString(), mesh=MESH, shardings={"x": 'P("data")'})
    assert [one.name for one in model_.configurations] == ["given_0", "given"]


@pytest.mark.parametrize(
    ("mesh", "shardings", "reason"),
    [
        (MESH, {"z": "P()"}, "the model has no value 'z'"),
        (MESH, {"x": 'P("rows")'}, "the sharding P\\(\"rows\"\\) of 'x'"),
        (MESH, {"x": "P(None, None, None)"}, "of 'x'"),
        (MESH, {"x": "{devices=["}, "of 'x'"),
        (None, {"x": 'P("data")'}, "names axes of a mesh"),
        ("data", {}, "the mesh 'data'"),
        (7, {}, "the mesh 7"),
    ],
)
def test_what_does_not_fit_is_named(mesh: Any, shardings: dict, reason: str) -> None:
    with pytest.raises(ShardpassError, match=reason) as caught:
        read_model(perceptron().SerializeToString(), mesh=mesh, shardings=shardings)
    assert caught.value.code == "SP725"


# ------------------------------------------------------------------------------------- ops without rules


def test_ops_without_rules_make_what_propagation_finds() -> None:
    kernel = np.ones((8, 3, 3, 3), "f")
    nodes = [N("Conv", ["x", "w"], ["a"]), N("Add", ["a", "a"], ["b"]), N("GlobalAveragePool", ["b"], ["y"])]
    proto = model(nodes, {"x": ["N", 3, 6, 6]}, constants={"w": kernel})
    del proto.configuration[:]
    model_ = read_model(
        proto.SerializeToString(), mesh=MESH, dims={"N": 4}, shardings={"x": 'P("data")', "w": 'P("model")'}
    )
    assert {d.code for d in check_model(model_).findings} == {"SP751"}
    report = check_model(model_, beyond=propagated)
    assert {d.code for d in report.findings} == {"SP753"}
    outputs = [placed[name] for placed, name in zip(report.completed[0].nodes, "aby", strict=True)]
    # a convolution keeps the batch's split, and its kernels' split is that of its channels
    assert [str(one.layout) for one in outputs] == ["2x4x1x1 shards on {0} {1} {2} {3} {4} {5} {6} {7}"] * 3
    assert [one.source for one in outputs] == ["propagation", "ONNX-B4", "propagation"]
