"""cholesky and the factorizations that JAX calls, split over batch dimensions. See also ``triangular_solve`` and
``fft``.
"""

from __future__ import annotations

from typing import Any

from shardpass.ir.tensors import shape_of
from shardpass.ops.families.custom_call import define_target, leading, local_call
from shardpass.ops.model import OpModel
from shardpass.ops.owners import TARGETS
from shardpass.ops.registry import define


def matrices(op: Any) -> OpModel[Any] | None:
    """Model an op or call that works on the last two dimensions of its first operand."""
    return local_call(leading(op, len(shape_of(op.operands[0])) - 2))


# the calls that JAX makes without num_batch_dims (on TPU, and in exported programs)
for _target in TARGETS["cholesky"].split():
    define_target(_target, matrices)
define("stablehlo.cholesky", matrices, note="batch dimensions")
