"""What a change of shardings costs, from the ops that it touches alone.

Problem: a search tries hundreds of changes, and planning a program anew for each takes too long. The cost of a program
is nearly a sum of local terms:

1. of an op, its cheapest split (``choose``) given the shardings of its operands and results: its own collectives,
   completions, reshards of its results, and its work;
2. of an array, one reshard for each distinct sharding under which its users take it.

So the estimate of a change is the difference of the terms of the ops and arrays around the values that change. Copies
that a planner finds at hand by its order, and arrays computed again from others than constants, are left to the plan
(``planner``), which decides what is taken.

State: the terms of a base point. Invariant: ``self.price`` is the sum of all terms of the base. Complexity of a change:
O(ops around the values that change), each a table lookup where its signature is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.choose import Choices, Decided
from shardpass.planning.copies import Copies, Held
from shardpass.planning.cost import RETURNED
from shardpass.planning.fold import Folded
from shardpass.planning.machine import Machine
from shardpass.program.program import Array, Block, Op, OpKind
from shardpass.sharding import Sharding

Demands = tuple[tuple[int, Sharding], ...]
Term = tuple[float, Demands]


class Estimate:
    """The terms of a folded program under shardings that change."""

    def __init__(self, folded: Folded, decided: Decided, machine: Machine) -> None:
        self.program = folded.program
        self.folded = folded
        self.machine = machine
        self.choices = Choices(decided, Copies(decided.prices))
        self.ops: dict[int, tuple[Op, float]] = {}  # by number: the op and how often it runs, all that it stands for
        self.around: dict[int, list[int]] = {}  # value -> ops that make or use it
        self.free: set[int] = set()  # values that any device makes again at no price
        self.times: dict[int, float] = {}  # of a value: how often it is made
        self.meshes: dict[int, PrimeMesh] = {}  # of a value, as ops of its region see it
        self._splits: dict[object, Term] = {}  # by what a split depends on; demands by the operand's place
        self._read(self.program.body, 1.0, self.program.mesh)
        for value, count in zip(self.program.body.returned, folded.result_times, strict=True):
            self.around.setdefault(value, []).append(RETURNED)
            self.times.setdefault(value, count)
        self.shardings: dict[int, Sharding] = {}
        self.results: tuple[Sharding | None, ...] = ()
        self.terms: dict[int, Term] = {}
        self.moves: dict[int, float] = {}  # by value
        self.price = 0.0

    def _read(self, block: Block, runs: float, mesh: PrimeMesh) -> None:
        for value in block.arguments:
            self.times.setdefault(value, runs)
            self.meshes[value] = mesh
        for op in block.ops:
            often = runs * self.folded.times.get(op.number, 1)
            self.ops[op.number] = (op, often)
            for value in {*op.operands, *op.results, *op.captured}:
                self.around.setdefault(value, []).append(op.number)
            for value in op.results:
                self.times[value] = self.times.get(value, 0.0) + often
                self.meshes[value] = op.mesh
            if op.cheap and all(operand in self.free for operand in op.operands):
                self.free.update(op.results)
            inside = often * (op.trips or 1) if op.is_loop else often
            for inner in op.blocks:
                self._read(inner, inside, op.mesh)
                for value in inner.returned:
                    self.around.setdefault(value, []).append(op.number)

    # ---------------------------------------------------------------- the base

    def rebase(self, shardings: Mapping[int, Sharding], results: tuple[Sharding | None, ...]) -> float:
        """Takes ``shardings`` (by value, and of main's results) as the base; its price in bytes."""
        self.shardings, self.results = dict(shardings), results
        self.terms = {number: self._term(number, shardings, results) for number in (*self.ops, RETURNED)}
        self.moves = {value: self._moved(value, shardings, self.terms) for value in self.around}
        self.price = sum(self._weight(n) * term[0] for n, term in self.terms.items()) + sum(self.moves.values())
        return self.price

    def change(
        self, fresh: Mapping[int, Sharding], results: tuple[Sharding | None, ...], limit: float = math.inf
    ) -> float:
        """The price where some values, and main's results, have other shardings; the base stays.

        Above ``limit`` it may be any price above it: the terms of ops are added one by one, and none is negative.
        """
        shardings = {**self.shardings, **fresh}
        touched = {number for value in fresh for number in self.around.get(value, ())}
        if results is not self.results and results != self.results:
            touched.add(RETURNED)
        values = {value for value in fresh if value in self.moves}
        values.update([value for number in touched for value, _ in self.terms[number][1]])
        price = self.price - sum([self.moves[value] for value in values])
        price -= sum([self._weight(number) * self.terms[number][0] for number in touched])
        terms: dict[int, Term] = {}
        for number in sorted(touched, key=lambda number: -self._weight(number) * self.terms[number][0]):
            term = terms[number] = self._term(number, shardings, results)
            price += self._weight(number) * term[0]
            if price > limit:
                return price
        every = _Over(self.terms, terms)
        added = {value for term in terms.values() for value, _ in term[1]} - values
        price -= sum([self.moves[value] for value in added])
        for value in values | added:
            price += self._moved(value, shardings, every)
        return price

    def _weight(self, number: int) -> float:
        return 1.0 if number == RETURNED else self.ops[number][1]

    # ---------------------------------------------------------------- terms

    def _moved(self, value: int, shardings: Mapping[int, Sharding], terms: Mapping[int, Term]) -> float:
        """Price of the reshards of ``value``, once for each sharding that its users take."""
        array, own = self.program.arrays[value], shardings.get(value)
        if array is None or own is None or value in self.free:
            return 0.0
        targets = {to for number in self.around[value] for wanted, to in terms[number][1] if wanted == value}
        if not targets:
            return 0.0
        total = 0.0
        for target in targets:
            total += self.machine.move(array, own, target, self.meshes[value])
        return total * self.times.get(value, 1.0)

    def _term(self, number: int, shardings: Mapping[int, Sharding], results: tuple[Sharding | None, ...]) -> Term:
        if number == RETURNED:
            returned = zip(self.program.body.returned, results, strict=True)
            return 0.0, tuple((value, to) for value, to in returned if to is not None)
        op = self.ops[number][0]
        if op.kind is OpKind.SPLIT:
            key = (op.model, op.mesh.manual, *[shardings.get(v) for v in (*op.operands, *op.results)])
            found = self._splits.get(key)
            if found is None:
                found = self._splits[key] = self._split(op, shardings)
            return found[0], tuple([(op.operands[place], to) for place, to in found[1]])
        if op.kind is OpKind.CONTROL_FLOW:
            carried = [(v, shardings[r]) for v, r in zip(op.operands, op.results, strict=False) if r in shardings]
            inner = [
                (v, shardings[r])
                for block in op.blocks[op.is_loop :]
                for v, r in zip(block.returned, op.results, strict=True)
                if r in shardings
            ]
            return 0.0, (*(carried if op.is_loop else ()), *inner)
        if op.kind is OpKind.CONSTRAINT:
            to = shardings.get(op.results[0])
            return 0.0, () if to is None else ((op.operands[0], to),)
        if op.kind is OpKind.WHOLE:
            arrays = self.program.arrays
            taken = [(v, op.mesh.replicated(a.rank)) for v in op.operands if (a := arrays[v]) is not None]
            return 0.0, tuple(taken)
        return 0.0, ()

    def _split(self, op: Op, shardings: Mapping[int, Sharding]) -> Term:
        held = [self._held(value, op, shardings) for value in op.operands]
        types = [self.program.array(value) for value in op.results]
        wanted = [self._sharding(v, t, op, shardings) for v, t in zip(op.results, types, strict=True)]
        assert op.model is not None
        choice = self.choices.of(op.model, op.mesh, held, types, wanted)
        send = self.machine.send
        cost = self.machine.work(op.model.rule, choice.local.split)
        cost += sum(send(one.bytes, one.axes, op.mesh) for one in choice.local.collectives)
        for type_, made, to in zip(types, choice.results, wanted, strict=True):
            cost += sum(send(done.bytes, done.axes, op.mesh) for done in made.completions)
            if made.computed != to:
                cost += self.machine.move(type_, made.computed, to, op.mesh)
        demands = [
            (index, taken.sharding)
            for index, taken in enumerate(choice.operands)
            if index not in choice.local.ignored and taken.sharding != held[index].sharding
        ]
        return cost, tuple(demands)

    def _held(self, value: int, op: Op, shardings: Mapping[int, Sharding]) -> Held:
        type_ = self.program.array(value)
        sharding = self._sharding(value, type_, op, shardings)
        return Held(value, type_, sharding, op.mesh.dims(sharding, type_.rank), op.mesh)

    def _sharding(self, value: int, type_: Array, op: Op, shardings: Mapping[int, Sharding]) -> Sharding:
        sharding = shardings.get(value)
        if sharding is None or sharding.is_unknown or (op.mesh.manual and sharding.is_replicated):
            return op.mesh.replicated(type_.rank)
        return sharding


class _Over(dict[int, Term]):
    """``base`` with some terms replaced."""

    def __init__(self, base: Mapping[int, Term], fresh: Mapping[int, Term]) -> None:
        super().__init__(fresh)
        self.base = base

    def __missing__(self, key: int) -> Term:
        return self.base[key]
