"""Random ops of linear algebra, transforms and batch norms; custom calls as JAX writes them for CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tools.fuzz.maker import Emitter, Maker, Unsuited
from tools.stablehlo_text import array, lapack_call
from tools.values import Fact, Type


def _matrices(make: Maker) -> int:
    """A batch of square matrices of f32, whose diagonals outweigh their rows."""
    at = make.pick(lambda f: f.type.element == "f32" and f.exact and 0 < f.type.count <= 48 and len(f.type.shape) < 4)
    rng = make.rng
    at = make.clamped(at, -1, 1)
    fact = make.facts[at]
    shape = fact.type.shape
    if len(shape) > 1 and shape[-1] == shape[-2] > 1 and rng.random() < 0.7:
        whole = shape
    else:
        n = shape[-1] if shape and 1 < shape[-1] <= 4 else rng.choice((2, 3, 4))
        keep = len(shape) - 1 if shape and shape[-1] == n else len(shape)
        whole = (*shape[:keep], n, n)
        dims = [*range(keep), *([keep + rng.randint(0, 1)] if keep < len(shape) else [])]
        result = replace(fact, type=Type(whole, "f32"))
        at = make.add("stablehlo.broadcast_in_dim", [at], [result], f"broadcast_dimensions = {array(dims)}")
    n = whole[-1]
    if prod(whole) > 1024:
        raise Unsuited
    eye = "[" + ", ".join("[" + ", ".join(f"{3 * n * (i == j)}.0" for j in range(n)) + "]" for i in range(n)) + "]"
    heavy = make.constant("f32", eye, (n, n), bound=3 * n)
    spread = make.add(
        "stablehlo.broadcast_in_dim", [heavy], [Fact(Type(whole, "f32"), 3 * n)],
        f"broadcast_dimensions = {array([len(whole) - 2, len(whole) - 1])}",
    )  # fmt: skip
    return make.elementwise("add", [at, spread], bound=3 * n + 1)


def cholesky(make: Maker) -> None:
    at = _matrices(make)
    lower = make.rng.choice(("true", "false"))
    fact = replace(make.facts[at], bound=8.0, exact=False)
    make.add("stablehlo.cholesky", [at], [fact], f"lower = {lower}")


def triangular_solve(make: Maker) -> None:
    at = _matrices(make)
    rng, shape = make.rng, make.facts[at].type.shape
    *batch, n, _ = shape
    left = rng.random() < 0.6
    many = rng.choice((1, 2, 3, 4))
    right = make.counted((*batch, n, many) if left else (*batch, many, n))
    kind = rng.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    attributes = (
        f"left_side = {str(left).lower()}, lower = {rng.choice(('true', 'false'))}, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {kind}>"
    )
    make.add("stablehlo.triangular_solve", [at, right], [replace(make.facts[right], exact=False)], attributes)


def fft(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0 and f.type.element in ("f32", "complex<f32>") and f.type.count > 0)
    fact, rng = make.facts[at], make.rng
    shape = fact.type.shape
    count = rng.randint(1, min(3, len(shape)))
    rest, last = shape[:-count], list(shape[-count:])
    if fact.type.element == "f32":
        kind, lengths = "RFFT", tuple(last)
        result = Type((*rest, *last[:-1], last[-1] // 2 + 1), "complex<f32>")
    elif rng.random() < 0.3 and last[-1] > 1:
        kind, lengths = "IRFFT", (*last[:-1], 2 * (last[-1] - 1))
        result = Type((*rest, *lengths), "f32")
    else:
        kind, lengths = rng.choice(("FFT", "IFFT")), tuple(last)
        result = fact.type
    bound = fact.bound * prod(lengths) * 2
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(lengths)}"
    make.add("stablehlo.fft", [at], [Fact(result, bound, exact=False)], attributes)


# ---------------------------------------------------------------- batch norms


def batch_norm(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 1 and f.type.element == "f32" and f.type.count > 0 and f.bound <= 64)
    fact, rng = make.facts[at], make.rng
    feature = rng.randrange(len(fact.type.shape))
    kind = Type((fact.type.shape[feature],), "f32")
    scale = make.find(lambda f: f.type == kind and f.bound <= 64)
    scale = make.counted(kind.shape) if scale is None else scale
    offset = make.counted(kind.shape)
    attributes = f"epsilon = 1.0 : f32, feature_index = {feature} : i64"
    count = fact.type.count / max(1, kind.count)
    high = 2 * fact.bound * make.facts[scale].bound + make.facts[offset].bound
    large, small = Fact(fact.type, high, exact=False), Fact(kind, fact.bound**2 * 4, exact=False)
    name = rng.choice(("training", "inference", "grad"))
    if name == "training":
        make.add("stablehlo.batch_norm_training", [at, scale, offset], [large, small, small], attributes)
        return
    mean, variance = (make.counted(kind.shape) for _ in range(2))
    if name == "inference":
        make.add("stablehlo.batch_norm_inference", [at, scale, offset, mean, variance], [large], attributes)
        return
    gradient = make.partner(at)
    most = high * (1 + fact.bound) * max(1.0, make.facts[gradient].bound) * 16 * count
    if most > 1e6:
        raise Unsuited
    results = [replace(large, bound=most), replace(small, bound=most), replace(small, bound=most)]
    make.add("stablehlo.batch_norm_grad", [at, scale, mean, variance, gradient], results, attributes)


# ---------------------------------------------------------------- custom calls


def _lapack(
    make: Maker, target: str, config: str, operands: Sequence[int], results: Sequence[Fact], batch: int, alias: int
) -> int:
    kinds = [make.facts[i].type for i in operands]
    attributes = lapack_call(target, config, kinds, [f.type for f in results], batch, alias)
    first = make.add("stablehlo.custom_call", operands, results, attributes)
    make.nodes[-1] = replace(make.nodes[-1], sharding="")
    return first


def lapack(make: Maker) -> None:
    """What JAX calls for a factorisation; each knows its batch dimensions."""
    at = _matrices(make)
    shape = make.facts[at].type.shape
    *batch, n, _ = shape
    if prod(shape) == 0:
        raise Unsuited
    rank = len(batch)
    matrix = Fact(Type(shape, "f32"), 16.0 * n, exact=False)
    vector = Fact(Type((*batch, n), "f32"), 16.0 * n, exact=False)
    info = Fact(Type(tuple(batch), "i32"), n)
    name = make.rng.choice(("spotrf", "sgeqrf", "sgetrf", "strsm", "ssyevd"))
    if name == "spotrf":
        _lapack(make, "lapack_spotrf_ffi", "uplo = 76 : ui8", [at], [matrix, info], rank, 0)
    elif name == "sgetrf":
        pivots = Fact(Type((*batch, n), "i32"), n)
        _lapack(make, "lapack_sgetrf_ffi", "", [at], [matrix, pivots, info], rank, 0)
    elif name == "sgeqrf":
        first = _lapack(make, "lapack_sgeqrf_ffi", "", [at], [matrix, vector], rank, 0)
        _lapack(make, "lapack_sorgqr_ffi", "", [first, first + 1], [matrix], rank, 0)
    elif name == "ssyevd":
        _lapack(make, "lapack_ssyevd_ffi", "mode = 86 : ui8, uplo = 76 : ui8", [at], [matrix, vector, info], rank, 0)
    else:
        many = make.counted((*batch, n, 2))
        result = replace(make.facts[many], bound=16.0, exact=False)
        config = "diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8"
        _lapack(make, "lapack_strsm_ffi", config, [at, many], [result], rank, 1)


EMITTERS: dict[Emitter, int] = {
    cholesky: 2, triangular_solve: 2, fft: 2, batch_norm: 3, lapack: 2,
}  # fmt: skip
