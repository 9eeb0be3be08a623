"""Random ops on windows: cumulative sums, pooling and its gradient, convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tools.fuzz.maker import LARGEST, Emitter, Maker, Unsuited
from tools.stablehlo_text import array, body, fits, identity_of
from tools.values import Fact, Type


def _spans(size: int, window: int, stride: int, low: int, high: int, base: int = 1, dilation: int = 1) -> int:
    """How many windows there are."""
    full = (max(0, size - 1) * base + 1 if size else 0) + low + high
    return max(0, (full - ((window - 1) * dilation + 1)) // stride + 1)


def _rows(padding: Sequence[tuple[int, int]]) -> str:
    said = ", ".join(f"[{low}, {high}]" for low, high in padding)
    return f"padding = dense<[{said}]> : tensor<{len(padding)}x2xi64>"


def scan(make: Maker) -> None:
    """reduce_window as a cumulative op, forwards or backwards."""
    at = make.pick(lambda f: 0 < len(f.type.shape) < 4 and f.type.element in ("f32", "i32") and f.type.count > 0)
    fact, rng = make.facts[at], make.rng
    dim = rng.randrange(len(fact.type.shape))
    size = fact.type.shape[dim]
    ends = rng.choice(((size - 1, 0), (0, size - 1)))
    rows = [((size, 1, ends, 1, 1) if d == dim else (1, 1, (0, 0), 1, 1)) for d in range(len(fact.type.shape))]
    _window(make, at, rows)


def pooling(make: Maker) -> None:
    """reduce_window along one or two dimensions, with strides, padding and dilations."""
    at = make.pick(
        lambda f: 0 < len(f.type.shape) < 4 and f.type.element in ("f32", "i32", "bf16") and f.type.count > 0
    )
    fact, rng = make.facts[at], make.rng
    rank = len(fact.type.shape)
    chosen = rng.sample(range(rank), min(rank, rng.choice((1, 1, 2))))
    rows = []
    for dim, size in enumerate(fact.type.shape):
        if dim in chosen:
            pads = (rng.randint(-1 if size > 2 else 0, 2), rng.randint(0, 2))
            rows.append((rng.randint(1, min(size, 4)), rng.choice((1, 1, 2, 3)), pads,
                         rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 1, 2))))  # fmt: skip
        else:
            rows.append((1, 1, (0, 0), 1, 1))
    _window(make, at, rows)


def _window(make: Maker, at: int, rows: Sequence[tuple[int, int, tuple[int, int], int, int]]) -> None:
    """``rows``: window, stride, padding, base dilation, window dilation of each dimension."""
    fact, rng = make.facts[at], make.rng
    pads = [side for _, _, padding, _, _ in rows for side in padding]
    if min(pads) < 0 and max(pads) == 0 and all((w, s, b, d) == (1, 1, 1, 1) for w, s, _, b, d in rows):
        raise Unsuited
    element = fact.type.element
    op = rng.choice(("add", "maximum", "minimum"))
    bound = fact.bound * prod(w for w, *_ in rows) + 1 if op == "add" else fact.bound
    shape = tuple(_spans(n, w, s, *p, b, d) for n, (w, s, p, b, d) in zip(fact.type.shape, rows, strict=True))
    if not fits(element, bound) or 0 in shape:
        raise Unsuited
    init = make.constant(element, identity_of(op, element))
    attributes = (
        f"window_dimensions = {array([r[0] for r in rows])}, window_strides = {array([r[1] for r in rows])}, "
        f"{_rows([r[2] for r in rows])}, base_dilations = {array([r[3] for r in rows])}, "
        f"window_dilations = {array([r[4] for r in rows])}"
    )
    # a window that sees only padding gives the initial value, which no bound holds
    result = Fact(Type(shape, element), bound if op == "add" else float("inf"), fact.exact)
    made = make.add("stablehlo.reduce_window", [at, init], [result], attributes, body(element, op))
    if op != "add" and element != "i32":
        _finite(make, made, fact.bound)


def _finite(make: Maker, at: int, bound: float) -> int:
    """Infinities become the greatest number there is otherwise."""
    fact = make.facts[at]
    limits = [make.constant(fact.type.element, f"{sign}{int(bound)}.0", bound=bound) for sign in ("-", "")]
    return make.add("stablehlo.clamp", [limits[0], at, limits[1]], [replace(fact, bound=bound)])


def convolution(make: Maker) -> None:
    """One or two spatial dimensions, with groups, strides, padding and dilations."""
    rng = make.rng
    image = make.find(lambda f: len(f.type.shape) in (3, 4) and f.type.element == "f32" and 0 not in f.type.shape)
    if image is None or rng.random() < 0.3:
        spatial = [rng.choice((4, 5, 6, 8)) for _ in range(rng.choice((1, 2)))]
        image = make.counted((rng.choice((1, 2, 4)), rng.choice((1, 2, 4)), *spatial))
    fact = make.facts[image]
    batch, features, *sizes = fact.type.shape
    groups = rng.choice([g for g in (1, 1, 2, 3) if features % g == 0])
    batches = rng.choice([g for g in (1, 1, 1, 2) if batch % g == 0]) if groups == 1 else 1
    out = groups * batches * rng.choice((1, 2, 4))
    rows = []
    for size in sizes:
        window = rng.randint(1, min(4, size))
        pads = (rng.randint(-1 if size > 3 else 0, 2), rng.randint(0, 2))
        rows.append((window, rng.choice((1, 1, 2)), pads, rng.choice((1, 1, 2)), rng.choice((1, 1, 2))))
    weights = make.counted((out, features // groups, *(r[0] for r in rows)))
    bound = fact.bound * make.facts[weights].bound * features * prod(r[0] for r in rows)
    lengths = tuple(_spans(n, w, s, *p, b, d) for n, (w, s, p, b, d) in zip(sizes, rows, strict=True))
    shape = (batch // batches, out, *lengths)
    if not fits("f32", bound) or prod(shape) > LARGEST or 0 in shape:
        raise Unsuited
    places = ", ".join(map(str, range(len(sizes))))
    attributes = (
        f"dimension_numbers = #stablehlo.conv<[b, f, {places}]x[o, i, {places}]->[b, f, {places}]>, "
        f"batch_group_count = {batches} : i64, feature_group_count = {groups} : i64, "
        f"window_strides = {array([r[1] for r in rows])}, {_rows([r[2] for r in rows])}, "
        f"lhs_dilation = {array([r[3] for r in rows])}, rhs_dilation = {array([r[4] for r in rows])}"
    )
    if rng.random() < 0.25:
        turned = [str(rng.random() < 0.5).lower() for _ in sizes]
        attributes += f", window_reversal = array<i1: {', '.join(turned)}>"
    make.add(
        "stablehlo.convolution", [image, weights], [Fact(Type(shape, "f32"), bound, fact.exact)], attributes
    )  # fmt: skip


def pooling_gradient(make: Maker) -> None:
    """select_and_scatter along one dimension: each source element goes to the greatest of its window."""
    at = make.pick(lambda f: 0 < len(f.type.shape) < 4 and f.type.element == "f32" and f.type.count > 0 and f.exact)
    fact, rng = make.facts[at], make.rng
    rank, dim = len(fact.type.shape), rng.randrange(len(fact.type.shape))
    size = fact.type.shape[dim]
    window, stride = rng.randint(1, min(3, size)), rng.choice((1, 2))
    pads = (rng.randint(0, window - 1), rng.randint(0, window - 1)) if rng.random() < 0.4 else (0, 0)
    shape = tuple(_spans(n, window, stride, *pads) if d == dim else n for d, n in enumerate(fact.type.shape))
    if 0 in shape:
        raise Unsuited
    source = make.counted(shape)
    bound = make.facts[source].bound * window + 1
    sizes = [window if d == dim else 1 for d in range(rank)]
    strides = [stride if d == dim else 1 for d in range(rank)]
    t, p = "tensor<f32>", "tensor<i1>"
    pick = (
        f"{{ ^bb0(%p: {t}, %q: {t}): %r = stablehlo.compare GE, %p, %q : ({t}, {t}) -> {p} stablehlo.return %r : {p} }}"
    )
    attributes = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, "
        f"{_rows([pads if d == dim else (0, 0) for d in range(rank)])}"
    )
    operands = [at, source, make.constant("f32", "0.0")]
    result = Fact(fact.type, bound, make.facts[source].exact)
    make.add("stablehlo.select_and_scatter", operands, [result], attributes, f"{pick}, {body('f32', 'add')}")


EMITTERS: dict[Emitter, int] = {scan: 2, pooling: 3, convolution: 4, pooling_gradient: 2}
