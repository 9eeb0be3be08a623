"""Samples of ops for the rule validator: for each family, one-op programs of several shapes and attributes.

To add a family, write a function that yields ``Sample`` and put it into ``families``. Operands are ``%a0``, ``%a1``,
... of ``main``; what else the op needs (initial values) stands in ``before``. ``data`` gives an operand numbers of its
own where the small random integers will not do (indices).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fuzz_maker import array, body, comparator, literal
from fuzz_programs import DTYPES, FLOATS, Array, Fact, Type, numbers


@dataclass(frozen=True, slots=True)
class Sample:
    """``text`` is the op without its results and types: ``"stablehlo.add"(%a0, %a1) {..}``."""

    op: str
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    attributes: str = ""
    regions: str = ""
    before: str = ""
    more: tuple[str, ...] = ()  # operands made in ``before``: (%init)
    more_types: tuple[str, ...] = ()
    data: dict[int, Any] = field(default_factory=dict, hash=False)
    note: str = ""
    interpreted: bool = True  # StableHLO's reference interpreter knows it

    @property
    def name(self) -> str:
        takes = ", ".join(map(str, self.operands))
        return " ".join(part for part in (f"{self.op}({takes})", self.attributes, self.note) if part)

    def text(self, operands: tuple[str, ...] = (), results: tuple[str, ...] = (), devices: int = 1) -> str:
        """The module; ``operands`` and ``results`` are mhlo shardings, "" for none."""
        said = [f' {{mhlo.sharding = "{s}"}}' if s else "" for s in operands] or [""] * len(self.operands)
        given = [f' {{mhlo.sharding = "{s}"}}' if s else "" for s in results] or [""] * len(self.results)
        takes = ", ".join(f"%a{i}: {t}{s}" for i, (t, s) in enumerate(zip(self.operands, said, strict=True)))
        gives = ", ".join(f"{t}{s}" for t, s in zip(self.results, given, strict=True))
        count = len(self.results)
        names = [f"%r#{i}" for i in range(count)] if count > 1 else ["%r"]
        types = ", ".join(map(str, self.results))
        inputs = ", ".join([*(f"%a{i}" for i in range(len(self.operands))), *self.more])
        kinds = ", ".join([*map(str, self.operands), *self.more_types])
        inner = f" ({self.regions})" if self.regions else ""
        return (
            f"module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"  func.func @main({takes}) -> ({gives}) {{\n    {self.before}\n"
            f'    %r{f":{count}" if count > 1 else ""} = "{self.op}"({inputs}){inner} {{{self.attributes}}} : '
            f"({kinds}) -> ({types})\n    return {', '.join(names)} : {types}\n  }}\n}}\n"
        )

    def arrays(self) -> list[Array]:
        generator = np.random.default_rng(7)
        return [
            np.asarray(self.data[i]) if i in self.data else numbers(generator, Fact(t))
            for i, t in enumerate(self.operands)
        ]


EVEN, ODD = (4, 6), (5, 3)
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


Shape = tuple[int, ...]
BROADCASTS: tuple[tuple[Shape, Shape, Shape], ...] = (
    ((), EVEN, ()), ((4,), EVEN, (0,)), ((6,), EVEN, (1,)), ((1, 6), EVEN, (0, 1)), ((6, 4), (4, 2, 6), (2, 0)),
    ((5,), ODD, (0,)), ((1,), (1, 4), (0,)),
)  # fmt: skip
TRANSPOSES: tuple[tuple[Shape, Shape], ...] = ((EVEN, (1, 0)), (ODD, (1, 0)), ((4, 3, 6), (2, 0, 1)), (EVEN, (0, 1)))
RESHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((4, 6), (24,)), ((24,), (4, 6)), ((24,), (2, 3, 4)), ((4, 6), (2, 12)), ((4, 6), (8, 3)), ((4, 6), (6, 4)),
    ((5, 3), (15,)), ((5, 3), (5, 1, 3)), ((1, 6), (6,)), ((4, 1, 6), (2, 2, 6)), ((6, 4), (3, 2, 2, 2)),
    ((6, 8), (12, 4)), ((2, 6, 4), (4, 12)), ((8,), (8, 1)), ((4,), (1, 4, 1)), ((9, 4), (6, 6)), ((10, 3), (5, 6)),
)  # fmt: skip
SLICES: tuple[tuple[Shape, Shape, Shape, Shape], ...] = (
    (EVEN, (0, 1), (4, 5), (1, 2)), (EVEN, (1, 0), (3, 6), (1, 1)), (ODD, (0, 0), (5, 2), (1, 1)),
    (EVEN, (0, 0), (4, 6), (1, 1)), ((1, 4), (0, 0), (1, 2), (3, 1)), ((8,), (0,), (8,), (2,)),
)  # fmt: skip
PADS: tuple[tuple[Shape, Shape, Shape, Shape], ...] = (
    (EVEN, (0, 1), (0, 2), (0, 0)), (EVEN, (0, 0), (0, 0), (1, 0)), (ODD, (-1, 0), (1, 0), (0, 0)),
    (EVEN, (0, -1), (0, -2), (0, 0)), (EVEN, (0, 0), (2, 0), (0, 0)), ((8,), (1,), (7,), (1,)),
)  # fmt: skip
JOINED: tuple[tuple[tuple[Shape, ...], int], ...] = (
    ((EVEN, EVEN), 0), ((EVEN, (4, 2)), 1), (((5, 3), (5, 1), (5, 3)), 1), (((4,), (8,)), 0),
)  # fmt: skip
REVERSED: tuple[tuple[Shape, Shape], ...] = ((EVEN, (0,)), (EVEN, (1,)), (ODD, (0, 1)), (EVEN, ()))


def shape() -> Iterator[Sample]:
    f = "f32"
    for source, target, dims in BROADCASTS:
        attributes = f"broadcast_dimensions = {array(dims)}"
        yield Sample("stablehlo.broadcast_in_dim", (Type(source, f),), (Type(target, f),), attributes)
    for source, order in TRANSPOSES:
        target = tuple(source[d] for d in order)
        yield Sample("stablehlo.transpose", (Type(source, f),), (Type(target, f),), f"permutation = {array(order)}")
    for source, target in RESHAPES:
        yield Sample("stablehlo.reshape", (Type(source, f),), (Type(target, f),))
    for source, starts, limits, strides in SLICES:
        target = tuple(-(-(b - a) // c) for a, b, c in zip(starts, limits, strides, strict=True))
        attributes = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
        yield Sample("stablehlo.slice", (Type(source, f),), (Type(target, f),), attributes)
    for source, low, high, interior in PADS:
        target = tuple(n + a + b + (n - 1) * c for n, a, b, c in zip(source, low, high, interior, strict=True))
        attributes = (
            f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
        )
        yield Sample("stablehlo.pad", (Type(source, f), Type((), f)), (Type(target, f),), attributes)
    for shapes, dim in JOINED:
        along = sum(s[dim] for s in shapes)
        target = tuple(along if d == dim else n for d, n in enumerate(shapes[0]))
        kinds = tuple(Type(s, f) for s in shapes)
        yield Sample("stablehlo.concatenate", kinds, (Type(target, f),), f"dimension = {dim} : i64")
    for source, dims in REVERSED:
        yield Sample("stablehlo.reverse", (Type(source, f),), (Type(source, f),), f"dimensions = {array(dims)}")


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


def reduce() -> Iterator[Sample]:
    identity = {
        "f32": {"add": "0.0", "multiply": "1.0", "maximum": "0xFF800000", "minimum": "0x7F800000"},
        "i32": {"add": "0", "multiply": "1", "and": "-1", "or": "0",
                "maximum": str(-(2**31)), "minimum": str(2**31 - 1)},
        "ui8": {"add": "0", "maximum": "0", "minimum": "255", "and": "255", "or": "0"},
        "i8": {"maximum": "-128", "minimum": "127"},
        "i1": {"and": "true", "or": "false", "maximum": "false", "minimum": "true", "add": "false"},
        "bf16": {"add": "0.0", "maximum": "0xFF80"},
        "f64": {"minimum": "0x7FF0000000000000"},
        "complex<f32>": {"add": "(0.0, 0.0)", "multiply": "(1.0, 0.0)"},
    }  # fmt: skip
    for element, inits in identity.items():
        for op, init in inits.items():
            yield _reduce(element, op, init, EVEN, (1,))
            yield _reduce(element, op, init, ODD, (0,))
    yield _reduce("f32", "add", "0.0", (4, 6), (0, 1))
    yield _reduce("f32", "maximum", "0xFF800000", (4, 3, 6), (0, 2))
    yield _reduce("f32", "add", "0.0", EVEN, ())
    for op, init in (("add", "1.0"), ("add", "-0.0"), ("maximum", "0.0"), ("multiply", "2.0"), ("subtract", "0.0")):
        yield _reduce("f32", op, init, EVEN, (1,))


def _reduce(element: str, op: str, init: str, shape_: tuple[int, ...], dims: tuple[int, ...]) -> Sample:
    scalar = Type((), element)
    data = {}
    if element == "i1":  # nearly all the combiner's identity, so that a part seldom tells the whole
        identity = op in ("and", "minimum")
        data[0] = np.full(shape_, identity)
        data[0][0, 0] = data[0][-1, -1] = not identity
    elif op in ("maximum", "minimum"):  # all different, so that no part tells the whole
        count = int(np.prod(shape_))
        data[0] = np.asarray(np.arange(count) * 7 % count, DTYPES[element]).reshape(shape_)
    target = tuple(n for d, n in enumerate(shape_) if d not in dims)
    return Sample(
        "stablehlo.reduce", (Type(shape_, element),), (Type(target, element),), f"dimensions = {array(dims)}",
        body(element, op), f"%init = stablehlo.constant dense<{init}> : {scalar}", ("%init",), (str(scalar),),
        data=data, note=f"{op} from {init}", interpreted=element in ("f32", "i32", "i1"),
    )  # fmt: skip


def indexing() -> Iterator[Sample]:
    f, i = "f32", Type((), "i32")
    for shape_, sizes, starts in (
        (EVEN, (4, 2), (0, 3)), (EVEN, (2, 6), (3, 1)), (ODD, (5, 3), (2, 2)), (EVEN, (1, 1), (2, 5)),
        ((8,), (3,), (9,)),
    ):  # fmt: skip
        yield Sample(
            "stablehlo.dynamic_slice", (Type(shape_, f), *(i for _ in sizes)), (Type(sizes, f),),
            f"slice_sizes = {array(sizes)}", data=_starts(1, starts),
        )  # fmt: skip
        yield Sample(
            "stablehlo.dynamic_update_slice", (Type(shape_, f), Type(sizes, f), *(i for _ in sizes)),
            (Type(shape_, f),), data=_starts(2, starts),
        )  # fmt: skip
    for shape_ in (EVEN, ODD):
        for dim in (0, 1):
            kind, attributes = Type(shape_, f), f"dimension = {dim} : i64, is_stable = true"
            yield Sample("stablehlo.sort", (kind,), (kind,), attributes, comparator([f]))
            pair = (Type(shape_, "i32"), kind)
            yield Sample("stablehlo.sort", pair, pair, attributes, comparator(["i32", f]))


def _starts(first: int, starts: tuple[int, ...]) -> dict[int, Any]:
    return {first + k: np.int32(s) for k, s in enumerate(starts)}


def is_float(sample: Sample) -> bool:
    """Whether results may differ in the last digits."""
    return any(t.element in FLOATS or t.element.startswith("complex") for t in sample.results)


def families() -> dict[str, Callable[[], Iterator[Sample]]]:
    """Family -> its samples."""
    import rule_samples_indexing as more
    import rule_samples_linalg as linalg
    import rule_samples_windows as windows

    return {
        "elementwise": elementwise, "source": source, "shape": shape, "dot": dot, "reduce": reduce,
        "indexing": indexing, "window": windows.windows, "convolution": windows.convolution, "gather": windows.gather,
        "scatter": windows.scatter, "select_and_scatter": windows.select_and_scatter, **more.families(),
        **linalg.families(),
    }  # fmt: skip


def samples(family: str | None = None) -> list[Sample]:
    """All samples, or those of one family."""
    return [s for name, make in families().items() if family in (None, name) for s in make()]
