"""Samples for the rule prover: dot_general."""

from __future__ import annotations

from collections.abc import Iterator

from tools.prove.rule_samples.sample import Sample
from tools.values import Type

Pair = tuple[tuple[int, ...], tuple[int, ...]]

DOTS: tuple[tuple[tuple[int, ...], tuple[int, ...], Pair, Pair], ...] = (
    ((4, 6), (6, 8), ((), ()), ((1,), (0,))),
    ((5, 3), (3, 7), ((), ()), ((1,), (0,))),
    ((4, 6), (8, 6), ((), ()), ((1,), (1,))),
    ((2, 4, 6), (2, 6, 3), ((0,), (0,)), ((2,), (1,))),
    ((4, 2, 3), (6, 4, 3), ((0,), (1,)), ((2,), (2,))),
    ((4, 6), (4, 6), ((0, 1), (0, 1)), ((), ())),
    ((4, 6), (4, 6), ((), ()), ((0, 1), (0, 1))),
    ((4,), (6,), ((), ()), ((), ())),
)


def dot() -> Iterator[Sample]:
    for element in ("f32", "i32", "bf16", "complex<f32>"):
        for left, right, batch, contract in DOTS if element == "f32" else DOTS[:2]:
            shape_ = [left[i] for i in batch[0]]
            shape_ += [n for i, n in enumerate(left) if i not in (*batch[0], *contract[0])]
            shape_ += [n for i, n in enumerate(right) if i not in (*batch[1], *contract[1])]
            rows = (("lhs_batching", batch[0]), ("rhs_batching", batch[1]),
                    ("lhs_contracting", contract[0]), ("rhs_contracting", contract[1]))  # fmt: skip
            said = ", ".join(f"{name}_dimensions = [{', '.join(map(str, dims))}]" for name, dims in rows if dims)
            yield Sample(
                "stablehlo.dot_general", (Type(left, element), Type(right, element)), (Type(tuple(shape_), element),),
                f"dot_dimension_numbers = #stablehlo.dot<{said}>", interpreted=element in ("f32", "i32"),
            )  # fmt: skip
