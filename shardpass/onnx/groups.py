"""The groups of ops of ONNX's sharding formalism, as data; docs/onnx.md prints them.

The lists are the documents' own (document 0007), but for what ``docs/onnx.md`` calls defects of the text: Max and Min
stand among the unary ops though they take any number of inputs, BitwiseNot among the n-ary ones though it is unary, and
ConstantOfShape, whose input is a shape, among the unary ones. The ops of the reduction group are not listed there.
``EVIDENT`` holds ops that are in no list and evidently belong to a group; they are used under ``--extended``.
"""

from __future__ import annotations

import enum

RUNTIME = "com.microsoft"  # the domain of ONNX Runtime's ops


class OpGroup(enum.StrEnum):
    ELEMENTWISE = "elementwise"  # with broadcasting; unary ops are those of one input
    REDUCTION = "reduction"
    MATMUL = "matmul"
    GEMM = "gemm"
    EINSUM = "einsum"
    SOURCE = "source"  # makes its value without reading an array: as an initializer
    UNSUPPORTED = "unsupported"


def _row(group: OpGroup, names: str) -> dict[str, OpGroup]:
    return dict.fromkeys(names.split(), group)


UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Cos Cosh Dropout Erf Exp Floor Identity IsInf IsNaN Log Max Min "
    "Neg Not Reciprocal Round Sigmoid Sign Sin Sinh Tan Tanh"
)
NARY = "Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Greater Less Mod Mul Or Pow Sub Sum Where Xor"
REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
)
UNSUPPORTED = (
    "If Loop Scan GRU LSTM RNN DFT STFT MelWeightMatrix TfIdfVectorizer AveragePool GlobalAveragePool GlobalLpPool "
    "GlobalMaxPool LpPool MaxPool MaxRoiPool Conv ConvInteger ConvTranspose DeformConv InstanceNormalization "
    "LpNormalization LayerNormalization SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
    "SequenceLength SequenceMap SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement"
)
EVIDENT_ELEMENTWISE = (
    "Div Relu Sqrt Clip LeakyRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish Softplus Softsign ThresholdedRelu "
    "Swish PRelu Mean CastLike GreaterOrEqual LessOrEqual"
)

GROUPS: dict[str, OpGroup] = {
    **_row(OpGroup.ELEMENTWISE, UNARY),
    **_row(OpGroup.ELEMENTWISE, NARY),
    **_row(OpGroup.REDUCTION, REDUCTIONS),
    **_row(OpGroup.MATMUL, "MatMul MatMulInteger QLinearMatMul"),
    **_row(OpGroup.GEMM, "Gemm"),
    **_row(OpGroup.EINSUM, "Einsum"),
    **_row(OpGroup.SOURCE, "Constant ConstantOfShape Shape Size Range EyeLike"),
    **_row(OpGroup.UNSUPPORTED, UNSUPPORTED),
}
EVIDENT: dict[str, OpGroup] = _row(OpGroup.ELEMENTWISE, EVIDENT_ELEMENTWISE)

# inputs of an elementwise op that the rules are about, where these are not all: the others are numbers or types
ARRAY_INPUTS = {"Dropout": 1, "Clip": 1, "CastLike": 1}
# of the quantised products, where A and B stand
FACTORS = {"QLinearMatMul": (0, 3)}


def plain_op(op: str, domain: str) -> str:
    """Return the op of ONNX that a distributed op of ONNX Runtime computes; "" for all other ops."""
    return op.removeprefix("Distributed") if domain == RUNTIME and op.startswith("Distributed") else ""


def group_of(op: str, domain: str, *, extended: bool = False) -> OpGroup | None:
    """Return the group of an op; None if the op is in no group."""
    if domain not in ("", "ai.onnx"):
        op = plain_op(op, domain)
    return GROUPS.get(op) or (EVIDENT.get(op) if extended else None)
