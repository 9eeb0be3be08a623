"""SP7xx: ONNX models. Each row of 71x to 75x is a rule of ONNX's sharding formalism, whose id opens the message."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, named


def __getattr__(name: str) -> Code:
    return named(name, "7")
