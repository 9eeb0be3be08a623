"""Networks as people have them: checked, completed and run over data and model of 8 devices, beside the evaluator."""

from __future__ import annotations

from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.onnx_networks import bert, llama, resnet  # noqa: E402

import shardpass  # noqa: E402
from shardpass.diagnostics import Severity  # noqa: E402
from shardpass.ir.collectives import collectives  # noqa: E402
from shardpass.onnx import check_model, completed_model, propagated, read_model, to_stablehlo  # noqa: E402


def run(model: Any, inputs: dict[str, np.ndarray]) -> tuple[Any, np.ndarray]:
    """The partitioned module, and its one result."""
    program = to_stablehlo(model)
    module = shardpass.run_pipeline(program.text, "partition")
    (result,) = shardpass.compile(module)(*program.arguments(inputs))
    return module, np.asarray(result)


@pytest.mark.parametrize("make", [resnet, bert, llama])
def test_a_network_over_data_and_model(make: Any) -> None:
    proto, shardings, inputs = make()
    options: dict[str, Any] = {"dims": {"batch": 4}}
    (expected,) = ReferenceEvaluator(read_model(proto.SerializeToString(), **options).proto).run(None, inputs)
    model = read_model(proto.SerializeToString(), "m.onnx", **options, mesh="data=2,model=4", shardings=shardings)
    report = check_model(model, extended=True, beyond=propagated)
    assert not [d for d in report.findings if d.severity is Severity.ERROR]
    module, result = run(model, inputs)
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    assert collectives(module)  # weights are split over the axis model, so something is sent

    completed = read_model(completed_model(model, report), "c.onnx")
    onnx.checker.check_model(completed.proto)
    last = completed.nodes[-1]
    specs = {spec.tensor_name for annotation in last.annotations for spec in annotation.specs}
    assert specs >= {*last.outputs}
    # every value that a node makes from the split inputs has a spec where it is made
    for node, placed in zip(completed.nodes, report.completed[0].nodes, strict=True):
        own = {spec.tensor_name for annotation in node.annotations for spec in annotation.specs}
        assert own in (set(), set(placed))
    np.testing.assert_allclose(run(completed, inputs)[1], expected, rtol=1e-3, atol=1e-4)
