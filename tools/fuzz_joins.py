"""Random ops that join or pick elements: dot_general, reduce, sort, windows, gather, scatter, control flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from fuzz_ops import LARGEST, Maker, array, literal
from fuzz_programs import EXACT, FLOATS, INTEGERS, Fact, Type


def body(element: str, op: str) -> str:
    """A region of two scalars that applies ``op``."""
    t = f"tensor<{element}>"
    return (
        f'{{ ^bb0(%p: {t}, %q: {t}): %r = "stablehlo.{op}"(%p, %q) : ({t}, {t}) -> {t} '
        f'"stablehlo.return"(%r) : ({t}) -> () }}'
    )


def less_than(elements: list[str]) -> str:
    """A comparator over as many pairs as there are elements, by the first."""
    pairs = [f"%p{i}{side}: tensor<{e}>" for i, e in enumerate(elements) for side in "ab"]
    t = f"tensor<{elements[0]}>"
    return (
        f'{{ ^bb0({", ".join(pairs)}): %r = "stablehlo.compare"(%p0a, %p0b) '
        f"{{comparison_direction = #stablehlo<comparison_direction LT>}} : ({t}, {t}) -> tensor<i1> "
        '"stablehlo.return"(%r) : (tensor<i1>) -> () }'
    )


def dot_general(make: Maker) -> bool:
    left = make.pick(lambda f: len(f.type.shape) > 0 and f.type.element != "i1")
    if left is None:
        return False
    a, rng = make.facts[left], make.rng
    right = make.pick(lambda f: f.type.element == a.type.element and len(f.type.shape) > 0)
    if right is None:
        return False
    b = make.facts[right]
    pairs, taken = [], set()
    for i, size in enumerate(a.type.shape):
        same = [j for j, other in enumerate(b.type.shape) if other == size and j not in taken]
        if same and rng.random() < 0.8:
            pairs.append((i, rng.choice(same)))
            taken.add(pairs[-1][1])
    batch = [p for p in pairs if rng.random() < 0.35]
    contract = [p for p in pairs if p not in batch]
    depth = prod(a.type.shape[i] for i, _ in contract)
    bound = a.bound * b.bound * max(1, depth) * (2 if a.type.element.startswith("complex") else 1)
    shape = [a.type.shape[i] for i, _ in batch]
    for fact, side in ((a, 0), (b, 1)):
        shape += [n for d, n in enumerate(fact.type.shape) if d not in [p[side] for p in pairs]]
    if prod(shape) > LARGEST or bound > EXACT.get(a.type.element, float("inf")):
        return False
    numbers = ", ".join(
        f"{side}_{kind}_dimensions = [{', '.join(str(p[k]) for p in rows)}]"
        for kind, rows in (("batching", batch), ("contracting", contract))
        for k, side in enumerate(("lhs", "rhs"))
        if rows
    )
    result = Fact(Type(tuple(shape), a.type.element), bound, a.exact and b.exact)
    make.add("stablehlo.dot_general", [left, right], [result], f"dot_dimension_numbers = #stablehlo.dot<{numbers}>")
    return True


def _identity(op: str, element: str) -> str:
    if op in ("add", "or"):
        return literal(element, 0)
    if op == "multiply" or element == "i1":
        return literal(element, 1)
    if op == "and":
        return "-1" if not element.startswith("ui") else str(2 ** int(element[2:]) - 1)
    if element in INTEGERS:
        bits, unsigned = int(element.lstrip("ui")), element.startswith("ui")
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return str(low if op == "maximum" else high)
    infinite = {"f32": "7F800000", "f64": "7FF0000000000000", "bf16": "7F80", "f16": "7C00"}[element]
    return "0x" + (infinite if op == "minimum" else f"F{infinite[1:]}")


def reduce(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
    fact, rng = make.facts[at], make.rng
    element = fact.type.element
    dims = [d for d in range(len(fact.type.shape)) if rng.random() < 0.6]
    ops = ["and", "or"] if element == "i1" else ["add"]
    if element in (*FLOATS, *INTEGERS):
        ops += ["maximum", "minimum", "add"]
    if element in INTEGERS:
        ops += ["and", "or", "multiply"]
    op = rng.choice(ops)
    depth = prod(fact.type.shape[d] for d in dims)
    bound = fact.bound * max(1, depth) + 1 if op == "add" else fact.bound
    if bound > EXACT.get(element, float("inf")) or (prod(fact.type.shape) == 0 and op in ("maximum", "minimum")):
        return False
    # where starting twice would be seen, only the identity is allowed: how often it is used is not specified
    start = _identity(op, element) if op in ("add", "multiply") or rng.random() < 0.7 else literal(element, 1)
    init = make.constant(element, start, bound=1)
    shape = tuple(n for d, n in enumerate(fact.type.shape) if d not in dims)
    result = Fact(Type(shape, element), bound, fact.exact)
    make.add("stablehlo.reduce", [at, init], [result], f"dimensions = {array(dims)}", body(element, op))
    return True


def argmax(make: Maker) -> bool:
    """A reduction of values and places, as jnp.argmax makes it."""
    at = make.pick(
        lambda f: len(f.type.shape) > 0 and f.type.element in ("f32", "i32") and f.exact and f.type.count > 0
    )
    if at is None:
        return False
    fact = make.facts[at]
    e, dim = fact.type.element, make.rng.randrange(len(fact.type.shape))
    place = Fact(Type(fact.type.shape, "i32"), fact.type.shape[dim])
    places = make.add("stablehlo.iota", (), [place], f"iota_dimension = {dim} : i64")
    inits = [make.constant(e, _identity("maximum", e)), make.constant("i32", "0")]
    v, i, p = f"tensor<{e}>", "tensor<i32>", "tensor<i1>"
    region = (
        f"{{ ^bb0(%v: {v}, %i: {i}, %w: {v}, %j: {i}): "
        f"%g = stablehlo.compare GT, %v, %w : ({v}, {v}) -> {p} %e = stablehlo.compare EQ, %v, %w : ({v}, {v}) -> {p} "
        f"%l = stablehlo.compare LT, %i, %j : ({i}, {i}) -> {p} %b = stablehlo.and %e, %l : {p} "
        f"%t = stablehlo.or %g, %b : {p} %x = stablehlo.select %g, %v, %w : {p}, {v} "
        f"%y = stablehlo.select %t, %i, %j : {p}, {i} stablehlo.return %x, %y : {v}, {i} }}"
    )
    shape = tuple(n for d, n in enumerate(fact.type.shape) if d != dim)
    results = [replace(fact, type=Type(shape, e)), replace(place, type=Type(shape, "i32"))]
    make.add("stablehlo.reduce", [at, places, *inits], results, f"dimensions = {array([dim])}", region)
    return True


def sort(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0 and f.type.element in (*FLOATS, *INTEGERS) and f.exact)
    if at is None:
        return False
    fact = make.facts[at]
    operands = [at]
    if make.rng.random() < 0.5:
        other = make.pick(lambda f: f.type.shape == fact.type.shape)
        operands += [] if other is None else [other]
    facts = [make.facts[i] for i in operands]
    attributes = f"dimension = {make.rng.randrange(len(fact.type.shape))} : i64, is_stable = true"
    make.add("stablehlo.sort", operands, facts, attributes, less_than([f.type.element for f in facts]))
    return True


def _index(make: Maker, element: str) -> int:
    """A scalar index: out of range at times, as it is clamped then."""
    at = make.pick(lambda f: f.type == Type((), element))
    if at is not None and make.rng.random() < 0.4:
        return at
    return make.constant(element, str(make.rng.randint(-1, 9)), bound=9)


def dynamic_slice(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
    fact, rng = make.facts[at], make.rng
    shape = tuple(n if n == 0 or rng.random() < 0.5 else rng.randint(1, n) for n in fact.type.shape)
    element = rng.choice(("i32", "i64"))
    indices = [_index(make, element) for _ in shape]
    result = replace(fact, type=Type(shape, fact.type.element))
    make.add("stablehlo.dynamic_slice", [at, *indices], [result], f"slice_sizes = {array(shape)}")
    return True


def dynamic_update_slice(make: Maker) -> bool:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    if at is None:
        return False
    fact = make.facts[at]

    def fits(other: Fact) -> bool:
        a, b = fact.type, other.type
        return (
            a.element == b.element
            and len(a.shape) == len(b.shape)
            and all(m <= n for n, m in zip(a.shape, b.shape, strict=True))
        )

    update = make.pick(fits)
    assert update is not None  # the value itself fits
    other = make.facts[update]
    indices = [_index(make, "i32") for _ in fact.type.shape]
    result = Fact(fact.type, max(fact.bound, other.bound), fact.exact and other.exact)
    make.add("stablehlo.dynamic_update_slice", [at, update, *indices], [result])
    return True


def take(make: Maker) -> bool:
    """Rows of a table by index, as an embedding does; indices out of range are clamped."""
    at = make.pick(lambda f: len(f.type.shape) == 2 and f.type.count > 0)
    rows = make.pick(lambda f: len(f.type.shape) == 1 and f.type.element == "i32")
    if at is None or rows is None:
        return False
    table, index = make.facts[at], make.facts[rows]
    shape = (*index.type.shape, table.type.shape[1])
    attributes = (
        "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
        f"index_vector_dim = 1>, slice_sizes = array<i64: 1, {table.type.shape[1]}>, indices_are_sorted = false"
    )
    make.add("stablehlo.gather", [at, rows], [replace(table, type=Type(shape, table.type.element))], attributes)
    return True


def put(make: Maker) -> bool:
    """Rows added to a table by index (segment_sum); rows out of range are dropped."""
    at = make.pick(lambda f: len(f.type.shape) == 2 and f.type.element in ("i32", "f32", "f64"))
    if at is None:
        return False
    table = make.facts[at]
    t = table.type
    updates = make.pick(
        lambda f: f.type.element == t.element and f.type.shape[1:] == t.shape[1:] and len(f.type.shape) == 2
    )
    if updates is None:
        return False
    more = make.facts[updates]
    count = more.type.shape[0]
    rows = make.pick(lambda f: f.type == Type((count,), "i32"))
    if rows is None:
        rows = make.add("stablehlo.iota", (), [Fact(Type((count,), "i32"), count)], "iota_dimension = 0 : i64")
    bound = table.bound + more.bound * max(1, count)
    if bound > EXACT.get(t.element, float("inf")):
        return False
    attributes = (
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false"
    )
    result = Fact(t, bound, table.exact and more.exact)
    op = make.rng.choice(("add", "add", "maximum", "minimum"))
    make.add("stablehlo.scatter", [at, rows, updates], [result], attributes, body(t.element, op))
    return True


def window(make: Maker) -> bool:
    """reduce_window: a cumulative sum, or a pooling with strides and padding."""
    at = make.pick(lambda f: 0 < len(f.type.shape) < 4 and f.type.element in ("f32", "i32") and f.type.count > 0)
    if at is None:
        return False
    fact, rng = make.facts[at], make.rng
    rank, dim = len(fact.type.shape), rng.randrange(len(fact.type.shape))
    size = fact.type.shape[dim]
    sizes, strides, padding = [1] * rank, [1] * rank, [(0, 0)] * rank
    op = rng.choice(("add", "maximum"))
    if rng.random() < 0.5:
        sizes[dim], padding[dim] = size, (size - 1, 0)
    else:
        sizes[dim], strides[dim], padding[dim] = rng.randint(1, size), rng.choice((1, 2)), (rng.randint(0, 1), 1)
    bound = fact.bound * sizes[dim] + 1 if op == "add" else fact.bound
    if bound > EXACT.get(fact.type.element, float("inf")):
        return False
    shape = tuple(
        (n + lo + hi - s) // stride + 1
        for n, s, stride, (lo, hi) in zip(fact.type.shape, sizes, strides, padding, strict=True)
    )
    init = make.constant(fact.type.element, _identity(op, fact.type.element))
    rows = ", ".join(f"[{lo}, {hi}]" for lo, hi in padding)
    attributes = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, "
        f"padding = dense<[{rows}]> : tensor<{rank}x2xi64>"
    )
    result = Fact(Type(shape, fact.type.element), bound, fact.exact)
    make.add("stablehlo.reduce_window", [at, init], [result], attributes, body(fact.type.element, op))
    return True


def loop(make: Maker) -> bool:
    """A while loop that adds a value from outside to the carried one, a few times."""
    at = make.pick(lambda f: f.type.element in ("f32", "i32", "f64"))
    if at is None:
        return False
    start, carried = make.facts[at], f"{make.facts[at].type}"
    other = partner_of(make, at)
    turns = make.rng.randint(0, 3)
    bound = start.bound + 3 * make.facts[other].bound
    if bound > EXACT.get(start.type.element, float("inf")):
        return False
    count = make.constant("i32", "0")
    i = "tensor<i32>"
    regions = (
        f"{{ ^bb0(%i: {i}, %c: {carried}, %o: {carried}): %n = stablehlo.constant dense<{turns}> : {i} "
        f"%t = stablehlo.compare LT, %i, %n : ({i}, {i}) -> tensor<i1> stablehlo.return %t : tensor<i1> }}, "
        f"{{ ^bb0(%i: {i}, %c: {carried}, %o: {carried}): %s = stablehlo.constant dense<1> : {i} "
        f"%j = stablehlo.add %i, %s : {i} %d = stablehlo.add %c, %o : {carried} "
        f"stablehlo.return %j, %d, %o : {i}, {carried}, {carried} }}"
    )
    exact = start.exact and make.facts[other].exact
    results = [Fact(Type((), "i32")), Fact(start.type, bound, exact), make.facts[other]]
    make.add("stablehlo.while", [count, at, other], results, "", regions)
    return True


def partner_of(make: Maker, at: int) -> int:
    kind = make.facts[at].type
    found = make.pick(lambda f: f.type == kind)
    return at if found is None else found


def branch(make: Maker) -> bool:
    """``if`` whose two sides give two values of one type, or one negated."""
    at = make.pick(lambda f: f.type.element in ("f32", "i32", "f64", "bf16"))
    if at is None:
        return False
    pred = make.pick(lambda f: f.type == Type((), "i1"))
    pred = make.constant("i1", make.rng.choice(("true", "false")), bound=1) if pred is None else pred
    fact = make.facts[at]
    t = fact.type
    regions = "{ %x = stablehlo.negate $0 : T stablehlo.return %x : T }, { stablehlo.return $0 : T }".replace(
        "T", str(t)
    )
    make.add("stablehlo.if", [pred], [fact], "", regions, [at])
    return True


def random_bits(make: Maker) -> bool:
    """Threefry: the numbers must be those of one device."""
    shape = make.shape(make.rng.randint(1, 2))
    if prod(shape) == 0:
        return False
    state = make.constant("ui64", f"[{make.rng.randint(0, 99)}, 7]", (2,))
    results = [Fact(Type((2,), "ui64")), Fact(Type(shape, make.rng.choice(("ui32", "ui8", "ui64"))))]
    algorithm = make.rng.choice(("THREE_FRY", "PHILOX", "DEFAULT"))
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    make.add("stablehlo.rng_bit_generator", [state], results, attributes)
    return True


def convolution(make: Maker) -> bool:
    """One spatial dimension, with groups, stride, padding and dilations."""
    rng = make.rng
    image = make.pick(lambda f: len(f.type.shape) == 3 and f.type.element == "f32" and 0 not in f.type.shape)
    if image is None:
        image = _counted(make, (rng.choice((1, 2, 4)), rng.choice((1, 2, 4)), rng.choice((5, 6, 8))))
    fact = make.facts[image]
    batch, features, width = fact.type.shape
    groups = rng.choice([g for g in (1, 1, 2, 3) if features % g == 0])
    size, out = rng.randint(1, min(4, width)), groups * rng.choice((1, 2, 4))
    weights = _counted(make, (out, features // groups, size))
    stride, low, high = rng.choice((1, 1, 2)), rng.randint(0, 2), rng.randint(0, 2)
    base, dilation = rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
    bound = fact.bound * make.facts[weights].bound * features * size
    length = ((width - 1) * base + 1 + low + high - ((size - 1) * dilation + 1)) // stride + 1
    if bound > EXACT["f32"] or length < 1 or batch * out * length > LARGEST:
        return False
    attributes = (
        "dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, batch_group_count = 1 : i64, "
        f"feature_group_count = {groups} : i64, window_strides = array<i64: {stride}>, "
        f"padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>, lhs_dilation = array<i64: {base}>, "
        f"rhs_dilation = array<i64: {dilation}>"
    )
    result = Fact(Type((batch, out, length), "f32"), bound, fact.exact)
    make.add("stablehlo.convolution", [image, weights], [result], attributes)
    return True


def _counted(make: Maker, shape: tuple[int, ...]) -> int:
    """A new value of small integers."""
    dim = f"iota_dimension = {make.rng.randrange(len(shape))} : i64"
    return make.add("stablehlo.iota", (), [Fact(Type(shape, "f32"), max(shape))], dim)


def pooling_gradient(make: Maker) -> bool:
    """select_and_scatter along one dimension: each source element goes to the greatest of its window."""
    at = make.pick(lambda f: 0 < len(f.type.shape) < 4 and f.type.element == "f32" and f.type.count > 0 and f.exact)
    if at is None:
        return False
    fact, rng = make.facts[at], make.rng
    rank, dim = len(fact.type.shape), rng.randrange(len(fact.type.shape))
    size = fact.type.shape[dim]
    window, stride = rng.randint(1, min(3, size)), rng.choice((1, 2))
    shape = tuple((n - window) // stride + 1 if d == dim else n for d, n in enumerate(fact.type.shape))
    source = _counted(make, shape)
    bound = make.facts[source].bound * window + 1
    sizes = [window if d == dim else 1 for d in range(rank)]
    strides = [stride if d == dim else 1 for d in range(rank)]
    t, p = "tensor<f32>", "tensor<i1>"
    pick = (
        f"{{ ^bb0(%p: {t}, %q: {t}): %r = stablehlo.compare GE, %p, %q : ({t}, {t}) -> {p} stablehlo.return %r : {p} }}"
    )
    attributes = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, "
        f"padding = dense<0> : tensor<{rank}x2xi64>"
    )
    operands = [at, source, make.constant("f32", "0.0")]
    result = Fact(fact.type, bound, make.facts[source].exact)
    make.add("stablehlo.select_and_scatter", operands, [result], attributes, f"{pick}, {body('f32', 'add')}")
    return True


JOINS: dict[Callable[[Maker], bool], int] = {
    dot_general: 9, reduce: 9, argmax: 2, sort: 2, dynamic_slice: 3, dynamic_update_slice: 3, take: 3, put: 3,
    window: 4, loop: 1, branch: 1, random_bits: 1, convolution: 3, pooling_gradient: 2,
}  # fmt: skip
