"""The measurement of ONNX's own models: its verdicts, its page, and the models that the package stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402
from onnx import TensorProto  # noqa: E402
from support.onnx_models import N, model  # noqa: E402

from tools.bench.onnx_cases import Case, stored_cases  # noqa: E402
from tools.bench.onnx_models import difference, page, rows_of, run_case, summary  # noqa: E402

X = np.float32([[1, 2], [3, 4]])


def made(op: str, expected: Any, *inputs: Any, shape: Any = (2, 2), name: str = "x") -> Case:
    names = [f"{name}{k}" for k in range(len(inputs))]
    proto = model([N(op, names, ["y"])], {names[0]: shape, **{one: [2] for one in names[1:]}})
    for info in proto.graph.input[1:]:
        info.type.tensor_type.elem_type = TensorProto.INT64
    return Case("node", f"test_{op}", proto, [(inputs, [expected])], 1e-3, 1e-7)


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        (made("Exp", np.exp(X), X), "right", ""),
        (made("Exp", np.exp(X) + 1, X), "wrong", "output 0 differs by up to 1"),
        (made("Exp", np.exp(X)[0], X), "wrong", "output 0 is float32[2, 2], and float32[2] expected"),
        (made("NonMaxSuppression", X, X, np.int64([1, 2])), "refused", "it has no kernel"),
        (made("Reshape", X.reshape(4), X, np.int64([4])), "refused", "the input [2]"),
        (made("Exp", np.exp(X), X, shape=("N", 2)), "right", ""),
        (made("Identity", X, np.array(["a"])), "text", "an input is text"),
    ],
)
def test_the_verdict_on_a_model(case: Case, verdict: str, reason: str) -> None:
    row = run_case(case)
    assert (row.verdict, reason in row.reason) == (verdict, True)


def test_inputs_that_shapes_are_read_from_become_constants() -> None:
    row = run_case(made("Reshape", X.reshape(1, 4), X, np.int64([1, 4])))
    assert (row.verdict, row.bound) == ("right", ("x1",))


def test_differences_are_those_of_the_types_too() -> None:
    assert difference([X], [X.astype(np.float64)], 1, 1)
    assert difference([X], [], 1, 1) == "1 outputs, and 0 expected"
    assert not difference([np.float32([np.nan])], [np.float32([np.nan])], 0, 0)


def test_the_page_lists_what_is_refused_by_op() -> None:
    refused = run_case(made("NonMaxSuppression", X, X, np.int64([1, 2])))
    rows = [refused, replace(refused, name="other"), run_case(made("Exp", np.exp(X), X))]
    (line,) = summary(rows)
    assert line.startswith("node: 1 of 3 accepted (33.3%), 0 wrong; 0 of these with inputs that became constants;")
    assert "| NonMaxSuppression | 2 | it has no kernel, and ONNX defines it by no other ops |" in page(rows)


@pytest.mark.slow
def test_the_stored_models_are_right() -> None:
    rows = list(rows_of(["stored"], ""))
    assert len(rows) == len(list(stored_cases())) == 140
    assert not [row for row in rows if row.verdict == "wrong"]
    assert sum(row.verdict == "right" for row in rows) >= 130
