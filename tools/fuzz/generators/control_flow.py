"""Random control flow: loops, branches, calls, with bodies of random ops, nested too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.fuzz.maker import DEEPEST, Emitter, Maker, Unsuited
from tools.fuzz.programs import Block, Node
from tools.values import Fact, Type

COUNTER = Fact(Type((), "i32"), 4)


def _inner(make: Maker, captured: Sequence[Fact], arguments: Sequence[Fact]) -> Maker:
    """A maker of a body whose first values are those, with no ops yet."""
    inner = Maker(make.rng, make.mesh, make.inside, make.depth + 1)
    inner.arguments = [(f, "") for f in (*captured, *arguments)]
    return inner


def _closed(inner: Maker, outer: int, returns: Sequence[int]) -> Block:
    """``outer``: how many of the first values come from outside."""
    arguments = tuple(f for f, _ in inner.arguments[outer:])
    return Block(arguments, tuple(inner.nodes), tuple(returns))


def _of_type(inner: Maker, wanted: Fact) -> int:
    """The last value of the type of ``wanted``, no larger and no less exact than it."""
    exact = wanted.exact
    found = [i for i, f in enumerate(inner.facts) if f.type == wanted.type and (f.exact or not exact)]
    at = inner.restricted(found[-1])
    if inner.facts[at].bound > wanted.bound:
        at = next(i for i in found if inner.facts[i].bound <= wanted.bound)
    return at


def _carried(make: Maker, count: int) -> list[int]:
    """Values for a body; nothing that may be anything."""
    found = [make.find(lambda f: f.bound <= 2**20) for _ in range(count)]
    return [i for i in found if i is not None]


def while_(make: Maker) -> None:
    """A few turns; the counter is a value of the body too, as in a scan."""
    picked = _carried(make, make.rng.randint(1, 2))
    if make.depth >= DEEPEST or not picked:
        raise Unsuited
    captured = _carried(make, make.rng.randint(0, 2))
    facts = [replace(make.facts[i], bound=max(3.0, make.facts[i].bound)) for i in picked]
    outside = [make.facts[i] for i in captured]
    start = make.constant("i32", "0", bound=0)
    turns = make.rng.randint(0, 3)
    inner = _inner(make, outside, [COUNTER, *facts])
    counter = len(outside)
    one = _plain(inner, "stablehlo.constant", (), COUNTER, "value = dense<1> : tensor<i32>")
    following = _plain(inner, "stablehlo.add", (counter, one), COUNTER)
    inner.grow(inner.rng.randint(1, 4))
    returns = [following, *(_of_type(inner, f) for f in facts)]
    body = _closed(inner, len(outside), returns)
    asks = _inner(make, outside, [COUNTER, *facts])
    limit = _plain(asks, "stablehlo.constant", (), COUNTER, f"value = dense<{turns}> : tensor<i32>")
    less = "comparison_direction = #stablehlo<comparison_direction LT>"
    goes_on = _plain(asks, "stablehlo.compare", (counter, limit), Fact(Type((), "i1"), 1), less)
    condition = _closed(asks, len(outside), [goes_on])
    make.add(
        "stablehlo.while", [start, *picked], [COUNTER, *facts], captured=captured, blocks=[condition, body]
    )  # fmt: skip


def _plain(make: Maker, name: str, operands: tuple[int, ...], fact: Fact, attributes: str = "") -> int:
    """An op that is never annotated."""
    return make.append(Node(name, operands, (fact,), attributes))


def branch(make: Maker) -> None:
    """``if`` or ``case``: every branch gives values of the same types, made of values from outside."""
    captured = _carried(make, make.rng.randint(1, 3))
    if make.depth >= DEEPEST or not captured:
        raise Unsuited
    rng = make.rng
    outside = [make.facts[i] for i in captured]
    given = [outside[k] for k in sorted(rng.sample(range(len(outside)), rng.randint(1, len(outside))))]
    given = [replace(f, bound=max(3.0, f.bound)) for f in given]
    chosen = make.find(lambda f: f.type == Type((), "i1") and f.exact)
    name, count = "stablehlo.if", 2
    if rng.random() < 0.5:
        name, count = "stablehlo.case", rng.randint(1, 3)
        chosen = make.find(lambda f: f.type == Type((), "i32") and f.exact)
        if chosen is None:
            chosen = make.constant("i32", str(rng.randint(-1, 3)))
    elif chosen is None:
        chosen = make.constant("i1", rng.choice(("true", "false")), bound=1)
    blocks = []
    for _ in range(count):
        inner = _inner(make, outside, [])
        inner.grow(inner.rng.randint(1, 3))
        blocks.append(_closed(inner, len(outside), [_of_type(inner, f) for f in given]))
    make.add(name, [chosen], given, captured=captured, blocks=blocks)


def call(make: Maker) -> None:
    """A function, called once or twice, or as the composite's decomposition."""
    picked = _carried(make, make.rng.randint(1, 2))
    if make.depth >= DEEPEST or not picked:
        raise Unsuited
    rng, facts = make.rng, [make.facts[i] for i in picked]
    inner = _inner(make, [], facts)
    inner.grow(inner.rng.randint(1, 4))
    wanted = replace(facts[0], bound=max(3.0, facts[0].bound))
    block = _closed(inner, 0, [_of_type(inner, wanted)])
    if rng.random() < 0.4:
        attributes = 'name = "fuzz.part", composite_attributes = {}, version = 1 : i32'
        make.add("stablehlo.composite", picked, [wanted], attributes, blocks=[block])
        return
    make.add("func.call", picked, [wanted], blocks=[block])
    if rng.random() < 0.5:
        other = [make.partner(i) for i in picked]
        alike = all(make.facts[i].bound <= f.bound and make.facts[i].exact for i, f in zip(other, facts, strict=True))
        if alike:
            make.add("func.call", other, [wanted], blocks=[block])


EMITTERS: dict[Emitter, int] = {while_: 3, branch: 3, call: 2}
