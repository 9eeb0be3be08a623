"""Samples for the rule prover: linear algebra, transforms, batch norms, calls of LAPACK, map, old and CHLO ops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tools.prove.rule_samples.sample import Sample
from tools.stablehlo_text import array, lapack_call, literal
from tools.values import Array, Type

Shape = tuple[int, ...]


def _heavy(shape: Shape) -> Array:
    """Matrices whose diagonals outweigh their rows, each another one, symmetric."""
    n = shape[-1]
    numbers = (np.arange(int(np.prod(shape)), dtype=np.float32) * 7 % 5 - 2).reshape(shape)
    return (numbers + numbers.swapaxes(-1, -2)) / 4 + 3 * n * np.eye(n, dtype=np.float32)


def solves() -> Iterator[Sample]:
    """cholesky and triangular_solve, on each side."""
    for shape in ((4, 3, 3), (3, 4, 4), (6, 2, 2, 2), (4, 4)):
        kind = Type(shape, "f32")
        for lower in ("true", "false"):
            yield Sample(
                "stablehlo.cholesky", (kind,), (kind,), f"lower = {lower}", data={0: _heavy(shape)}, interpreted=False
            )
    for batch, n, many in (((4,), 3, 6), ((3,), 2, 5), ((), 4, 4)):
        for left in (True, False):
            for transpose in ("NO_TRANSPOSE", "TRANSPOSE"):
                factor, right = (*batch, n, n), (*batch, n, many) if left else (*batch, many, n)
                attributes = (
                    f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
                    f"transpose_a = #stablehlo<transpose {transpose}>"
                )
                kinds = (Type(factor, "f32"), Type(right, "f32"))
                data = {0: _heavy(factor)}
                yield Sample(
                    "stablehlo.triangular_solve", kinds, kinds[1:], attributes, data=data, interpreted=False
                )  # fmt: skip


def fft() -> Iterator[Sample]:
    for kind, source, target, lengths in (
        ("FFT", Type((4, 6), "complex<f32>"), Type((4, 6), "complex<f32>"), (6,)),
        ("IFFT", Type((3, 5), "complex<f32>"), Type((3, 5), "complex<f32>"), (5,)),
        ("RFFT", Type((4, 3, 8), "f32"), Type((4, 3, 5), "complex<f32>"), (8,)),
        ("IRFFT", Type((4, 3, 5), "complex<f32>"), Type((4, 3, 8), "f32"), (3, 8)),
        ("FFT", Type((2, 4, 4), "complex<f32>"), Type((2, 4, 4), "complex<f32>"), (4, 4)),
    ):
        attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(lengths)}"
        yield Sample("stablehlo.fft", (source,), (target,), attributes, interpreted=False)


def lapack() -> Iterator[Sample]:
    """What JAX calls on CPU: factorisations on batch dimensions, solves and products on right-hand sides too."""
    for batch in ((4,), (3, 2), ()):
        n = 3
        matrix, vector, info = Type((*batch, n, n), "f32"), Type((*batch, n), "f32"), Type(batch, "i32")
        pivots, heavy, rank = Type((*batch, n), "i32"), {0: _heavy((*batch, n, n))}, len(batch)
        for target, config, results in (
            ("lapack_spotrf_ffi", "uplo = 76 : ui8", (matrix, info)),
            ("lapack_sgeqrf_ffi", "", (matrix, vector)),
            ("lapack_sgetrf_ffi", "", (matrix, pivots, info)),
            ("lapack_ssyevd_ffi", "mode = 86 : ui8, uplo = 76 : ui8", (matrix, vector, info)),
        ):
            said = lapack_call(target, config, (matrix,), results, rank, 0)
            yield Sample("stablehlo.custom_call", (matrix,), results, said, data=heavy, note=target, interpreted=False)
        reflectors = (matrix, vector)
        said = lapack_call("lapack_sorgqr_ffi", "", reflectors, (matrix,), rank, 0)
        yield Sample("stablehlo.custom_call", reflectors, (matrix,), said, note="sorgqr", interpreted=False)
        for side, many in (("L", Type((*batch, n, 4), "f32")), ("R", Type((*batch, 4, n), "f32"))):
            config = f"diag = 78 : ui8, side = {ord(side)} : ui8, trans_x = 78 : ui8, uplo = 85 : ui8"
            said = lapack_call("lapack_strsm_ffi", config, (matrix, many), (many,), rank, 1)
            yield Sample(
                "stablehlo.custom_call", (matrix, many), (many,), said, data=heavy, note=f"strsm {side}",
                interpreted=False,
            )  # fmt: skip


def batch_norm() -> Iterator[Sample]:
    for shape, feature in (((4, 6), 1), ((5, 3, 2), 0), ((2, 4, 3, 6), 3)):
        large, small = Type(shape, "f32"), Type((shape[feature],), "f32")
        attributes = f"epsilon = 1.0 : f32, feature_index = {feature} : i64"
        positive = np.arange(1, shape[feature] + 1, dtype=np.float32)
        yield Sample(
            "stablehlo.batch_norm_training", (large, small, small), (large, small, small), attributes,
        )  # fmt: skip
        yield Sample(
            "stablehlo.batch_norm_inference", (large, small, small, small, small), (large,), attributes,
            data={4: positive},
        )  # fmt: skip
        yield Sample(
            "stablehlo.batch_norm_grad", (large, small, small, small, large), (large, small, small), attributes,
            data={3: positive},
        )  # fmt: skip


def mapping() -> Iterator[Sample]:
    region = (
        "{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %n = stablehlo.negate %q : tensor<f32> "
        "%r = stablehlo.maximum %p, %n : tensor<f32> stablehlo.return %r : tensor<f32> }"
    )
    for shape in ((4, 6), (5, 3), (8,)):
        kind = Type(shape, "f32")
        yield Sample("stablehlo.map", (kind, kind), (kind,), f"dimensions = {array(range(len(shape)))}", region)
        for dim in range(len(shape)):
            yield Sample("stablehlo.get_dimension_size", (kind,), (Type((), "i32"),), f"dimension = {dim} : i64")


def bits() -> Iterator[Sample]:
    """bitcast_convert to the same width, a lesser one, a greater one."""
    for source, target in (
        (Type((4, 6), "f32"), Type((4, 6), "i32")), (Type((5, 3), "i32"), Type((5, 3, 4), "ui8")),
        (Type((4, 3, 4), "i8"), Type((4, 3), "i32")), (Type((8,), "ui32"), Type((8,), "f32")),
    ):  # fmt: skip
        yield Sample("stablehlo.bitcast_convert", (source,), (target,), interpreted=False)


def chlo() -> Iterator[Sample]:
    """Ops of CHLO that JAX and libraries write, besides those that are like StableHLO's."""
    f, i, c = (Type((4, 6), e) for e in ("f32", "i32", "complex<f32>"))
    positive = (np.arange(24, dtype=np.float32) % 3 + 2).reshape(4, 6)
    for name in ("zeta", "polygamma", "next_after"):
        yield Sample(f"chlo.{name}", (f, f), (f,), data={0: positive, 1: positive + 1}, interpreted=False)
    large = (np.arange(24, dtype=np.int32) * 123456789).reshape(4, 6)
    yield Sample("chlo.mulhi", (i, i), (i,), data={0: large, 1: large[::-1].copy()}, interpreted=False)
    for name in ("is_neg_inf", "is_pos_inf"):
        yield Sample(f"chlo.{name}", (f,), (Type((4, 6), "i1"),), interpreted=False)
    yield Sample("chlo.constant_like", (f,), (f,), "value = 2.0 : f32", interpreted=False)
    for name in ("conj", "_asin_acos_kernel"):
        yield Sample(f"chlo.{name}", (c,), (c,), interpreted=False)


