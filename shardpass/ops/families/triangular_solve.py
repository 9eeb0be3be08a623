"""Solves, and products with a factored matrix: split on batch dimensions and on the right-hand sides.

The factor (a triangle, three diagonals, reflectors) is replicated. Each right-hand side is solved by itself: a
column of the other matrix where the factor stands on its left, a row where it stands on its right. What JAX calls for
them on CPU and GPU is named here; without that, a call's batch dimensions alone are known (``custom_call.leading``).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import entries, shape_of
from shardpass.ops.families.custom_call import LocalCall, define_target
from shardpass.ops.model import OpModel, Pointwise, Read
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Rule, RuleBuilder


def columns(op: Any, place: int, left: bool) -> Rule | None:
    """Build the rule. Operand ``place`` is the right-hand sides; ``left``: the factor multiplies from the left.

    The solutions have their shape, in the result of the same number or the only result. All other operands and results
    have the same batch dimensions first, and no right-hand sides. None for calls of another form.
    """
    given = len(op.operands)
    shapes = [shape_of(v) for v in (*op.operands, *op.results)]
    right = shapes[place]
    batch = len(right) - 2
    solved = given + (place if len(op.results) > 1 else 0)
    if solved >= len(shapes) or shapes[solved] != right or any(s[:batch] != right[:batch] for s in shapes):
        return None
    shared = {*range(batch), batch + 1 if left else batch}  # dimensions of what is solved that may be split
    build = RuleBuilder([len(s) for s in shapes[:given]], [len(s) for s in shapes[given:]])
    common = {dim: build.factor(right[dim]) for dim in sorted(shared)}
    for index, shape in enumerate(shapes):
        for dim, size in enumerate(shape):
            here = dim in common and (dim < batch or index in (place, solved))
            factor = common[dim] if here else build.factor(size, Kind.REPLICATED)
            (build.operand(index, dim, factor) if index < given else build.result(index - given, dim, factor))
    return build.build()


def triangular_solve(op: Any) -> OpModel[Any] | None:
    rule = columns(op, 1, ir.BoolAttr(op.attributes["left_side"]).value)
    return None if rule is None else Pointwise(rule)


def _call(rule: Rule | None) -> OpModel[Any] | None:
    return None if rule is None else LocalCall(rule)


def _attribute(op: Any, name: str) -> Any:
    """Read an attribute of a typed FFI call, which JAX writes beside the call's others, StableHLO elsewhere."""
    for key in ("mhlo.backend_config", "backend_config"):
        if key in op.attributes and isinstance(op.attributes[key], ir.DictAttr):
            return entries(op.attributes[key]).get(name)
    return None


def trsm(op: Any) -> OpModel[Any] | None:
    """Read a triangular solve: the factor, the right-hand sides. The side is LAPACK's letter."""
    side = _attribute(op, "side")
    return None if side is None else _call(columns(op, 1, chr(ir.IntegerAttr(side).value) == "L"))


def gtsv(op: Any) -> OpModel[Any] | None:
    """Read a tridiagonal solve: three diagonals, the right-hand sides."""
    return _call(columns(op, 3, True))


def ormqr(op: Any) -> OpModel[Any] | None:
    """Read a product with Q: its reflectors, their factors, the matrix that is multiplied."""
    left = _attribute(op, "left")
    return None if left is None else _call(columns(op, 2, ir.BoolAttr(left).value))


CALLS: dict[Read, str] = {
    trsm: "lapack_strsm_ffi lapack_dtrsm_ffi lapack_ctrsm_ffi lapack_ztrsm_ffi",
    gtsv: """
        lapack_sgtsv_ffi lapack_dgtsv_ffi lapack_cgtsv_ffi lapack_zgtsv_ffi tridiagonal_solve_perturbed_ffi
        cusparse_gtsv2_ffi hipsparse_gtsv2_ffi cu_tridiagonal_solve_perturbed hip_tridiagonal_solve_perturbed
    """,
    ormqr: """
        lapack_sormqr_ffi lapack_dormqr_ffi lapack_cunmqr_ffi lapack_zunmqr_ffi
        cusolver_ormqr_ffi hipsolver_ormqr_ffi
    """,
}

for _read, _targets in CALLS.items():
    for _target in _targets.split():
        define_target(_target, _read)

define("stablehlo.triangular_solve", triangular_solve, note="batch dimensions and right-hand sides")
