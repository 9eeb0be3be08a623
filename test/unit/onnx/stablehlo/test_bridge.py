"""ONNX to StableHLO: sharded models, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.onnx_models import N, model, split  # noqa: E402

import shardpass  # noqa: E402
from shardpass.diagnostics import ShardpassError  # noqa: E402
from shardpass.ir.collectives import collectives  # noqa: E402
from shardpass.onnx import read_model, to_stablehlo  # noqa: E402

F = np.float32

# ------------------------------------------------------------------------------------- sharded models


def transformer() -> Any:
    """One layer of 8 heads over 8 devices: heads, and the columns of the perceptron, are split over all of them."""
    rng = np.random.default_rng(1)
    d, heads, tokens, vocabulary, inner = 16, 8, 6, 20, 32
    weights = {
        name: rng.normal(0, 0.3, shape).astype(F)
        for name, shape in {
            "E": (vocabulary, d), "G1": (d,), "B1": (d,), "G2": (d,), "B2": (d,),
            "WQ": (d, d), "WK": (d, d), "WV": (d, d), "WO": (heads, d // heads, d), "U": (d, inner), "D": (inner, d),
        }.items()
    }  # fmt: skip
    constants = {"heads": [0, 0, heads, d // heads], "root": F((d // heads) ** -0.5), "one": [1], "flat": [0, 0, d]}
    by_head, columns, rows = split(range(8), (1, 8)), split(range(8), (1, 8)), split(range(8), (0, 8))
    nodes = [N("Gather", ["E", "ids"], ["x"]), N("LayerNormalization", ["x", "G1", "B1"], ["h"])]
    for name in "QKV":
        nodes += [
            N("MatMul", ["h", f"W{name}"], [f"{name}1"], {f"W{name}": columns}),
            N("Reshape", [f"{name}1", "heads"], [f"{name}2"]),
            N("Transpose", [f"{name}2"], [name], {name: by_head}, {"perm": [0, 2, 1, 3]}),
        ]
    nodes += [
        N("Transpose", ["K"], ["KT"], {}, {"perm": [0, 1, 3, 2]}),
        N("MatMul", ["Q", "KT"], ["s0"], {"s0": by_head}),
        N("Mul", ["s0", "root"], ["s1"]),
        N("Softmax", ["s1"], ["s"], {"s": by_head}),
        N("MatMul", ["s", "V"], ["a0"]),
        N("MatMul", ["a0", "WO"], ["a1"], {"WO": rows}),
        N("ReduceSum", ["a1", "one"], ["a"], {}, {"keepdims": 0}),
        N("Add", ["x", "a"], ["x1"]),
        N("LayerNormalization", ["x1", "G2", "B2"], ["h1"]),
        N("MatMul", ["h1", "U"], ["u"], {"U": columns}),
        N("Gelu", ["u"], ["g"], {"g": split(range(8), (2, 8))}),
        N("MatMul", ["g", "D"], ["v"], {"D": rows}),
        N("Add", ["x1", "v"], ["y"]),
    ]
    proto = model(nodes, {"ids": [2, tokens]}, constants={**weights, **constants}, devices=8)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return proto, {"ids": rng.integers(0, vocabulary, (2, tokens))}


def test_a_sharded_transformer_runs_on_eight_devices() -> None:
    proto, inputs = transformer()
    program = to_stablehlo(read_model(proto.SerializeToString(), "transformer.onnx"))
    module = shardpass.run_pipeline(program.text, "partition")
    (found,) = shardpass.compile(module)(*program.arguments(inputs))
    (expected,) = ReferenceEvaluator(proto).run(None, inputs)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)
    sent = collectives(module)
    # Megatron's two sums of the residual stream, each at most 2 * 7/8 of 2x6x16 floats, and nothing else
    assert [use.bytes_received <= 2 * 7 * 2 * 6 * 16 * 4 // 8 for use in sent] == [True, True]
    assert {use.kind for use in sent} <= {"all_reduce", "reduce_scatter"}
    nodes = {str(node): node.number + 1 for node in read_model(proto.SerializeToString()).nodes}
    assert {use.place.file for use in sent} == {"transformer.onnx"}
    assert sent[1].place.line == nodes["node 'n22' (MatMul)"]


def test_a_redistribution_that_a_spec_asks_for_is_partitioned() -> None:
    rows, columns = split([0, 1, 2, 3], (0, 4)), split([[0, 1], [2, 3]], (1, 2))
    nodes = [N("Exp", "X", "Y", {"X": rows, "Y": columns}), N("Neg", "Y", "Z")]
    proto = model(nodes, {"X": [8, 6]})
    program = to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
    assert '"{devices=[1,2,2]<=[4] last_tile_dim_replicate}"' in program.text
    module = shardpass.run_pipeline(program.text, "partition")
    x = np.random.default_rng(0).uniform(-1, 1, (8, 6)).astype(F)
    (found,) = shardpass.compile(module)(x)
    np.testing.assert_allclose(np.asarray(found), -np.exp(x), rtol=1e-6)


ANY = {"X": [4, 6]}
FUSED = """{device = [0, 1, 2, 3] sharded_dim = [
    {axis = 0 simple_sharding = [{dim_value = 2 num_shards = 2}, {dim_value = 2 num_shards = 2}]}]}"""
REFUSED = {
    "an op without a kernel": (model([N("RoiAlign", ["X", "X"], ["Y"])], ANY), "node 'n0' (RoiAlign)"),
    "another domain": (model([N("Abs", "X", "Y", domain="com.example")], ANY), "Abs"),
    "a shape with a name": (model([N("Abs", "X", "Y")], {"X": ["batch", 6]}), "graph input 'X'"),
    "axes that are computed": (model([N("ReduceSum", ["X", "A"], ["Y"])], {"X": [4, 6], "A": [1]}), "must be constant"),
    "a minor size of a fused axis": (model([N("Abs", "X", "Y", {"X": FUSED})], ANY), "the spec of 'X'"),
    "shapes that do not fit": (model([N("MatMul", ["X", "X"], ["Y"])], ANY), "MatMul"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_named(name: str) -> None:
    proto, told = REFUSED[name]
    with pytest.raises(ShardpassError) as caught:
        to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
    assert caught.value.code == ("SP727" if name == "another domain" else "SP706")
    assert told in str(caught.value)


def test_a_large_constant_is_a_weight_and_no_part_of_the_program() -> None:
    weight = np.random.default_rng(0).normal(0, 1, (80, 60)).astype(F)
    nodes = [
        N("Constant", [], ["w"], {}, {"value": numpy_helper.from_array(weight)}),
        N("MatMul", ["X", "w"], ["Y"], {"w": split(range(4), (1, 4))}),
        N("Constant", [], ["s"], {}, {"value": numpy_helper.from_array(F([2.0]))}),
        N("Mul", ["Y", "s"], ["Z"]),
    ]
    program = to_stablehlo(read_model(model(nodes, {"X": [4, 80]}).SerializeToString()))
    assert list(program.weights) == ["w"]
    assert len(program.text) < 10_000
    x = np.ones((4, 80), F)
    (result,) = shardpass.compile(shardpass.run_pipeline(program.text, "partition"))(*program.arguments({"X": x}))
    np.testing.assert_allclose(np.asarray(result), x @ weight * 2, rtol=1e-4, atol=1e-4)


def test_a_configuration_by_name() -> None:
    proto = model([N("Abs", "X", "Y")], ANY, configurations=[("a", 2), ("b", 6)])
    read = read_model(proto.SerializeToString())
    assert "mhlo.num_partitions = 6 : i32" in to_stablehlo(read, "b").text
    with pytest.raises(ShardpassError, match="there is no configuration 'c'"):
        to_stablehlo(read, "c")
