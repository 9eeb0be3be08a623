"""Random ops that combine elements of a dimension: products, reductions, sorts."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tools.fuzz.maker import LARGEST, Emitter, Maker, Unsuited
from tools.stablehlo_text import array, body, comparator, fits, identity_of, is_number, literal
from tools.values import FLOATS, INTEGERS, Fact, Type


def dot_general(make: Maker) -> None:
    left = make.pick(lambda f: len(f.type.shape) > 0 and f.type.element != "i1")
    a, rng = make.facts[left], make.rng
    right = make.pick(lambda f: f.type.element == a.type.element and len(f.type.shape) > 0)
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
    if prod(shape) > LARGEST or not fits(a.type.element, bound):
        raise Unsuited
    numbers = ", ".join(
        f"{side}_{kind}_dimensions = [{', '.join(str(p[k]) for p in rows)}]"
        for kind, rows in (("batching", batch), ("contracting", contract))
        for k, side in enumerate(("lhs", "rhs"))
        if rows
    )
    result = Fact(Type(tuple(shape), a.type.element), bound, a.exact and b.exact)
    make.add("stablehlo.dot_general", [left, right], [result], f"dot_dimension_numbers = #stablehlo.dot<{numbers}>")


def old_dot(make: Maker) -> None:
    """dot and einsum, which dot_general replaced."""
    rng = make.rng
    left = make.pick(lambda f: len(f.type.shape) == 2 and f.type.element == "f32" and f.type.count > 0)
    a = make.facts[left]
    size = a.type.shape[1]
    right = make.find(lambda f: f.type.element == "f32" and len(f.type.shape) == 2 and f.type.shape[0] == size)
    right = make.counted((size, rng.choice((2, 3, 4)))) if right is None else right
    b = make.facts[right]
    bound = a.bound * b.bound * size
    if not fits("f32", bound) or b.type.count == 0:
        raise Unsuited
    result = Fact(Type((a.type.shape[0], b.type.shape[1]), "f32"), bound, a.exact and b.exact)
    name, attributes = rng.choice((("dot", ""), ("einsum", 'einsum_config = "ab,bc->ac"')))
    make.add(f"stablehlo.{name}", [left, right], [result], attributes)


# ---------------------------------------------------------------- reductions


def reduce(make: Maker) -> None:
    at = make.pick(lambda f: len(f.type.shape) > 0)
    fact, rng = make.facts[at], make.rng
    element = fact.type.element
    dims = [d for d in range(len(fact.type.shape)) if rng.random() < 0.6]
    ops = ["and", "or"] if element == "i1" else ["add"]
    if is_number(element):
        ops += ["maximum", "minimum", "add"]
    if element in INTEGERS:
        ops += ["and", "or", "multiply", "xor"]
    op = rng.choice(ops)
    depth = prod(fact.type.shape[d] for d in dims)
    bound = fact.bound * max(1, depth) + 1 if op == "add" else fact.bound
    if not fits(element, bound) or (fact.type.count == 0 and op in ("maximum", "minimum")):
        raise Unsuited
    # where starting twice would be seen, only the identity is allowed: how often it is used is not specified
    harmless = op not in ("add", "multiply", "xor") and rng.random() < 0.3
    start = literal(element, 1) if harmless else identity_of(op, element)
    init = make.constant(element, start, bound=1)
    shape = tuple(n for d, n in enumerate(fact.type.shape) if d not in dims)
    result = Fact(Type(shape, element), bound, fact.exact)
    make.add("stablehlo.reduce", [at, init], [result], f"dimensions = {array(dims)}", body(element, op))


# reducers of a user's own, and what they leave as it is: T is the scalar type
OWN = (
    ("%m = stablehlo.multiply %p, %q : T %s = stablehlo.add %p, %q : T %r = stablehlo.add %m, %s : T", 0),
    ("%n = stablehlo.negate %q : T %r = stablehlo.subtract %p, %n : T", 0),
    ("%t = stablehlo.compare GE, %p, %q : (T, T) -> tensor<i1> %r = stablehlo.select %t, %p, %q : tensor<i1>, T", -4),
)


def reduce_own(make: Maker) -> None:
    """With a combiner that is more than one op; integers, so that any order gives the same."""
    at = make.pick(lambda f: len(f.type.shape) > 0 and f.type.element == "i32" and f.bound <= 3)
    fact, rng = make.facts[at], make.rng
    text, start = rng.choice(OWN)
    dims = [d for d in range(len(fact.type.shape)) if rng.random() < 0.6] or [0]
    shape = tuple(n for d, n in enumerate(fact.type.shape) if d not in dims)
    t = "tensor<i32>"
    region = f"{{ ^bb0(%p: {t}, %q: {t}): {text.replace('T', t)} stablehlo.return %r : {t} }}"
    region = region.replace(f"{t}ensor", "tensor")
    result = Fact(Type(shape, "i32"), 2.0**31 if start == 0 else 4)
    init = make.constant("i32", str(start))
    make.add("stablehlo.reduce", [at, init], [result], f"dimensions = {array(dims)}", region)


def reduce_pair(make: Maker) -> None:
    """Two values at once, each with a combiner of its own."""
    at = make.pick(lambda f: len(f.type.shape) > 0 and f.type.element in ("f32", "i32") and f.type.count > 0)
    a = make.facts[at]
    other = make.pick(lambda f: f.type.shape == a.type.shape and f.type.element in ("f32", "i32"))
    b, rng = make.facts[other], make.rng
    dims = [d for d in range(len(a.type.shape)) if rng.random() < 0.6] or [0]
    depth = prod(a.type.shape[d] for d in dims)
    if not fits(a.type.element, a.bound * depth):
        raise Unsuited
    t, u = f"tensor<{a.type.element}>", f"tensor<{b.type.element}>"
    region = (
        f"{{ ^bb0(%p: {t}, %i: {u}, %q: {t}, %j: {u}): %r = stablehlo.add %p, %q : {t} "
        f"%m = stablehlo.maximum %i, %j : {u} stablehlo.return %r, %m : {t}, {u} }}"
    )
    inits = [make.constant(a.type.element, literal(a.type.element, 0)),
             make.constant(b.type.element, identity_of("maximum", b.type.element))]  # fmt: skip
    shape = tuple(n for d, n in enumerate(a.type.shape) if d not in dims)
    results = [replace(a, type=Type(shape, a.type.element), bound=a.bound * depth),
               replace(b, type=Type(shape, b.type.element))]  # fmt: skip
    make.add("stablehlo.reduce", [at, other, *inits], results, f"dimensions = {array(dims)}", region)


def argmax(make: Maker) -> None:
    """A reduction of values and places, as jnp.argmax makes it."""
    at = make.pick(
        lambda f: len(f.type.shape) > 0 and f.type.element in ("f32", "i32") and f.exact and f.type.count > 0
    )
    fact = make.facts[at]
    e, dim = fact.type.element, make.rng.randrange(len(fact.type.shape))
    place = Fact(Type(fact.type.shape, "i32"), fact.type.shape[dim])
    places = make.add("stablehlo.iota", (), [place], f"iota_dimension = {dim} : i64")
    inits = [make.constant(e, identity_of("maximum", e)), make.constant("i32", "0")]
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


# ---------------------------------------------------------------- order


def sort(make: Maker) -> None:
    """One to three operands, ordered by the first."""
    at = make.pick(lambda f: len(f.type.shape) > 0 and is_number(f.type.element) and f.exact)
    fact = make.facts[at]
    others = [make.find(lambda f: f.type.shape == fact.type.shape) for _ in range(make.rng.choice((0, 0, 1, 2)))]
    operands = [at, *(i for i in others if i is not None)]
    facts = [make.facts[i] for i in operands]
    attributes = f"dimension = {make.rng.randrange(len(fact.type.shape))} : i64, is_stable = true"
    region = comparator([f.type.element for f in facts], make.rng.choice(("LT", "GT")))
    make.add("stablehlo.sort", operands, facts, attributes, region)


def top_k(make: Maker) -> None:
    at = make.pick(
        lambda f: len(f.type.shape) > 0 and f.type.count > 0 and f.exact and f.type.element in (*FLOATS, "i32", "ui8")
    )
    if make.facts[at].type.element in FLOATS:  # it takes 0 for greater than -0
        at = make.elementwise("abs", [at])
    fact = make.facts[at]
    *rows, size = fact.type.shape
    k = make.rng.randint(1, size)
    results = [replace(fact, type=Type((*rows, k), fact.type.element)), Fact(Type((*rows, k), "i32"), size)]
    make.add("chlo.top_k", [at], results, f"k = {k} : i64")


EMITTERS: dict[Emitter, int] = {
    dot_general: 9, old_dot: 1, reduce: 8, reduce_own: 1, reduce_pair: 1, argmax: 2, sort: 2, top_k: 2,
}  # fmt: skip
