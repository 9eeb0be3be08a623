"""Every kernel of the ONNX bridge, and bodies of ONNX's own, beside onnx's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.onnx_kernels import I8, ONE, TWO, U8, B, F, L, X, bridged, built, case, check, each, same, whole  # noqa: E402

from shardpass.diagnostics import ShardpassError  # noqa: E402
from shardpass.onnx import read_model, to_stablehlo  # noqa: E402
from shardpass.onnx.kernels import KERNELS  # noqa: E402


def F32(*values: float) -> np.ndarray:
    return np.asarray(values if len(values) > 1 else values[0], F)


IMAGE = whole(2, 3, 5, 6)
SIGNED = np.random.default_rng(3).uniform(-4, 4, (2, 3, 4)).astype(F)
TIES = np.random.default_rng(4).integers(0, 3, (2, 3, 4)).astype(F)
POOL = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 1, 1, 0]}
GRID = np.random.default_rng(5).uniform(-1.4, 1.4, (2, 3, 4, 2)).astype(F)
TRAINING = {"training_mode": 1, "momentum": 0.7}
BOOLS, COMPARED = [case(((2, 3), B), ((3,), B))], [case(((2, 3), L), ((2, 1), L))]
REDUCED = [
    case(X, attributes={"keepdims": 0}, axes=[1, -1]),
    case(X),
    case(X, attributes={"noop_with_empty_axes": 1}),
]

CASES: dict[str, list[tuple]] = {
    **each("Abs Atan Asinh Ceil Cos Cosh Erf Exp Floor Identity IsInf IsNaN Log Neg Reciprocal Relu Round", ONE),
    **each("Sigmoid Sign Sin Sinh Sqrt Tan Tanh", ONE),
    **each("Acos Asin Atanh", [case(SIGNED / 8)]),
    **each("BitwiseAnd BitwiseOr BitwiseXor", COMPARED),
    **each(
        "BatchNormalization",
        [case(IMAGE, *[whole(3)] * 4), case(IMAGE, *[whole(3)] * 4, outputs=3, attributes=TRAINING)],
    ),
    **each("InstanceNormalization", [case(IMAGE, whole(3), whole(3))]),
    **each("Add Mul Sub Pow", TWO),
    **each("And Or Xor", BOOLS),
    **each("Equal Greater GreaterOrEqual Less LessOrEqual", COMPARED),
    **each("Max Mean Min Sum", [case(X, whole(4), whole(3, 1)), case(X)]),
    **each("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd", REDUCED),
    **each("ReduceSum ReduceSumSquare", REDUCED),
    "Cast": [case(X, attributes={"to": TensorProto.INT32})],
    "Clip": [case(X, low=F(0.7), high=F(1.2)), case(X, low=F(0.9))],
    "Concat": [case(whole(2, 3), whole(2, 5), attributes={"axis": 1})],
    "Constant": [
        case(attributes={"value_ints": [3, 4]}),
        case(attributes={"value": numpy_helper.from_array(np.eye(3))}),
    ],
    "ConstantOfShape": [
        case(attributes={"value": numpy_helper.from_array(np.array([7], L))}, shape=[2, 3]),
        case(s=[3]),
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
    # -- elementwise, and types
    "Acosh": [case(SIGNED**2 + 1)],
    "BitCast": [case(X, attributes={"to": TensorProto.INT32}, opset=26)],
    "BitShift": [
        case(((2, 3), U8), np.array([1, 2, 9], U8), attributes={"direction": way}) for way in ("LEFT", "RIGHT")
    ],
    "BitwiseNot": [case(((2, 3), L))],
    "CastLike": [case(X, ((1,), L))],
    "LeakyRelu": [case(SIGNED), case(SIGNED, attributes={"alpha": 0.2})],
    "PRelu": [case(SIGNED, whole(4))],
    "Softplus": [case(SIGNED)],
    # -- along axes
    **each(
        "ArgMax ArgMin",
        [
            case(TIES),
            case(TIES, attributes={"axis": 1, "keepdims": 0}),
            case(TIES, attributes={"axis": -1, "select_last_index": 1}),
        ],
    ),
    "CumProd": [case(X, attributes={"exclusive": 1}, axis=np.array(1), opset=26)],
    "CumSum": [
        case(X, axis=np.array(1)),
        case(X, axis=np.array(-1), attributes={"exclusive": 1}),
        case(X, axis=np.array(0), attributes={"reverse": 1}),
    ],
    "Hardmax": [case(TIES)],
    "LRN": [  # the evaluator takes the first axis for the channels: both have 3
        case(whole(3, 3, 5, 6), attributes={"size": 3}),
        case(whole(3, 3, 5, 6), attributes={"size": 2, "alpha": 0.5, "bias": 2.0}),
    ],
    "LpNormalization": [case(X), case(X, attributes={"p": 1, "axis": 1})],
    # -- products, and quantized integers
    "Det": [case(whole(2, 3, 3))],
    "MatMulInteger": [
        case(((2, 3), U8), ((3, 4), I8)),
        case(((2, 3), U8), ((3, 4), U8), np.array(7, U8), np.array([1, 2, 3, 4], U8)),
    ],
    "QLinearMatMul": [
        case(
            ((2, 3), U8), F32(0.1), np.array(3, U8), ((3, 4), U8), F32(0.2), np.array(5, U8), F32(0.7), np.array(9, U8)
        )
    ],
    "QLinearConv": [
        case(
            ((1, 2, 4, 4), U8),
            F32(0.1),
            np.array(3, U8),
            ((3, 2, 2, 2), U8),
            F32(0.2),
            np.array(5, U8),
            F32(4),
            np.array(9, U8),
        ),
    ],
    "QuantizeLinear": [
        case(SIGNED, F32(0.1), np.array(3, I8)),
        case(SIGNED, whole(3), np.array([1, 2, 3], U8), attributes={"axis": 1}),
        case(SIGNED, whole(2, 3, 2), attributes={"axis": 2, "block_size": 2}),
    ],
    "DequantizeLinear": [
        case(((2, 3, 4), I8), F32(0.1), np.array(3, I8)),
        case(((2, 3), U8), whole(3), np.array([1, 2, 3], U8), attributes={"axis": 1}),
    ],
    # -- windows
    "Conv": [
        case(IMAGE, whole(4, 3, 3, 3)),
        case(IMAGE, whole(4, 3, 3, 2), whole(4), attributes={"strides": [2, 1], "pads": [1, 0, 2, 1]}),
        case(IMAGE, whole(6, 1, 2, 2), attributes={"group": 3, "dilations": [2, 1]}),
        case(whole(2, 3, 7), whole(4, 3, 2), attributes={"auto_pad": "SAME_UPPER", "strides": [2]}),
    ],
    "ConvInteger": [case(((1, 2, 4, 4), U8), ((3, 2, 2, 2), U8), np.array(3, U8))],
    "ConvTranspose": [
        case(IMAGE, whole(3, 2, 3, 3)),
        case(IMAGE, whole(3, 2, 3, 3), whole(2), attributes={"strides": [2, 3], "pads": [1, 0, 1, 2]}),
        case(IMAGE, whole(3, 2, 2, 3), attributes={"dilations": [2, 1], "output_padding": [1, 0], "strides": [2, 1]}),
    ],
    "MaxPool": [
        case(IMAGE, attributes={"kernel_shape": [2, 3]}),
        case(IMAGE, attributes=POOL),
        case(IMAGE, attributes={**POOL, "ceil_mode": 1}),
        case(IMAGE, attributes={"kernel_shape": [2, 2], "dilations": [2, 2]}),
    ],
    "AveragePool": [
        case(IMAGE, attributes=POOL),
        case(IMAGE, attributes={**POOL, "count_include_pad": 1}),
        case(IMAGE, attributes={"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
    ],
    "LpPool": [case(IMAGE, attributes=POOL), case(IMAGE, attributes={"kernel_shape": [2, 2], "p": 3})],
    **each("GlobalAveragePool GlobalMaxPool", [case(IMAGE)]),
    "MaxUnpool": [
        case(
            whole(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]]), attributes={"kernel_shape": [2, 2], "strides": [2, 2]}
        ),
    ],
    "Resize": [
        case(
            IMAGE,
            roi=None,
            scales=np.array([1, 1, 2, 1.5], F),
            attributes={"mode": mode, "coordinate_transformation_mode": way},
        )
        for mode in ("nearest", "linear", "cubic")
        for way in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    ]
    + [
        case(IMAGE, roi=None, scales=None, sizes=[3, 8], attributes={"mode": "linear", "antialias": 1, "axes": [2, 3]}),
        case(
            IMAGE,
            roi=np.array([0.2, 0.1, 1.3, 0.8], F),
            scales=None,
            sizes=[3, 8],
            attributes={
                "mode": "linear",
                "axes": [2, 3],
                "coordinate_transformation_mode": "tf_crop_and_resize",
                "extrapolation_value": 9.0,
            },
        ),
    ],
    "GridSample": [
        case(IMAGE, GRID, attributes={"mode": mode, "padding_mode": padding, "align_corners": align})
        for mode, padding, align in [
            ("linear", "zeros", 0),
            ("linear", "border", 1),
            ("nearest", "reflection", 0),
            ("cubic", "reflection", 1),
        ]
    ],
    # -- shapes
    "DepthToSpace": [case(whole(2, 8, 2, 3), attributes={"blocksize": 2, "mode": mode}) for mode in ("DCR", "CRD")],
    "SpaceToDepth": [case(whole(2, 2, 4, 6), attributes={"blocksize": 2})],
    "EyeLike": [case(whole(3, 4), attributes={"k": 1})],
    "OneHot": [case(np.array([[0, -1], [2, 7]]), attributes={"axis": 1}, depth=np.array(3), values=F32(2, 5))],
    "Pad": [
        case(X, pads=[0, 1, 2, 1, 0, 1], value=F(7)),
        case(X, pads=[1, 0, 0, 2], value=None, axes=[1, 2]),
        *(case(X, attributes={"mode": mode}, pads=[0, 1, 2, 1, 0, 1]) for mode in ("reflect", "edge", "wrap")),
    ],
    "Range": [case(a=np.array(1), b=np.array(9), c=np.array(3)), case(a=F(2), b=F(0.4), c=F(-0.5))],
    "ReverseSequence": [case(X, np.array([1, 2, 2]), attributes={"time_axis": 0, "batch_axis": 1})],
    "Size": [case(X)],
    "Tile": [case(X, r=[1, 2, 3])],
    "Trilu": [case(X), case(X, np.array(1), attributes={"upper": 0})],
    # -- places
    "Compress": [case(X, c=np.array([True, False, True]), attributes={"axis": 1})],
    "GatherElements": [case(whole(2, 4), np.array([[0, -1], [2, 1]]), attributes={"axis": 1})],
    "GatherND": [case(X, np.array([[0, 1], [1, -1]])), case(X, np.array([[1], [0]]), attributes={"batch_dims": 1})],
    "NonZero": [case(c=np.array([[1, 0], [0, 3]]))],
    "ScatterElements": [
        case(whole(3, 4), np.array([[0, -1], [2, 1]]), whole(2, 2), attributes={"axis": 1, "reduction": how})
        for how in ("none", "add", "mul", "max", "min")
    ],
    "ScatterND": [
        case(X, np.array([[0, 1], [1, -1]]), whole(2, 4), attributes={"reduction": how})
        for how in ("none", "add", "mul", "max")
    ],
    "TensorScatter": [case(whole(2, 6, 3), whole(2, 2, 3), np.array([1, 4]), opset=24)],
    "TopK": [
        case(TIES, k=[2], outputs=2),
        case(TIES, k=[2], outputs=2, attributes={"largest": 0, "axis": 1}),
    ],
    # -- over time
    "LSTM": [
        case(whole(3, 2, 4), whole(1, 20, 4), whole(1, 20, 5), whole(1, 40), outputs=3, attributes={"hidden_size": 5}),
        case(
            whole(3, 2, 4),
            whole(2, 20, 4),
            whole(2, 20, 5),
            None,
            None,
            whole(2, 2, 5),
            whole(2, 2, 5),
            whole(2, 15),
            outputs=3,
            attributes={"hidden_size": 5, "direction": "bidirectional"},
        ),
    ],
    "GRU": [
        case(
            whole(3, 2, 4),
            whole(1, 15, 4),
            whole(1, 15, 5),
            whole(1, 30),
            outputs=2,
            attributes={"hidden_size": 5, "linear_before_reset": way},
        )
        for way in (0, 1)
    ],
    "RNN": [
        case(
            whole(3, 2, 4),
            whole(1, 5, 4),
            whole(1, 5, 5),
            whole(1, 10),
            outputs=2,
            attributes={"hidden_size": 5, "direction": "reverse"},
        )
    ],
    # -- through ONNX's own bodies
    "Attention": [
        case(*[whole(2, 4, 6, 8)] * 3),
        case(*[whole(2, 4, 6, 8)] * 3, attributes={"is_causal": 1}),
        case(whole(2, 6, 32), whole(2, 6, 16), whole(2, 6, 16), attributes={"q_num_heads": 4, "kv_num_heads": 2}),
    ],
    "RMSNormalization": [case(X, whole(4))],
    "RotaryEmbedding": [case(whole(2, 4, 6, 8), whole(2, 6, 4), whole(2, 6, 4))],
    "HardSwish": [case(SIGNED)],
    "SoftmaxCrossEntropyLoss": [case(whole(3, 5), np.array([1, 0, 4]))],
    "GroupNormalization": [case(whole(2, 4, 3), whole(4), whole(4), attributes={"num_groups": 2})],
}

SEQUENCES = {  # held to lists of arrays below
    "ConcatFromSequence",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SplitToSequence",
}
OTHERS = {"GlobalLpPool", "Scatter", "Upsample"}  # the evaluator has none of them


def test_every_kernel_has_a_case() -> None:
    assert set(KERNELS) - set(CASES) == SEQUENCES | OTHERS


@pytest.mark.turns(6)
@pytest.mark.parametrize("op", sorted(CASES))
def test_a_kernel_computes_what_the_reference_does(op: str) -> None:
    for one in CASES[op]:
        check(op, one)


def test_a_norm_over_all_places() -> None:
    proto, values = built("GlobalLpPool", case(IMAGE, attributes={"p": 3}))
    expected = (np.abs(values["x0"]) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
    same(bridged(proto, values)[0], expected.astype(F))


def test_a_pool_says_where_its_elements_are() -> None:
    """The evaluator gives other places than it gives values."""
    proto, values = built("MaxPool", case(IMAGE, attributes=POOL, outputs=2))
    y, places = bridged(proto, values)
    same(values["x0"].reshape(-1)[places], y)
    (expected,) = ReferenceEvaluator(built("MaxPool", case(IMAGE, attributes=POOL))[0]).run(None, values)
    same(y, expected)
    proto, _ = built("MaxPool", case(IMAGE, attributes={**POOL, "storage_order": 1}, outputs=2))
    by_column = bridged(proto, values)[1]
    planes = places // 30
    assert (by_column - planes * 30 == (places % 6) * 5 + places % 30 // 6).all()


def test_a_sequence_of_its_own_length_keeps_its_state_behind_its_end() -> None:
    """The evaluator reads no lengths: the first sequence alone, cut off, must give the same."""
    attributes = {"hidden_size": 5, "direction": "bidirectional"}
    shapes = [whole(2, 20, 4), whole(2, 20, 5), whole(2, 40)]
    proto, values = built(
        "LSTM", case(whole(3, 2, 4), *shapes, np.array([2, 3], np.int32), attributes=attributes, outputs=3)
    )
    y, h, c = bridged(proto, values)
    short, _ = built("LSTM", case(whole(2, 1, 4), *shapes, attributes=attributes, outputs=3))
    alone = {"x0": values["x0"][:2, :1], **{name: values[name] for name in ("x1", "x2", "x3")}}
    for result, want in zip(
        (y[:2, :, :1], h[:, :1], c[:, :1]), ReferenceEvaluator(short).run(None, alone), strict=True
    ):
        same(result, want)
    assert not y[2, :, 0].any()


# ------------------------------------------------------------------------------------- graphs inside of nodes


def parsed(text: str) -> Any:
    """A model in ONNX's text form."""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n{text}')