STRETCHED = {
    "f32": "add atan2 complex compare divide maximum minimum multiply next_after polygamma power remainder subtract "
    "zeta",
    "i32": "add and or shift_left shift_right_arithmetic shift_right_logical xor",
}


def stretched() -> Iterator[Sample]:
    """CHLO's ops that broadcast as they go, and what StableHLO no longer specifies."""
    for element, names in STRETCHED.items():
        for name in names.split():
            for left, right in (((4, 6), (1, 6)), ((5, 3), ()), ((1, 4), (8, 1))):
                shape = np.broadcast_shapes(left, right)
                result = Type(shape, {"compare": "i1", "complex": "complex<f32>"}.get(name, element))
                attributes = "comparison_direction = #chlo<comparison_direction LT>" if name == "compare" else ""
                dtype = np.float32 if element == "f32" else np.int32
                data = {k: np.asarray(np.arange(int(np.prod(s))) % 3 + 2, dtype).reshape(s)
                        for k, s in enumerate((left, right))}  # fmt: skip
                yield Sample(
                    f"chlo.broadcast_{name}", (Type(left, element), Type(right, element)), (result,), attributes,
                    data=data, interpreted=False,
                )  # fmt: skip
    f = Type((4, 6), "f32")
    yield Sample("chlo.broadcast_select", (Type((4, 6), "i1"), f, Type((), "f32")), (f,), interpreted=False)
    value = f"value = dense<{literal('f32', 3)}> : {f}"
    yield Sample("chlo.constant", (), (f,), value, interpreted=False)
    yield Sample("stablehlo.broadcast", (f,), (Type((2, 4, 6), "f32"),), f"broadcast_sizes = {array([2])}")
    yield Sample("stablehlo.dot", (f, Type((6, 3), "f32")), (Type((4, 3), "f32"),))
    yield Sample("stablehlo.dot", (Type((6,), "f32"), Type((6,), "f32")), (Type((), "f32"),))
    yield Sample(
        "stablehlo.torch_index_select", (f, Type((5,), "i32")), (Type((4, 5), "f32"),),
        "dim = 1 : i64, batch_dims = 0 : i64", data={1: np.array([5, 0, 0, 2, 3], np.int32)}, interpreted=False,
    )  # fmt: skip
