"""fft, cholesky, and the factorisations that JAX calls: split on batch dimensions. Solves are in ``solvers``."""

from __future__ import annotations

from typing import Any

from shardpass.ir.tensors import ints, shape_of
from shardpass.ops.families.custom_call import define_target, leading
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Rule


def fft(op: Any) -> Rule | None:
    """The dimensions that are not transformed are a batch."""
    return leading(op, len(shape_of(op.operands[0])) - len(ints(op.attributes["fft_length"])))


def cholesky(op: Any) -> Rule | None:
    return leading(op, len(shape_of(op.operands[0])) - 2)


def matrices(op: Any) -> Rule | None:
    """Targets that work on the last two dimensions of their first operand."""
    return leading(op, len(shape_of(op.operands[0])) - 2)


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

define("stablehlo.fft", "fft_cholesky", fft, note="every dimension that is not transformed")
define("stablehlo.cholesky", "fft_cholesky", cholesky, note="batch dimensions")
