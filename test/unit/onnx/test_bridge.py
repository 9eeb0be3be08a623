"""ONNX to StableHLO: every kernel beside onnx's reference evaluator, and sharded models partitioned and run."""

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
from shardpass.onnx.kernels import KERNELS  # noqa: E402
from shardpass.runtime import compile_single  # noqa: E402

F, L, B = np.float32, np.int64, np.bool_
TYPES = {F: TensorProto.FLOAT, L: TensorProto.INT64, B: TensorProto.BOOL}


def whole(*shape: int) -> tuple[tuple[int, ...], Any]:
    return shape, F


def case(*inputs: Any, attributes: dict | None = None, outputs: int = 1, **constants: Any) -> tuple:
    """Inputs as (shape, dtype); constants follow them, in order."""
    return inputs, attributes or {}, constants, outputs


X = whole(2, 3, 4)
ONE, TWO = [case(X)], [case(X, whole(3, 1)), case(whole(4), X)]
BOOLS, COMPARED = [case(((2, 3), B), ((3,), B))], [case(((2, 3), L), ((2, 1), L))]
REDUCED = [
    case(X, attributes={"keepdims": 0}, axes=[1, -1]),
    case(X),
    case(X, attributes={"noop_with_empty_axes": 1}),
]


def each(names: str, cases: list[tuple]) -> dict[str, list[tuple]]:
    return dict.fromkeys(names.split(), cases)


