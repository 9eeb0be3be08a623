"""Solves, and products with a factored matrix: split on batch dimensions and on the right-hand sides.

The factor (a triangle, three diagonals, reflectors) is replicated. Each right-hand side is solved by itself: a
column of the other matrix where the factor stands on its left, a row where it stands on its right. What JAX calls for
them on CPU and GPU is named here; without that, a call's batch dimensions alone are known (``custom_call.leading``).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import entries, shape_of
from shardpass.ops.families.custom_call import define_target, local_call, shared_rule
from shardpass.ops.model import OpModel, Pointwise
from shardpass.ops.owners import TARGETS
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Rule


def columns(op: Any, place: int, left: bool) -> Rule | None:
    """Build the rule. Operand ``place`` is the right-hand sides; ``left``: the factor multiplies from the left.

    The solutions have their shape, in the result of the same number or the only result. All other operands and results
    have the same batch dimensions first, and no right-hand sides. None for calls of another form.
    """
    shapes = [shape_of(v) for v in (*op.operands, *op.results)]
    right = shapes[place]
    batch = len(right) - 2
    solved = len(op.operands) + (place if len(op.results) > 1 else 0)
    if solved >= len(shapes) or shapes[solved] != right or any(s[:batch] != right[:batch] for s in shapes):
        return None
    shared = {*range(batch), batch + 1 if left else batch}  # dimensions of what is solved that may be split
    sizes = {dim: right[dim] for dim in sorted(shared)}
    return shared_rule(op, sizes, lambda value, dim: dim < batch or value in (place, solved))


def triangular_solve(op: Any) -> OpModel[Any] | None:
    rule = columns(op, 1, ir.BoolAttr(op.attributes["left_side"]).value)
    return None if rule is None else Pointwise(rule)


def _attribute(op: Any, name: str) -> Any:
    """Read an attribute of a typed FFI call from either attribute in which JAX and StableHLO store it."""
    for key in ("mhlo.backend_config", "backend_config"):
        if key in op.attributes and isinstance(op.attributes[key], ir.DictAttr):
            return entries(op.attributes[key]).get(name)
    return None


def trsm(op: Any) -> OpModel[Any] | None:
    """Read a call of LAPACK's trsm as a triangular solve: the factor, the right-hand sides, and the side as LAPACK's
    letter.
    """
    side = _attribute(op, "side")
    return None if side is None else local_call(columns(op, 1, chr(ir.IntegerAttr(side).value) == "L"))


def gtsv(op: Any) -> OpModel[Any] | None:
    """Read a tridiagonal solve: three diagonals, the right-hand sides."""
    return local_call(columns(op, 3, True))


def ormqr(op: Any) -> OpModel[Any] | None:
    """Read a product with Q: its reflectors, their factors, the matrix that is multiplied."""
    left = _attribute(op, "left")
    return None if left is None else local_call(columns(op, 2, ir.BoolAttr(left).value))


CALLS = {"trsm": trsm, "gtsv": gtsv, "tridiagonal": gtsv, "mqr": ormqr}  # by a part of the target's name

for _target in TARGETS["triangular_solve"].split():
    define_target(_target, next(read for part, read in CALLS.items() if part in _target))

define("stablehlo.triangular_solve", triangular_solve, note="batch dimensions and right-hand sides")
