"""Models of ONNX's own test data, with the outputs that ONNX stores or makes for them: the cases of ``onnx_models``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

STORED = ("simple", "pytorch-operator", "pytorch-converted")


@dataclass(frozen=True, slots=True)
class Case:
    """``sets``: values of the inputs, and the outputs that belong to them."""

    kind: str
    name: str
    proto: Any
    sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def is_numeric(self) -> bool:
        """Whether all inputs are arrays of numbers."""
        return all(
            isinstance(value, np.ndarray) and value.dtype.kind not in "OUS"
            for inputs, _ in self.sets
            for value in inputs
        )

    @property
    def ops(self) -> str:
        return ", ".join(dict.fromkeys(node.op_type for node in self.proto.graph.node))


def stored_cases() -> Iterator[Case]:
    """The models that the package stores with their data: 140 in onnx 1.23."""
    for kind in STORED:
        for folder in sorted((_data() / kind).iterdir()):
            if (folder / "model.onnx").exists():
                yield _stored(kind, folder)


def light_cases() -> Iterator[Case]:
    """Nine networks for images, whose weights are constants; the input counts from 0 to 1, as in ONNX's own runner."""
    for path in sorted((_data() / "light").glob("*.onnx")):
        proto = onnx.load(path)
        own = {tensor.name for tensor in proto.graph.initializer}
        info = next(info for info in proto.graph.input if info.name not in own)
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        value = (np.arange(count).reshape(shape) / count).astype(np.float32)
        output = _read(path.with_name(f"{path.stem}_output_0.pb"), proto.graph.output[0].type)
        yield Case("light", path.stem, proto, [([value], [output])], 1e-3, 1e-7)


def node_cases() -> Iterator[Case]:
    """The tests of single ops, which the package makes when it is asked."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    for test in collected:
        sets = [([*map(_value, inputs)], [*map(_value, outputs)]) for inputs, outputs in test.data_sets or []]
        yield Case("node", test.name, test.model, sets, test.rtol, test.atol)


def _data() -> Path:
    return Path(onnx.__file__).parent / "backend" / "test" / "data"


def _stored(kind: str, folder: Path) -> Case:
    proto = onnx.load(folder / "model.onnx")
    own = {tensor.name for tensor in proto.graph.initializer}
    inputs = [info.type for info in proto.graph.input if info.name not in own]
    outputs = [info.type for info in proto.graph.output]
    sets = [
        (_values(data, "input", inputs), _values(data, "output", outputs))
        for data in sorted(folder.glob("test_data_set_*"))
    ]
    return Case(kind, folder.name, proto, sets, 1e-3, 1e-7)


def _values(folder: Path, side: str, types: Sequence[Any]) -> list[Any]:
    return [_read(folder / f"{side}_{k}.pb", kind) for k, kind in enumerate(types)]


def _read(path: Path, kind: Any) -> Any:
    data = path.read_bytes()
    if kind.WhichOneof("value") == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | float | int) else value