CASES: dict[str, list[tuple]] = {
    **each("Abs Ceil Cos Erf Exp Floor Identity IsNaN Log Neg Reciprocal Relu Round Sigmoid Sign Sin Sqrt Tanh", ONE),
    **each("Add Mul Sub Pow", TWO),
    **each("And Or Xor", BOOLS),
    **each("Equal Greater GreaterOrEqual Less LessOrEqual", COMPARED),
    **each("Max Min Sum", [case(X, whole(4), whole(3, 1)), case(X)]),
    **each("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd", REDUCED),
    **each("ReduceSum ReduceSumSquare", REDUCED),
    "Cast": [case(X, attributes={"to": TensorProto.INT32})],
    "Clip": [case(X, low=F(0.7), high=F(1.2)), case(X, low=F(0.9))],
    "Concat": [case(whole(2, 3), whole(2, 5), attributes={"axis": 1})],
    "Constant": [
        case(attributes={"value_ints": [3, 4]}), case(attributes={"value": numpy_helper.from_array(np.eye(3))}),
    ],
    "ConstantOfShape": [
        case(attributes={"value": numpy_helper.from_array(np.array([7], L))}, shape=[2, 3]), case(s=[3]),
    ],
    "Div": [*TWO, case(((2, 3), L), ((3,), L))],
    "Dropout": [case(X)],
    "Einsum": [case(whole(2, 3, 4), whole(2, 4, 5), attributes={"equation": "bij,bjk->bik"})],
    "Expand": [case(whole(3, 1), shape=[2, 1, 4])],
    "Flatten": [case(X, attributes={"axis": 2}), case(X)],
    "Gather": [case(whole(5, 3), i=[[0, -1], [4, 2]]), case(whole(5, 3), attributes={"axis": 1}, i=[2, 0])],
    "Gelu": [case(X), case(X, attributes={"approximate": "tanh"})],
    "Gemm": [
        case(whole(3, 4), whole(4, 5)),
        case(whole(4, 3), whole(5, 4), whole(5), attributes={"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    ],
    "LayerNormalization": [
        case(X, whole(4), whole(4), outputs=3),
        case(X, whole(3, 4), attributes={"axis": 1, "epsilon": 0.1}),
    ],
    "LogSoftmax": [case(X, attributes={"axis": 1})],
    "MatMul": [case(whole(2, 3, 4), whole(4, 5)), case(whole(4), whole(4, 5)), case(whole(3, 4), whole(4))],
    "Mod": [case(((2, 3), L), ((3,), L)), case(X, whole(4), attributes={"fmod": 1})],
    "Not": [case(((2, 3), B))],
    "Reshape": [case(X, shape=[0, -1]), case(X, shape=[4, 6])],
    "Shape": [case(X), case(X, attributes={"start": 1, "end": -1})],
    "Slice": [
        case(X, starts=[1, -3], ends=[9, 100], axes=[1, 2]),
        case(X, starts=[-1], ends=[-100], axes=[2], steps=[-2]),
    ],
    "Softmax": [case(X), case(X, attributes={"axis": 1})],
    "Split": [
        case(whole(2, 7), attributes={"axis": 1}, outputs=2, s=[3, 4]),
        case(whole(7), attributes={"num_outputs": 3}, outputs=3),
    ],
    "Squeeze": [case(whole(1, 3, 1), axes=[-1]), case(whole(1, 3, 1))],
    "Transpose": [case(X, attributes={"perm": [2, 0, 1]}), case(X)],
    "Unsqueeze": [case(whole(3), axes=[0, -1])],
    "Where": [case(((2, 3), B), whole(3), whole(2, 1))],
}  # fmt: skip


def draw(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Positive floats: logarithms, powers and roots of all ops exist."""
    if dtype is F:
        return rng.uniform(0.5, 1.5, shape).astype(F)
    return rng.integers(0, 2, shape).astype(B) if dtype is B else rng.integers(1, 5, shape) * rng.choice([-1, 1], shape)


def same(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(found, expected)


def test_every_kernel_has_a_case() -> None:
    assert set(CASES) == set(KERNELS)


@pytest.mark.parametrize("op", sorted(CASES))
def test_a_kernel_computes_what_the_reference_does(op: str) -> None:
    for inputs, attributes, constants, outputs in CASES[op]:
        rng = np.random.default_rng(0)
        values = {f"x{k}": draw(shape, dtype, rng) for k, (shape, dtype) in enumerate(inputs)}
        given = {name: np.asarray(v, None if isinstance(v, np.generic) else L) for name, v in constants.items()}
        nodes = [N(op, [*values, *given], [f"y{k}" for k in range(outputs)], {}, attributes)]
        proto = model(nodes, {name: v.shape for name, v in values.items()}, constants=given)
        for info, (_, dtype) in zip(proto.graph.input, inputs, strict=True):
            info.type.tensor_type.elem_type = TYPES[dtype]
        program = to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
        found = compile_single(program.text)(*program.arguments(values))
        expected = ReferenceEvaluator(proto).run(None, values)
        for one, other in zip(found, expected, strict=True):
            same(one, other)


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
REFUSED = {
    "an op without a kernel": (model([N("GridSample", ["X", "X"], ["Y"])], ANY), "node 'n0' (GridSample)"),
    "another domain": (model([N("Abs", "X", "Y", domain="com.example")], ANY), "Abs"),
    "a shape with a name": (model([N("Abs", "X", "Y")], {"X": ["batch", 6]}), "graph input 'X'"),
    "axes that are computed": (model([N("ReduceSum", ["X", "A"], ["Y"])], {"X": [4, 6], "A": [1]}), "must be constant"),
    "groups of different sizes": (
        model([N("Abs", "X", "Y", {"X": split([[0, 1], [2]], (0, 2))})], ANY, devices=3), "the spec of 'X'",
    ),
    "shapes that do not fit": (model([N("MatMul", ["X", "X"], ["Y"])], ANY), "MatMul"),
    "an old opset": (model([N("Abs", "X", "Y")], ANY, opset=12), "opset 12"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_named(name: str) -> None:
    proto, told = REFUSED[name]
    with pytest.raises(ShardpassError) as caught:
        to_stablehlo(read_model(proto.SerializeToString(), "m.onnx"))
    assert caught.value.code == "SP706"
    assert told in str(caught.value)


def test_a_configuration_by_name() -> None:
    proto = model([N("Abs", "X", "Y")], ANY, configurations=[("a", 2), ("b", 6)])
    read = read_model(proto.SerializeToString())
    assert "mhlo.num_partitions = 6 : i32" in to_stablehlo(read, "b").text
    with pytest.raises(ShardpassError, match="there is no configuration 'c'"):
        to_stablehlo(read, "c")
