"""A random program under construction: emitters pick operands from it and append ops to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from random import Random

from shardpass.sharding import Mesh
from tools.fuzz.programs import Block, Node
from tools.fuzz.random_sharding import random_sharding
from tools.stablehlo_text import literal
from tools.values import Fact, Type

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
ELEMENTS = ("f32",) * 6 + ("i32",) * 4 + ("f64", "bf16", "i1", "i1", "i64", "ui8", "complex<f32>", "f16", "i8", "ui32")
LARGEST = 4096  # elements of a value
DEEPEST = 2  # control flow in control flow


class Unsuited(Exception):
    """An emitter finds no operand of the kind that its op needs."""


class Maker:
    """A program that grows: ``pick`` chooses operands, ``add`` appends an op and returns its first value's index.

    ``inside`` holds the emitters, with their weights, of ops that a body of control flow may hold.
    """

    def __init__(self, rng: Random, mesh: Mesh, inside: Mapping[Emitter, int], depth: int = 0) -> None:
        self.rng, self.mesh, self.inside, self.depth = rng, mesh, inside, depth
        self.arguments: list[tuple[Fact, str]] = []
        self.nodes: list[Node] = []
        self.made: list[Fact] = []
        self.hidden: set[int] = set()  # values that nobody may ``pick``

    @property
    def facts(self) -> list[Fact]:
        return [f for f, _ in self.arguments] + self.made

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3)) if rank is None else rank
        while True:
            sizes = tuple(0 if self.rng.random() < 0.01 else self.rng.choice(SIZES) for _ in range(rank))
            if prod(sizes) <= LARGEST // 4:
                return sizes

    def sharding(self, shape: tuple[int, ...], chance: float) -> str:
        return random_sharding(self.rng, self.mesh, shape) if self.rng.random() < chance else ""

    def pick(self, accept: Callable[[Fact], bool] = lambda fact: True) -> int:
        """Return a value that ``accept`` takes, preferring late values. Raises Unsuited where there is none."""
        found = self.find(accept)
        if found is None:
            raise Unsuited
        return found

    def find(self, accept: Callable[[Fact], bool] = lambda fact: True) -> int | None:
        """Return a value as ``pick``; None where there is none."""
        found = [i for i, fact in enumerate(self.facts) if accept(fact) and i not in self.hidden]
        if not found:
            return None
        late = found[-3:] if self.rng.random() < 0.6 else found
        return self.rng.choice(late)

    def partner(self, at: int) -> int:
        """Another value of the same type; ``at`` itself where there is none."""
        kind = self.facts[at].type
        found = self.find(lambda f: f.type == kind)
        return at if found is None else found

    def grow(self, wanted: int, emitters: Mapping[Emitter, int] | None = None) -> None:
        """Adds ``wanted`` ops of random sorts, and the constants that these need.

        An emitter raises Unsuited where it finds no operand that suits it, so the number of tries is limited.
        """
        chosen = self.inside if emitters is None else emitters
        for _ in range(100):
            if wanted <= 0:
                return
            with suppress(Unsuited):
                self.rng.choices(list(chosen), list(chosen.values()))[0](self)
                wanted -= 1

    def add(
        self,
        name: str,
        operands: Sequence[int],
        results: Sequence[Fact],
        attributes: str = "",
        regions: str = "",
        captured: Sequence[int] = (),
        blocks: Sequence[Block] = (),
    ) -> int:
        one = len(results) == 1 and name not in ("stablehlo.constant", "func.call")
        sharding = self.sharding(results[0].type.shape, 0.12) if one else ""
        return self.append(
            Node(name, tuple(operands), tuple(results), attributes, regions, sharding, tuple(captured), tuple(blocks))
        )

    def append(self, node: Node) -> int:
        first = len(self.facts)
        self.nodes.append(node)
        self.made += node.results
        return first

    def constant(self, element: str, values: str, shape: tuple[int, ...] = (), bound: float = 3) -> int:
        kind = Type(shape, element)
        return self.add("stablehlo.constant", (), [Fact(kind, bound)], f"value = dense<{values}> : {kind}")

    def elementwise(self, name: str, operands: Sequence[int], element: str = "", bound: float | None = None) -> int:
        """An op on operands of one shape; exact where they are."""
        facts = [self.facts[i] for i in operands]
        kind = Type(facts[-1].type.shape, element or facts[-1].type.element)
        most = max(f.bound for f in facts) if bound is None else bound
        return self.add(f"stablehlo.{name}", operands, [Fact(kind, most, all(f.exact for f in facts))])

    def clamped(self, at: int, low: int, high: int) -> int:
        """Elements of value ``at`` between ``low`` and ``high``, in floats and integers."""
        fact = self.facts[at]
        limits = [self.constant(fact.type.element, literal(fact.type.element, n), bound=abs(n)) for n in (low, high)]
        most = float(max(abs(low), abs(high)))
        result = replace(fact, bound=max(most, fact.bound) if fact.bound == float("inf") else most)
        return self.add("stablehlo.clamp", [limits[0], at, limits[1]], [result])

    def counted(self, shape: tuple[int, ...], element: str = "f32") -> int:
        """A new value of small integers."""
        dim = f"iota_dimension = {self.rng.randrange(len(shape))} : i64"
        return self.add("stablehlo.iota", (), [Fact(Type(shape, element), max(1, *shape))], dim)

    def restricted(self, at: int) -> int:
        """Value ``at`` as small as it was at the start of the program, so that ops on it may go on."""
        element = self.facts[at].type.element
        if element.startswith("complex") or element == "i1" or self.facts[at].bound <= 3:
            return at
        return self.clamped(at, 0 if element.startswith("ui") else -3, 3)


Emitter = Callable[[Maker], None]
