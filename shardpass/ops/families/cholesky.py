"""cholesky, and the factorizations that JAX calls: split on batch dimensions. Others: ``triangular_solve``, ``fft``."""

from __future__ import annotations

from typing import Any

from shardpass.ir.tensors import shape_of
from shardpass.ops.families.custom_call import LocalCall, define_target, leading
from shardpass.ops.model import OpModel, Pointwise
from shardpass.ops.registry import define


def cholesky(op: Any) -> OpModel[Any] | None:
    return _batch(op, 2)


def _batch(op: Any, whole: int) -> OpModel[Any] | None:
    """Make all but the last ``whole`` dimensions batch dimensions."""
    rule = leading(op, len(shape_of(op.operands[0])) - whole)
    return None if rule is None else Pointwise(rule)


def matrices(op: Any) -> OpModel[Any] | None:
    """Model a custom call that works on the last two dimensions of its first operand."""
    rule = leading(op, len(shape_of(op.operands[0])) - 2)
    return None if rule is None else LocalCall(rule)


# what JAX calls by name where it does not write num_batch_dims (TPU, and exported programs)
TARGETS = (
    "Cholesky",
    "Eigh",
    "LuDecomposition",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    "QrDecompositionBlock",
)

for _target in TARGETS:
    define_target(_target, matrices)

define("stablehlo.cholesky", cholesky, note="batch dimensions")
