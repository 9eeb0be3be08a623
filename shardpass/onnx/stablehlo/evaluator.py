"""Evaluate a model by onnx's reference evaluator, for comparison with a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.diagnostics.table_onnx import NO_EVALUATOR
from shardpass.onnx.model import Model
from shardpass.onnx.stablehlo.bridge import Program
from shardpass.onnx.versions import TARGET_OPSET
from shardpass.runtime.special import Reference

NAME = "onnx's reference evaluator"


def evaluator_of(model: Model, program: Program) -> Reference:
    """Return the evaluator of a model, on the arguments of its program."""

    def run(arguments: Sequence[Any]) -> list[Any]:
        from onnx import version_converter
        from onnx.reference import ReferenceEvaluator

        proto = model.proto
        inputs = {name: np.asarray(value) for name, value in zip(program.inputs, arguments, strict=False)}
        try:
            if model.opset < TARGET_OPSET:  # where the evaluator takes every BatchNormalization for one that trains
                proto = version_converter.convert_version(proto, TARGET_OPSET)
            with np.errstate(all="ignore"):
                return [np.asarray(value) for value in ReferenceEvaluator(proto).run(None, inputs)]
        except Exception as error:  # it raises whatever NumPy and it itself raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise NO_EVALUATOR.error(model.place, reason=reason) from None

    return Reference(NAME, run)
