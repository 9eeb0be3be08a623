"""Determine which operands of an op are read from memory and which results are written, as XLA fuses the program.

``cost.fusion`` says which ops can be in one loop; here a program is cut into such loops. A value is

    in memory   an argument, a constant of several numbers, the result of a loop or branch; or it is written: it has a
                user that reads from memory (a product, a return, another block), or cannot be computed inside
    inside      of one fusion; or of several, each of which computes it again

and a fusion is named by the op that writes. From the last op to the first: an op is inside of the fusions of its users,
unless its value

1. is of the kind that is written (``Result.WRITTEN``) or is used from memory;
2. is expensive (``Result.ONCE``), and several fusions need it, or one spreads it over many elements;
3. is needed in two fusions of which one needs what the other writes: a softmax reads its logits twice, once for the
   greatest and once for the differences, rather than compute them twice (``ComputeGloballyUnfusible`` in XLA);
4. is needed in more than ``MOST`` fusions.

A value that is made of fewer bytes than it has (a broadcast, a widening conversion) is computed again in spite of 3,
and also where somebody reads it from memory. A fusion reads a value once, which counts at the first op that uses it.

What is made of constants and counters alone (a causal mask) is free, unless it is written.

Not seen: redistributions, which part fusions where the plan puts them; equal ops that XLA makes one; copies to other
layouts; a whole softmax in one kernel, which Triton makes on GPUs where rows are short.

Example: ``y = x * 2; z = tanh(y + b); return z @ w`` reads x at the product by 2 and b at the sum, and writes z.

Invariants: bytes of memory are touched only where ``reads`` or ``writes`` says so; a value that is written is read by
some op, or returned. In a folded program (``fold``) one value has the users of several layers, so its ops have the
borders of those that they stand for. Complexity: O(operands x MOST + ops x FAR).
"""

from __future__ import annotations

import enum
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from shardpass.cost.factorizations import flops_of_call
from shardpass.cost.fusion import Flops, Operands, Result, Row, fusion_of
from shardpass.ops.splits.factors import Kind
from shardpass.program.program import Block, Op, OpKind, Program

MOST = 8  # fusions that compute one value
MATRIX = 2  # dimensions of more than one element that products read in either order
FAR = 64  # fusions that are looked at between two that need one value
IN_MEMORY = Row("", Operands.PASSED, Result.WRITTEN, Flops.NONE, "a border")
SAME_ARRAY = Row("", Operands.FUSED, Result.VIEW, Flops.NONE, "a constraint: the operand's array")
_KNOWN: dict[int, Mapping[int, Borders]] = {}  # by the body's identity, as long as the body lives
BORDERS = frozenset({OpKind.ENTER_REGION, OpKind.LEAVE_REGION, OpKind.ENTER_MANUAL, OpKind.CONTROL_FLOW})


@dataclass(frozen=True, slots=True)
class Borders:
    """The operands that an op reads from memory, and the results that it writes.

    Attributes:
        reads: for each operand, the number of fusions that read it from memory here; 0 where another op of the fusion
            computes it or has read it.
        writes: for each result, whether it is written to memory.
        flops: how additions and multiplications count.
        in_place: the op updates operand 0 in place and writes only the update.
    """

    reads: tuple[int, ...]
    writes: tuple[bool, ...]
    flops: Flops
    in_place: bool = False


UNTOUCHED = Borders((0,), (False,), Flops.NONE)  # what passes a barrier


def borders(program: Program) -> Mapping[int, Borders]:
    """Return the borders of every op by number. Those of a folded program are the ones that ``know_borders``
    recorded.
    """
    known = _KNOWN.get(id(program.body))
    return know_borders(program.body, _Analysis(program).borders()) if known is None else known


def know_borders(body: Block, known: Mapping[int, Borders]) -> Mapping[int, Borders]:
    """Record the borders of a program's ops for as long as ``body`` lives, and return them."""
    if id(body) not in _KNOWN:
        weakref.finalize(body, _KNOWN.pop, id(body), None).atexit = False
    _KNOWN[id(body)] = known
    return known


def pair_borders(borders: Borders, place: int) -> Borders:
    """Return the borders for operand ``place`` and its result alone, for an op that treats each operand
    independently.
    """
    return Borders((borders.reads[place],), (borders.writes[place],), borders.flops, borders.in_place)


class _Place(enum.Enum):
    """Whether a value is inside of a fusion, in memory, or both."""

    MEMORY = "in memory without an op that writes"
    WRITTEN = "in memory, and read by all"
    BOTH = "in memory for those who read there, and computed in fusions"
    INSIDE = "computed in fusions"


