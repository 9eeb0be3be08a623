"""fft, cholesky, and the factorisations that JAX calls: split on batch dimensions. Solves are in ``solvers``."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints, retype, shape_of
from shardpass.ops.custom_call import define_target, leading
from shardpass.ops.factors import Rule
from shardpass.ops.local import Local
from shardpass.ops.registry import define


def fft(op: Any) -> Rule | None:
    """The dimensions that are not transformed are a batch."""
    return leading(op, len(shape_of(op.operands[0])) - len(ints(op.attributes["fft_length"])))


def _row_major(value: Any) -> Any:
    """``value``, by way of one dimension: that has one layout, and the barrier keeps it until layouts are chosen."""
    flat = hlo.reshape(retype(value.type, [prod(shape_of(value))]), value)
    kept = hlo.optimization_barrier([flat])
    return hlo.reshape(value.type, kept)


def localize_fft(local: Local) -> list[Any]:
    """XLA's CPU client refuses its own FFT where a collective beside it chose another layout than row-major."""
    op = local.op
    with local.before():
        op.operands[0] = _row_major(op.operands[0])
    op.results[0].set_type(retype(op.results[0].type, local.tile(0)))
    with local.after():
        return [_row_major(op.results[0])]


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

define("stablehlo.fft", "linalg", fft, localize_fft, note="dimensions that are not transformed")
define("stablehlo.cholesky", "linalg", cholesky, note="batch dimensions")
