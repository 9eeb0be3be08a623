"""Reading a model: how its bytes are known, and what stands in it."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx")

from support.onnx_models import N, model, split  # noqa: E402

from shardpass.onnx import looks_like_a_model, read_model  # noqa: E402

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