GRAPHS = {
    "a branch that data decide": """g (float[3] x, bool c) => (float[3] y) {
        y = If (c) <then_branch = a () => (float[3] p) { p = Exp (x) },
                    else_branch = b () => (float[3] q) { q = Neg (x) }>
    }""",
    "branches that give sequences of one length": """g (float[3] x, bool c) => (float[3] y) <int64 last = {-1}> {
        s = If (c) <then_branch = a () => (seq(float[3]) p) { e = Exp (x)  p = SequenceConstruct (x, e) },
                    else_branch = b () => (seq(float[3]) q) { q = SequenceConstruct (x, x) }>
        y = SequenceAt (s, last)
    }""",
    "a loop of constant length": """g (float[3] x) => (float[3] y, float[4, 3] all)
        <int64 n = {4}, bool t = {1}> {
        y, all = Loop (n, t, x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] r, float[3] o) {
            d = Identity (c)  f = Cast <to = 1> (i)  r = Add (s, f)  o = Mul (r, x) }>
    }""",
    "a loop whose shapes follow the iteration": """g (float[4] x) => (float[1] y)
        <int64 n = {3}, bool t = {1}, int64[1] zero = {0}, int64[1] one = {1}> {
        z = ReduceSum (x, zero)
        y = Loop (n, t, z) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] r) {
            d = Identity (c)  u = Unsqueeze (i, zero)  e = Add (u, one)  p = Slice (x, zero, e)
            q = ReduceSum (p, zero)  r = Add (s, q) }>
    }""",
    "a loop that data end": """g (float[3] x) => (float[3] y) <bool t = {1}, float limit = {50.0}> {
        y = Loop (, t, x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] r) {
            r = Add (s, s)  m = ReduceMax <keepdims = 0> (r)  d = Less (m, limit) }>
    }""",
    "a scan": """g (float[3] x, float[4, 3] rows) => (float[3] y, float[4, 3] all) {
        y, all = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] row) => (float[3] r, float[3] o) {
            r = Add (s, row)  o = Mul (r, x) }> (x, rows)
    }""",
    "sequences": """g (float[3] x, float[7] long) => (float[6] y, int64 n, bool h)
        <int64 first = {0}, int64[2] sizes = {3, 4}> {
        a = SequenceConstruct (x, x)  b = Exp (x)  c = SequenceInsert (a, b, first)  d = SequenceErase (c)
        e = SplitToSequence (long, sizes)  f = SequenceAt (e, first)  k = SequenceEmpty ()  l = SequenceInsert (k, f)
        y = ConcatFromSequence <axis = 0> (d)  n = SequenceLength (l)
        o = Optional (x)  p = OptionalGetElement (o)  h = OptionalHasElement (p)
    }""",
    "a function of the model": """g (float[3] x) => (float[3] y) { y = own.scaled <by = 3.0> (x) }
    <domain: "own", opset_import: ["" : 21]> scaled <by> (a) => (b) {
        k = Constant <value_float: float = @by> ()  b = Mul (a, k) }
    """,
}


