"""Samples for the rule prover: elementwise ops of StableHLO and CHLO."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tools.prove.rule_samples.sample import EVEN, ODD, Sample
from tools.values import Array, Type

UNARY = {
    "f32": "abs cbrt ceil cosine exponential exponential_minus_one floor is_finite logistic negate "
    "round_nearest_afz round_nearest_even sign sine tan tanh",
    "i32": "abs count_leading_zeros negate not popcnt sign",
    "i1": "not",
}

POSITIVE = "log log_plus_one rsqrt sqrt"

BINARY = {
    "f32": "add atan2 divide maximum minimum multiply remainder subtract",
    "i32": "add and maximum minimum multiply or shift_left shift_right_arithmetic shift_right_logical subtract xor",
    "i1": "and or xor",
}

CHLO = "acosh asinh atanh conj cosh digamma erf erf_inv erfc is_inf lgamma sinh tan square acos asin atan bessel_i1e"


def elementwise() -> Iterator[Sample]:
    for element, names in UNARY.items():
        for name in names.split():
            kind = Type(ODD, element)
            result = Type(ODD, "i1") if name == "is_finite" else kind
            yield Sample(f"stablehlo.{name}", (kind,), (result,))
    for name in POSITIVE.split():
        yield Sample(f"stablehlo.{name}", (Type(EVEN, "f32"),), (Type(EVEN, "f32"),), data={0: _positive(EVEN)})
    for element, names in BINARY.items():
        for name in names.split():
            kind = Type(EVEN, element)
            data = {1: _positive(EVEN)} if name in ("divide", "remainder") else {}
            yield Sample(f"stablehlo.{name}", (kind, kind), (kind,), data=data)
    for shape in (EVEN, ODD, (1, 6), (8,)):
        f, b = Type(shape, "f32"), Type(shape, "i1")
        yield Sample("stablehlo.power", (f, f), (f,), data={0: _positive(shape)})
        yield Sample("stablehlo.compare", (f, f), (b,), "comparison_direction = #stablehlo<comparison_direction LT>")
        yield Sample("stablehlo.select", (b, f, f), (f,))
        yield Sample("stablehlo.select", (Type((), "i1"), f, f), (f,))
        yield Sample("stablehlo.clamp", (Type((), "f32"), f, Type((), "f32")), (f,), data=_limits())
        low, high = np.zeros(shape, np.float32), np.full(shape, 2, np.float32)
        yield Sample("stablehlo.clamp", (f, f, f), (f,), data={0: low, 2: high})
        yield Sample("stablehlo.convert", (f,), (Type(shape, "i32"),))
        yield Sample("stablehlo.reduce_precision", (f,), (f,), "exponent_bits = 5 : i32, mantissa_bits = 4 : i32")
        c = Type(shape, "complex<f32>")
        yield Sample("stablehlo.complex", (f, f), (c,), interpreted=False)
        yield Sample("stablehlo.real", (c,), (f,), interpreted=False)
        yield Sample("stablehlo.imag", (c,), (f,), interpreted=False)
    for name in CHLO.split():
        kind = Type(EVEN, "f32")
        result = Type(EVEN, "i1") if name == "is_inf" else kind
        yield Sample(f"chlo.{name}", (kind,), (result,), data={0: _positive(EVEN) / 7}, interpreted=False)
    a, b = Type(EVEN, "f32"), Type((6,), "i32")
    yield Sample("stablehlo.optimization_barrier", (a, b), (a, b))
    yield Sample("stablehlo.optimization_barrier", (a,), (a,))


def _positive(shape: tuple[int, ...]) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) % 5 + 1).reshape(shape)


def _limits() -> dict[int, Any]:
    return {0: np.float32(0), 2: np.float32(2)}