@dataclass
class _Analysis:
    """Classifies the values and ops of a program: one walk from the first op to the last, and one back."""

    program: Program
    ops: list[Op] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)
    makers: dict[int, int] = field(default_factory=dict)  # the op of a value
    blocks: dict[int, int] = field(default_factory=dict)  # by op
    bases: dict[int, int] = field(default_factory=dict)  # of a view, the value whose memory it is
    elsewhere: set[int] = field(default_factory=set)  # values that not products alone use
    free: set[int] = field(default_factory=set)  # values made of constants and counters alone
    loops: dict[int, list[Op]] = field(default_factory=dict)  # by base, the ops in whose loop it can be
    readers: dict[int, list[Op]] = field(default_factory=dict)  # by base, the ops that read it from memory
    kept: set[int] = field(default_factory=set)  # bases that are wanted in memory
    places: dict[int, _Place] = field(default_factory=dict)  # by op
    roots: dict[int, tuple[int, ...]] = field(default_factory=dict)  # the fusions of an op, by the op that writes
    spread: set[int] = field(default_factory=set)  # ops whose value is used for many elements inside of a fusion
    sources: dict[int, list[int]] = field(default_factory=dict)  # of a fusion, the fusions whose results it reads

    def borders(self) -> Mapping[int, Borders]:
        for block, op in _every_op(self.program.body):
            self._meet(op, block)
        self.elsewhere.update(self.program.body.returned)
        for op in self.ops:
            self._follow(op)
        self._keep(self.program.body.returned)
        for op in reversed(self.ops):
            self._decide(op)
        seen: set[tuple[int, int]] = set()
        return {op.number: self._borders(op, seen) for op in self.ops}

    # ---------------------------------------------------------------- from the first op to the last

    def _meet(self, op: Op, block: int) -> None:
        self.ops.append(op)
        self.rows[op.number] = _row_of(op)
        self.blocks[op.number] = block
        for value in op.results:
            self.makers[value] = op.number
        if self.rows[op.number].flops is not Flops.NEST:
            self.elsewhere.update(op.operands)
        self.elsewhere.update(*[inner.returned for inner in _blocks(op)], op.captured)

    def _follow(self, op: Op) -> None:
        """Record whether the op is a view, whether its results are free, and how it uses its operands."""
        row = self.rows[op.number]
        if self._makes_view(op, row):
            self.bases[op.results[0]] = self._base(op.operands[0])
        if self._makes_free(op, row):
            self.free.update(op.results)
        for place, value in enumerate(op.operands):
            if self._is_in_loop(op, place):
                self.loops.setdefault(self._base(value), []).append(op)
            else:
                self._keep((value,))
                self.readers.setdefault(self._base(value), []).append(op)
        self._keep(op.captured)
        for block in _blocks(op):
            self._keep(block.returned)

    def _makes_view(self, op: Op, row: Row) -> bool:
        if row.folds and op.results[0] not in self.elsewhere:
            array = self.program.arrays[op.results[0]]
            return array is not None and sum(size > 1 for size in array.shape) <= MATRIX
        return row.result is Result.VIEW and row.operands is Operands.FUSED

    def _makes_free(self, op: Op, row: Row) -> bool:
        if row.result is Result.FREE:
            return not _is_dense(op)
        fuses = row.operands is Operands.FUSED and row.result is not Result.WRITTEN
        return fuses and bool(op.operands) and self.free.issuperset(op.operands)

    def _is_in_loop(self, op: Op, place: int) -> bool:
        """Return whether the op that makes operand ``place`` can be in the fusion of ``op``; views in between do not
        count.
        """
        row = self.rows[op.number]
        if row.operands is not Operands.FUSED or (row.in_place and place == 0):
            return False
        maker = self.makers.get(self._base(op.operands[place]))
        return maker is None or self.blocks[maker] == self.blocks[op.number]

    def _keep(self, values: Iterable[int]) -> None:
        self.kept.update(map(self._base, values))

    def _base(self, value: int) -> int:
        return self.bases.get(value, value)

    def _users(self, value: int) -> Iterator[Op]:
        """Yield the ops that use ``value`` inside of a fusion, directly or through views."""
        return (op for op in self.loops.get(value, ()) if not self._is_view(op))

    def _is_view(self, op: Op) -> bool:
        return bool(op.results) and op.results[0] in self.bases

    # ---------------------------------------------------------------- from the last op to the first

    def _decide(self, op: Op) -> None:
        """Decide whether the op's results are written to memory, and which fusions compute the op."""
        number, row = op.number, self.rows[op.number]
        if self._is_view(op):
            return
        if row.operands is Operands.PASSED or _is_dense(op):
            self.places[number], self.roots[number] = _Place.MEMORY, ()
            return
        users = [user for value in op.results for user in self._users(value)]
        roots = tuple(dict.fromkeys(root for user in users for root in self.roots[user.number]))
        if any(map(self._spreads, users)):
            self.spread.add(number)
        place = self.places[number] = self._place(op, row, roots)
        own = () if place is _Place.INSIDE else (number,)
        self.roots[number] = own if place is _Place.WRITTEN else (*own, *roots)
        readers = [reader.number for value in op.results for reader in self.readers.get(value, ())]
        for root in (*readers, *roots) if place is _Place.WRITTEN else readers:
            self.sources.setdefault(root, []).append(number)

    def _place(self, op: Op, row: Row, roots: tuple[int, ...]) -> _Place:
        if row.result is Result.WRITTEN or not roots or not self._fits(op, row, roots):
            return _Place.WRITTEN
        if self.kept.isdisjoint(op.results):
            return _Place.INSIDE
        return _Place.BOTH if self._is_small(op) else _Place.WRITTEN

    def _fits(self, op: Op, row: Row, roots: tuple[int, ...]) -> bool:
        """Return whether every fusion of ``roots`` may compute the op."""
        if row.result is Result.ONCE:
            return len(roots) == 1 and op.number not in self.spread
        if len(roots) == 1 or self.free.issuperset(op.results):
            return True
        if len(roots) > MOST:
            return False
        return self._is_small(op) or not self._is_joined(roots)

    def _is_joined(self, roots: tuple[int, ...]) -> bool:
        """Return whether one fusion of ``roots`` depends on another, or more than ``FAR`` fusions lie between."""
        seen: set[int] = set()
        left = [source for root in roots for source in self.sources.get(root, ())]
        while left:
            one = left.pop()
            if one in roots or len(seen) == FAR:
                return True
            if one not in seen:
                seen.add(one)
                left += self.sources.get(one, ())
        return False

    def _spreads(self, user: Op) -> bool:
        """Return whether a fusion of ``user`` reads one element of its operand for many elements of its result."""
        if self.rows[user.number].spreads and self._elements(user.results) > self._elements(user.operands[:1]):
            return True
        return user.number in self.spread and self.places[user.number] is not _Place.WRITTEN

    def _is_small(self, op: Op) -> bool:
        """Return whether the op's operands have fewer bytes than its results."""
        operands = [array.bytes for value in set(op.operands) - self.free if (array := self.program.arrays[value])]
        return sum(operands) < sum(array.bytes for value in op.results if (array := self.program.arrays[value]))

    def _elements(self, values: Iterable[int]) -> int:
        return sum(prod(array.shape) for value in values if (array := self.program.arrays[value]) is not None)

    # ---------------------------------------------------------------- what is read and written

    def _borders(self, op: Op, seen: set[tuple[int, int]]) -> Borders:
        row = self.rows[op.number]
        if row.operands is Operands.PASSED or self._is_view(op):
            return Borders((0,) * len(op.operands), (False,) * len(op.results), Flops.NONE)
        writes = self.places[op.number] in (_Place.WRITTEN, _Place.BOTH)
        reads = tuple([self._reads(op, row, place, seen) for place in range(len(op.operands))])
        flops = Flops.NONE if self.free.issuperset(op.results) else row.flops
        used = [writes and (value in self.kept or value in self.loops) for value in op.results]
        return Borders(reads, tuple(used), flops, row.in_place)

    def _reads(self, op: Op, row: Row, place: int, seen: set[tuple[int, int]]) -> int:
        """Return how many fusions read operand ``place`` at ``op``.

        ``seen``: the pairs (value, fusion) that were counted before; this call adds to it.
        """
        if row.in_place and place == 0:
            return 0
        base = self._base(op.operands[place])
        maker = self.makers.get(base)
        if maker is not None and self.places[maker] in (_Place.INSIDE, _Place.BOTH) and self._is_in_loop(op, place):
            return 0
        roots = [root for root in self.roots[op.number] if row.in_part or (base, root) not in seen]
        if not row.in_part:
            seen.update((base, root) for root in roots)
        return len(roots)


def _every_op(body: Block) -> Iterator[tuple[int, Op]]:
    """Yield each op with the number of its block; an op comes before those of its blocks."""
    count = 0
    stack: list[tuple[int, Iterator[Op]]] = [(0, iter(body.ops))]
    while stack:
        block, rest = stack[-1]
        op = next(rest, None)
        if op is None:
            stack.pop()
            continue
        yield block, op
        for inner in reversed(_blocks(op)):
            count += 1
            stack.append((count, iter(inner.ops)))


def _blocks(op: Op) -> tuple[Block, ...]:
    return (*op.blocks, *op.inside)


def _row_of(op: Op) -> Row:
    if op.kind is OpKind.CONSTRAINT:
        return SAME_ARRAY
    if op.kind in BORDERS or op.inside:
        return IN_MEMORY
    row = fusion_of(op.name)
    called = flops_of_call(op.target) if op.target else None
    return row if called is None else replace(row, flops=called)


def _is_dense(op: Op) -> bool:
    """Return whether the op is a constant of several numbers: no rule splits one."""
    rule = None if op.model is None or not op.name.endswith(".constant") else op.model.rule
    return rule is not None and any(factor.kind is Kind.REPLICATED for factor in rule.factors)
