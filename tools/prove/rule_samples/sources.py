"""Samples for the rule prover: iota, constants, random bits."""

from __future__ import annotations

from collections.abc import Iterator

from tools.prove.rule_samples.sample import EVEN, ODD, Sample
from tools.stablehlo_text import literal
from tools.values import Type


def source() -> Iterator[Sample]:
    for element in ("i32", "f32", "ui8", "bf16", "complex<f32>"):
        for shape in (EVEN, ODD):
            for dim in (0, 1):
                kind = Type(shape, element)
                yield Sample(
                    "stablehlo.iota", (), (kind,), f"iota_dimension = {dim} : i64", interpreted=element == "i32"
                )
    for element in ("f32", "i1", "complex<f32>", "bf16", "ui8"):
        kind = Type(EVEN, element)
        value = f"value = dense<{literal(element, 1)}> : {kind}"
        yield Sample("stablehlo.constant", (), (kind,), value, interpreted=element == "f32")
    kind = Type((2, 3), "i32")
    yield Sample("stablehlo.constant", (), (kind,), f"value = dense<[[1, 2, 3], [4, 5, 6]]> : {kind}")


def random() -> Iterator[Sample]:
    """Bits are those of the whole array whatever the split."""
    shapes: list[tuple[str, tuple[int, ...], str]] = [
        ("DEFAULT", (4, 6), "ui32"),
        ("PHILOX", (4, 6), "ui32"),
        ("THREE_FRY", (4, 6), "ui32"),
        ("PHILOX", (5, 3), "ui32"),
        ("DEFAULT", (7, 3), "ui64"),
        ("DEFAULT", (1, 9, 2), "ui8"),
    ]
    for algorithm, shape, element in shapes:
        yield Sample(
            "stablehlo.rng_bit_generator", (Type((2,), "ui64"),), (Type((2,), "ui64"), Type(shape, element)),
            f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>", interpreted=False,
        )  # fmt: skip
