"""Specs that name some devices: every device that holds a shard by the spec holds it afterwards."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.onnx_models import N, model, split  # noqa: E402
from support.onnx_spec_text import parse_onnx_spec  # noqa: E402

import shardpass  # noqa: E402
from shardpass.diagnostics import collect  # noqa: E402
from shardpass.onnx import read_model, to_stablehlo  # noqa: E402
from shardpass.onnx.stablehlo.widening import is_uneven, whole, widened  # noqa: E402


@pytest.mark.parametrize(
    ("groups", "count", "expected"),
    [
        ([0, 1], 4, [{0, 2}, {1, 3}]),
        ([[0, 1], 2], 4, [{0, 1}, {2, 3}]),
        ([3, 1], 6, [{3, 0, 4}, {1, 2, 5}]),
        ([[0, 3]], 4, [{0, 1, 2, 3}]),
        ([0, 1, 2], 4, None),  # three shards on four devices
        ([[0, 1, 2], 3], 4, None),  # a group that is too large
        ([[0, 1], [1, 2]], 4, None),  # a device with two shards
    ],
)
def test_devices_without_a_shard_get_copies(groups: list, count: int, expected: list | None) -> None:
    dims = [(0, len(groups))] if len(groups) > 1 else []
    spec = parse_onnx_spec(split(groups, *dims))
    assert is_uneven(spec, count)
    wider = widened(spec, count)
    assert (wider and [set(group) for group in wider.holders()]) == expected
    for before, after in zip(spec.holders(), wider.holders() if wider else [], strict=bool(wider)):
        assert set(before) <= set(after)
    assert whole(spec, count).holders() == [tuple(range(count))]


def test_even_specs_and_single_devices_stay() -> None:
    for groups, count in (([0, 1, 2, 3], 4), ([[0, 2], [1, 3]], 4), ([2], 4)):
        assert not is_uneven(parse_onnx_spec(split(groups, *([(0, len(groups))] if len(groups) > 1 else []))), count)


@pytest.mark.parametrize("groups", [[0, 1], [[0, 1, 2], [3]]])
def test_a_model_on_some_devices_runs_on_all(groups: list) -> None:
    nodes = [N("Exp", "X", "Y", {"X": split(groups, (0, 2))}), N("ReduceSum", ["Y"], ["Z"], {}, {"keepdims": 0})]
    proto = model(nodes, {"X": [8, 6]})
    with collect() as remarks:
        program = to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
    assert {remark.code for remark in remarks} == {"SP724"}
    x = np.random.default_rng(0).uniform(-1, 1, (8, 6)).astype(np.float32)
    (result,) = shardpass.compile(shardpass.run_pipeline(program.text, "partition"))(x)
    (expected,) = ReferenceEvaluator(proto).run(None, {"X": x})
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)
