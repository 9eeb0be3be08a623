"""Fold a large program into a smaller one: repeated parts, such as the layers of a network, are kept once, with a
count.

Problem: deciding about a program takes time that grows with its ops, and a network of 48 layers has 48 times the same
question. Values that look alike from near by share one decision.

Values are coloured, after Weisfeiler and Leman: at first by what is known of a value itself (its type, what the user
wrote of it, the block and the kind of op that makes it), then ``ROUNDS`` times by the colours around it: operands and
results of the op that makes it, and of the ops that use it. Values of one colour share a representative, the first of
them; ops alike in model, operands' and results' representatives become one op, with the number of ops it stands for.

Invariants:

- Every op of the program has its like in the folded one, with the representatives of its operands and results. So
  shardings of the folded program, given to all values of a colour, meet in the program exactly as they do in it.
- Ops stand in the order of their first, so that what an op uses is made before. A value may be made by several ops
  (layer 1's input by the embedding, layer 2's by layer 1): a folded program is to be propagated and priced, never
  emitted.
- An op whose operands have nothing to do with one another (a barrier) becomes one op for each, so that a change of one
  operand is no matter of the others.
- An op that is neither split by a model nor a constraint (loops, branches, borders, ops computed whole) stands for
  itself; so do results of different sayings. Blocks are folded each by itself.

Example: ``y = tanh(x @ w0) @ w1 ...`` of 12 equal layers on 8 devices: the layers beyond ``ROUNDS`` from either end are
one, whose output is its own input.

Complexity: O(rounds x (values + operands)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain

from shardpass.ops.model import LocalPlan, OpModel, Pointwise
from shardpass.ops.splits.factors import Rule, pair_rules
from shardpass.planning.price.borders import UNTOUCHED, borders, know_borders
from shardpass.program.program import NO_ANNOTATION, Block, Op, OpKind, Program
from shardpass.program.shardings import Shardings

ROUNDS = 3
ALIKE = (OpKind.SPLIT, OpKind.CONSTRAINT)


@dataclass(frozen=True)
class Folded:
    """A folded program, and how it maps to the program that it stands for.

    Attributes:
        of: the representative of each value.
        ops: the op that stands for each op of the program, by number.
        parts: the barrier of each op that is a part of one, by number.
        results: for each result of main its index among the folded program's results.
        times: how many ops each op (by number) stands for; ``result_times`` likewise for results.
        operand_values: for an op (by number) and an operand that stands for several values, the values that the ops
            read for which that op stands.
    """

    program: Program
    of: tuple[int, ...]
    ops: Mapping[int, int]
    parts: Mapping[int, int]
    results: tuple[int, ...]
    times: Mapping[int, int]
    result_times: tuple[int, ...]
    operand_values: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)

    @property
    def folds(self) -> bool:
        """Whether a value or an op stands for several."""
        return len(self.times) < len(self.ops) or len({*self.of}) < len(self.of)

    @cached_property
    def repeats(self) -> bool:
        """Whether several of its ops make the same value, as the last op of a layer and the op before the first
        layer do.
        """
        made = [value for op in self.program.body.every_op() for value in op.results]
        return len(made) > len(set(made))

    def unfolded(self, decided: Shardings) -> Shardings:
        """Convert shardings of the folded program into those of the whole program."""
        of = {value: decided.of[rep] for value, rep in enumerate(self.of) if rep in decided.of}
        results = tuple(decided.results[place] for place in self.results)
        conflicts = {
            self.parts.get(op, op): decided.conflicts[rep] for op, rep in self.ops.items() if rep in decided.conflicts
        }
        ways = {op: decided.ways[rep] for op, rep in self.ops.items() if rep in decided.ways}
        partial = {value: decided.partial[rep] for value, rep in enumerate(self.of) if rep in decided.partial}
        copies = {value: decided.copies[rep] for value, rep in enumerate(self.of) if rep in decided.copies}
        return Shardings(of, results, conflicts, ways, partial, copies)


def fold(program: Program, barriers: Mapping[int, str]) -> Folded:
    """Return ``program`` folded.

    ``barriers``: for each constraint (by op number) the direction in which shardings may pass it.
    """
    colours = _Colours(program, barriers)
    for _ in range(ROUNDS):
        colours.refine()
    return _known(program, _fold(program, colours.colours, colours.alike))


def unfold(program: Program) -> Folded:
    """Return ``program`` as one in which each value and op stands for itself alone."""
    return _known(
        program,
        _fold(program, list(range(len(program.arrays))), {op.number: op.number for op in program.body.every_op()}),
    )


def _known(program: Program, folded: Folded) -> Folded:
    know_borders(folded.program.body, {**borders(program), **dict.fromkeys(folded.parts, UNTOUCHED)})
    return folded


class _Colours:
    def __init__(self, program: Program, barriers: Mapping[int, str]) -> None:
        self.colours = [-1] * len(program.arrays)
        self.alike: dict[int, Hashable] = {}  # by op number: what the op itself must have in common with another
        self.users: list[list[tuple[Hashable, Op]]] = [[] for _ in program.arrays]
        self.makers: list[Op | None] = [None] * len(program.arrays)
        known: dict[Hashable, int] = {}
        annotations = program.annotations

        def look(block: Block, inside: Hashable) -> None:
            for value in block.arguments:
                place = -1 if inside is None else value  # one that a loop carries stands for itself
                key: Hashable = (
                    inside,
                    program.arrays[value],
                    annotations.get(value, NO_ANNOTATION),
                    "argument",
                    place,
                )
                self.colours[value] = known.setdefault(key, len(known))
            for op in block.ops:
                alike: Hashable = op.number
                if op.kind in ALIKE and not op.blocks:
                    alike = (op.kind, op.name, op.model, barriers.get(op.number), op.pure, op.cheap)
                self.alike[op.number] = alike = known.setdefault(("op", inside, alike), len(known))
                for place, value in enumerate(op.results):
                    made = (alike, place, program.arrays[value], annotations.get(value, NO_ANNOTATION))
                    self.colours[value] = known.setdefault(made, len(known))
                    self.makers[value] = op
                for place, value in enumerate(op.operands):
                    self.users[value].append(((alike, place), op))
                for inner in op.blocks:
                    look(inner, (op.number, id(inner)))
            for place, value in enumerate(block.returned):
                self.users[value].append((("returned", inside, place if inside is not None else -1), _END))

        look(program.body, None)
        for value, one in zip(program.body.returned, program.result_annotations, strict=True):
            self.users[value].append((("result", one), _END))

    def refine(self) -> None:
        """Recolour all values once by the colours of the values around them."""
        now = self.colours
        known: dict[Hashable, int] = {}
        around: dict[int, int] = {}

        def of(op: Op) -> int:
            colour = around.get(op.number)
            if colour is None:
                key = (self.alike.get(op.number), *[now[v] for v in op.operands], -1, *[now[v] for v in op.results])
                colour = around[op.number] = known.setdefault(key, len(known))
            return colour

        out = []
        for value, users in enumerate(self.users):
            maker = self.makers[value]
            made = -1 if maker is None else of(maker)
            used = frozenset([(how, of(op)) for how, op in users])
            key = (now[value], made, used)
            out.append(known.setdefault(key, len(known)))
        self.colours = out


_END = Op(-1, "", OpKind.UNTOUCHED, (), (), None)  # type: ignore[arg-type]  # what a block returns is used by no op


def _fold(program: Program, colours: list[int], alike: dict[int, Hashable]) -> Folded:
    first: dict[int, int] = {}
    of = list(range(len(colours)))

    def represent(value: int) -> int:
        rep = of[value] = first.setdefault(colours[value], value)
        return rep

    times: dict[int, int] = {}
    stands: dict[int, int] = {}
    parts: dict[int, int] = {}
    operand_values: dict[tuple[int, int], set[int]] = {}

    def parts_of(op: Op) -> Iterator[Op]:
        if op.kind is not OpKind.SPLIT or op.model is None or not op.model.rule.independent or len(op.operands) < 2:
            yield op
            return
        for place, (rule, _) in enumerate(pair_rules(op.model.rule)):
            number = program.count + len(parts)
            parts[number] = op.number
            one, made = (op.operands[place],), (op.results[place],)
            yield replace(op, number=number, operands=one, results=made, model=passes(rule))

    def folded(block: Block) -> Block:
        arguments = tuple(dict.fromkeys(represent(v) for v in block.arguments))
        ops: dict[Hashable, Op] = {}
        for op in chain.from_iterable(map(parts_of, block.ops)):
            operands = tuple([of[v] for v in op.operands])
            results = tuple([represent(v) for v in op.results])
            key = (alike[parts.get(op.number, op.number)], operands, results)
            known = ops.get(key)
            number = stands[op.number] = op.number if known is None else known.number
            for value in op.operands:
                operand_values.setdefault((number, of[value]), set()).add(value)
            if known is not None:
                times[number] += 1
                continue
            times[number] = 1
            blocks = tuple(folded(inner) for inner in op.blocks)
            captured = tuple(of[v] for v in op.captured)
            ops[key] = replace(op, operands=operands, results=results, blocks=blocks, captured=captured)
        return Block(arguments, tuple(ops.values()), tuple([of[v] for v in block.returned]))

    body = folded(program.body)
    ends = list(zip(body.returned, program.result_annotations, strict=True))
    places = {end: place for place, end in enumerate(dict.fromkeys(ends))}
    results = tuple(places[end] for end in ends)
    counts = [0] * len(places)
    for place in results:
        counts[place] += 1
    returned, result_annotations = tuple(value for value, _ in places), tuple(annotation for _, annotation in places)
    small = replace(
        program, body=replace(body, returned=returned), result_annotations=result_annotations, count=len(times)
    )
    alone = {value for value, count in Counter(of).items() if count == 1}
    several = {key: frozenset(values) for key, values in operand_values.items() if key[1] not in alone}
    return Folded(small, tuple(of), stands, parts, results, times, tuple(counts), several)


@lru_cache(maxsize=1024)
def passes(rule: Rule) -> OpModel[LocalPlan]:
    """Return the model of a barrier of one operand, which passes through unchanged."""
    return Pointwise(rule)