def drawn(kind: Any, condition: bool) -> np.ndarray:
    if kind.elem_type == TensorProto.BOOL:
        return np.asarray(condition)
    shape = [dim.dim_value for dim in kind.shape.dim]
    return np.arange(1, 1 + np.prod(shape), dtype=F).reshape(shape) / 4


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_nodes(name: str) -> None:
    proto = parsed(GRAPHS[name])
    for condition in (True, False):
        values = {
            info.name: np.asarray(condition)
            if info.type.tensor_type.elem_type == TensorProto.BOOL
            else np.arange(
                1, 1 + np.prod(shape := [d.dim_value for d in info.type.tensor_type.shape.dim]), dtype=F
            ).reshape(shape)
            / 4
            for info in proto.graph.input
        }
        expected = ReferenceEvaluator(proto).run(None, values)
        for result, want in zip(bridged(proto, values), expected, strict=True):
            same(result, np.reshape(want, np.shape(result)))


def test_branches_whose_sequences_are_not_of_one_length_are_refused() -> None:
    proto = parsed("""g (float[3] x, bool c) => (int64 n) {
        s = If (c) <then_branch = a () => (seq(float[3]) p) { p = SequenceConstruct (x) },
                    else_branch = b () => (seq(float[3]) q) { q = SequenceConstruct (x, x) }>
        n = SequenceLength (s)
    }""")
    with pytest.raises(ShardpassError, match="SP706"):
        to_stablehlo(read_model(proto.SerializeToString()))


def test_a_loop_whose_outputs_depend_on_data_is_refused() -> None:
    proto = parsed("""g (float[3] x, int64 n) => (float[k, 3] all) <bool t = {1}> {
        y, all = Loop (n, t, x) <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] r, float[3] o) {
            d = Identity (c)  r = Add (s, s)  o = Identity (r) }>
    }""")
    with pytest.raises(ShardpassError, match="how long its scan outputs are depends on data"):
        to_stablehlo(read_model(proto.SerializeToString()))
