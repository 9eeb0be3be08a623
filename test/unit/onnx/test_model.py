"""Reading a model: how its bytes are known, and what stands in it."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx")

import numpy as np  # noqa: E402
from onnx import TensorProto  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.onnx_kernels import bridged, same  # noqa: E402
from support.onnx_models import N, model, split  # noqa: E402

from shardpass.diagnostics import ShardpassError  # noqa: E402
from shardpass.onnx import check_model, looks_like_a_model, read_model  # noqa: E402

PROTO = model([N("Add", ["X", "b"], ["Y"], {"X": split([0, 1], (0, 2))})], {"X": ["batch", 6]}, constants={"b": [1.0]})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PROTO.SerializeToString(), True),
        (onnx.ModelProto(ir_version=11, producer_name="p").SerializeToString(), True),
        (onnx.ModelProto(ir_version=13, model_version=3).SerializeToString(), True),
        (b"module {\n}", False),
        (b"ML\xefR\x0dStableHLO", False),
        (b"\x08\x00\x00\x00flat buffer", False),
        (b"\x0a\x03jit", False),  # HloModuleProto: its name
        (b"", False),
        (b"\x08\x0b", False),
    ],
)
def test_a_model_is_known_by_its_first_bytes(data: bytes, expected: bool) -> None:
    assert looks_like_a_model(data, "file") is expected
    assert looks_like_a_model(data, "file.onnx")


def test_what_is_read() -> None:
    read = read_model(PROTO.SerializeToString(), "m.onnx")
    (node,) = read.nodes
    assert str(node) == "node 'n0' (Add)"
    assert (node.inputs, node.outputs) == (("X", "b"), ("Y",))
    assert node.annotations[0].specs[0].tensor_name == "X"
    assert read.tensor("X").shape == ("batch", 6)
    assert read.tensor("X").sizes is None
    assert (read.tensor("X").bits, read.tensor("b").bits, read.tensor("absent").shape) == (32, 64, None)
    assert read.tensor("b").sizes == (1,)
    assert read.sources == {"X", "b"}
    assert read.constants["b"].tolist() == [1.0]


# ------------------------------------------------------------------------------------- versions


def test_a_model_of_an_old_opset_is_converted_and_keeps_its_annotations() -> None:
    nodes = [
        N("ReduceSum", ["X"], ["Y"], {"X": split(range(4), (0, 4))}, {"axes": [1], "keepdims": 0}),
        N("Exp", "Y", "Z"),
    ]
    proto = model(nodes, {"X": [4, 6]}, opset=9)
    read = read_model(proto.SerializeToString())
    assert read.opset == 15
    assert [node.op for node in read.nodes if node.op != "Constant"] == ["ReduceSum", "Exp"]
    (annotated,) = [node for node in read.nodes if node.annotations]
    assert annotated.annotations[0].specs[0].tensor_name == "X"
    assert [d.code for d in check_model(read).findings if d.code == "SP708"] == ["SP708"]
    x = np.arange(24, dtype=np.float32).reshape(4, 6) / 24
    same(bridged(proto, {"X": x})[0], np.exp(x.sum(1)))


def test_an_old_version_that_has_annotations_contradicts_itself() -> None:
    proto = model([N("Exp", "X", "Y", {"X": split([0, 1], (0, 2))})], {"X": [4, 6]}, ir_version=10)
    with pytest.raises(ShardpassError, match="SP703"):
        read_model(proto.SerializeToString())
    del proto.configuration[:], proto.graph.node[0].device_configurations[:]
    assert read_model(proto.SerializeToString()).proto.ir_version == 11


def test_slopes_of_channels_stay_slopes_of_channels() -> None:
    """Before opset 7 the slopes of PRelu belong to axis 1, though they would also fit the last."""
    proto = model([N("PRelu", ["X", "s"], ["Y"])], {"X": [2, 3, 3]}, constants={"s": np.float32([1, 2, 3])}, opset=6)
    x = np.linspace(-1, 1, 18, dtype=np.float32).reshape(2, 3, 3)
    same(bridged(proto, {"X": x})[0], np.where(x < 0, x * np.float32([1, 2, 3])[:, None], x))


def test_what_onnx_cannot_convert_is_named() -> None:
    proto = model([N("Scan", ["X"], ["Y"])], {"X": [2, 3]}, opset=8)
    with pytest.raises(ShardpassError) as caught:
        read_model(proto.SerializeToString())
    assert caught.value.code == "SP710"


# ------------------------------------------------------------------------------------- what a user fixes


def test_sizes_and_inputs_are_fixed_beside_the_model() -> None:
    proto = model([N("Reshape", ["X", "shape"], ["Y"])], {"X": ["N", 6], "shape": [2]})
    proto.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    read = read_model(proto.SerializeToString(), dims={"N": 4}, constants={"shape": [3, -1]})
    assert (read.tensor("X").sizes, read.tensor("Y").sizes) == ((4, 6), (3, 8))
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    (expected,) = ReferenceEvaluator(read.proto).run(None, {"X": x})
    same(bridged(read.proto, {"X": x})[0], expected)


@pytest.mark.parametrize(
    ("fixed", "reason"),
    [
        ({"dims": {"M": 4}}, "no input or output of the model has a dimension 'M'"),
        ({"dims": {"batch": -1}}, "the dimension 'batch' has size -1"),
        ({"constants": {"b": [1]}}, "the model has no input 'b'"),
        ({"constants": {"X": [[1.0, 2.0]]}}, "has the shape \\[1, 2\\], and the input \\[None, 6\\]"),
        ({"constants": {"X": [["a"]]}}, "does not fit its type"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(fixed: dict, reason: str) -> None:
    with pytest.raises(ShardpassError, match=reason) as caught:
        read_model(PROTO.SerializeToString(), **fixed)
    assert caught.value.code == "SP709"
