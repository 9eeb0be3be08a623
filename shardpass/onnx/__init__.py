"""ONNX models: read, check, complete, and write in StableHLO.

    model = shardpass.onnx.read_model(Path("model.onnx").read_bytes(), "model.onnx")
    report = shardpass.onnx.check_model(model, strict=True)
    report.findings                                    # diagnostics, errors first
    shardpass.onnx.completed_model(model, report)      # bytes: the model with every missing spec

    program = shardpass.onnx.to_stablehlo(model)       # to partition and run it; needs JAX
    shardpass.onnx.check_model(model, beyond=shardpass.onnx.propagated)   # ops without rules, by propagation

The package ``onnx`` (the extra ``shardpass[onnx]``) is imported when a model is read.
"""

from importlib import import_module
from typing import Any

from shardpass.onnx.check import Report, check_model
from shardpass.onnx.complete import completed_model
from shardpass.onnx.layout import Layout, layout_of, spec_of
from shardpass.onnx.model import Model, looks_like_a_model, read_model

__all__ = [
    "Layout",
    "Model",
    "Report",
    "check_model",
    "completed_model",
    "layout_of",
    "looks_like_a_model",
    "propagated",
    "read_model",
    "spec_of",
    "to_stablehlo",
]


def __dir__() -> list[str]:
    return __all__


_NEED_JAX = {"propagated": "shardpass.onnx.stablehlo.by_propagation", "to_stablehlo": "shardpass.onnx.stablehlo.bridge"}


def __getattr__(name: str) -> Any:
    if name not in _NEED_JAX:
        raise AttributeError(f"module 'shardpass.onnx' has no attribute {name!r}")
    return getattr(import_module(_NEED_JAX[name]), name)  # imports JAX, which checking does not need
