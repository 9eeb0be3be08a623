"""What a change of shardings costs, from the ops that it touches alone.

Problem: a search tries hundreds of changes, and planning a program anew for each takes too long. The cost of a program
is nearly a sum of local terms:

1. of an op, its cheapest split (``choose``) given the shardings of its operands and results: its own collectives,
   completions, reshards of its results, and its work;
2. of an array, one reshard for each distinct sharding under which its users take it.

So the estimate of a change is the difference of the terms of the ops and arrays around the values that change. Copies
that a planner finds at hand by its order, and arrays computed again from others than constants, are left to the plan
(``planner``), which decides which copy is read.

Most changes do not pay, and of these a price above a limit is all that anybody asks for. So a change is priced from
below (``_Change``), and ends as soon as it is known to be too expensive: no split is chosen for the ops that are left,
and no redistribution planned.

State: the terms of a base point. Invariant: ``self.sum`` is the sum of all terms of the base. Complexity of a change:
O(ops around the values that change), each a table lookup where its signature is known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.choose import Choices, Decided
from shardpass.planning.options.copies import Copies, PlacedArray
from shardpass.planning.price.borders import borders
from shardpass.planning.price.fold import Folded
from shardpass.planning.price.op_prices import RETURNED
from shardpass.program.program import Array, Block, Op, OpKind
from shardpass.sharding import Sharding

Demands = tuple[tuple[int, Sharding], ...]
Term = tuple[float, Demands]


class Estimate:
    """Estimates the price of a folded program under shardings that change, as a sum of terms of ops and arrays."""

    def __init__(self, folded: Folded, decided: Decided) -> None:
        self.program = folded.program
        self.folded = folded
        self.clock = decided.clock
        self.choices = Choices(decided, Copies(decided.prices, decided.clock))
        self.ops: dict[int, tuple[Op, float]] = {}  # by number: the op and how often it runs, all that it stands for
        self.around: dict[int, list[int]] = {}  # value -> ops that make or use it
        self.free: set[int] = set()  # values that any device makes again at no price
        self.times: dict[int, float] = {}  # of a value: how often it is made
        self.meshes: dict[int, PrimeMesh] = {}  # of a value, as ops of its region see it
        self._splits = decided.terms  # by what a split depends on; demands by the operand's place
        self._kinds: dict[int, tuple[object, tuple[int, ...]]] = {}  # of an op that is split (``_kind``); its values
        self._decided = decided
        self._leasts: dict[int, float] = {}  # by op
        self._stands = Counter(folded.of)  # for how many values a value stands
        self.borders = borders(self.program)
        self._read(self.program.body, 1.0, self.program.mesh)
        for value in self.program.body.returned:
            self.around.setdefault(value, []).append(RETURNED)
        self.weights = {RETURNED: 1.0, **{number: often for number, (_, often) in self.ops.items()}}
        self.shardings: dict[int, Sharding] = {}
        self.results: tuple[Sharding | None, ...] = ()
        self.terms: dict[int, Term] = {}
        self.demanded: dict[int, list[tuple[int, Sharding]]] = {}  # by value: which op takes it otherwise, and how
        self.moves: dict[int, float] = {}  # by value
        self.sum = 0.0

    @property
    def price(self) -> float:
        """The price of the base in seconds, with which changes are compared."""
        return self.sum

    def _read(self, block: Block, runs: float, mesh: PrimeMesh) -> None:
        for value in block.arguments:
            self.times[value] = runs * self._stands[value]
            self.meshes[value] = mesh
        for op in block.ops:
            often = runs * self.folded.times.get(op.number, 1)
            self.ops[op.number] = (op, often)
            if op.kind is OpKind.SPLIT:
                self._kinds[op.number] = self._kind(op), (*op.operands, *op.results)
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

    def _kind(self, op: Op) -> object:
        """Return an object that all ops share whose split depends on the shardings in the same way."""
        arrays = [self.program.arrays[value] for value in (*op.operands, *op.results)]
        key = (op.model, op.mesh.manual, self.borders[op.number], *arrays)
        return self._decided.kinds.setdefault(key, object())

    # ---------------------------------------------------------------- the base

    def rebase(self, shardings: Mapping[int, Sharding], results: tuple[Sharding | None, ...]) -> float:
        """Make ``shardings`` (by value) and those of main's ``results`` the base, and return its price in seconds."""
        before, self.shardings = self.shardings, dict(shardings)
        moved: Iterable[int] = self.around
        numbers: Iterable[int] = (*self.ops, RETURNED)
        if self.terms:  # of the base before, what has not changed around it stays
            fresh = [value for value, one in self.shardings.items() if before.get(value) is not one]
            touched = {number for value in fresh for number in self.around.get(value, ())}
            if results != self.results:
                touched.add(RETURNED)
            around = {value for value in fresh if value in self.around}
            around.update([value for number in touched for value, _ in self.terms[number][1]])
            numbers, moved = touched, around
        self.results = results
        for number in numbers:
            term = self.terms[number] = self.term(number, self.shardings, results)
            if moved is not self.around:
                around.update([value for value, _ in term[1]])
        self.demanded = {}
        for number, term in self.terms.items():
            for value, to in term[1]:
                self.demanded.setdefault(value, []).append((number, to))
        for value in moved:
            self.moves[value] = self._moved(value)
        self.sum = sum([self.weights[n] * term[0] for n, term in self.terms.items()]) + sum(self.moves.values())
        return self.price

    def change(
        self, fresh: Mapping[int, Sharding], results: tuple[Sharding | None, ...], limit: float = math.inf
    ) -> float:
        """Return the price in seconds with the ``fresh`` shardings in place of the base's, which stays.

        ``results``: the shardings of main's results. Above ``limit`` the price may be anything above it (``_Change``).
        """
        touched = {number for value in fresh for number in self.around.get(value, ())}
        if results is not self.results and results != self.results:
            touched.add(RETURNED)
        change = _Change(self, {**self.shardings, **fresh}, results, touched)
        for value in fresh:
            change.open(value)
        return change.priced(limit)

    # ---------------------------------------------------------------- terms

    def _moved(self, value: int) -> float:
        """Return the seconds of all reshards of ``value`` in the base: one for each sharding that its users need."""
        targets: dict[Sharding, list[int]] = {}
        for number, to in self.demanded.get(value, ()):
            targets.setdefault(to, []).append(number)
        prices = [self.move(value, self.shardings, to) * self.often(value, ops) for to, ops in targets.items()]
        return sum(prices)

    def often(self, value: int, ops: Sequence[int]) -> float:
        """Return how often ``value`` is copied for ``ops`` (by number), counting all values that it stands for."""
        often, stands = self.times.get(value, 1.0), self._stands[value]
        if stands == 1:
            return often
        several = [self.folded.operand_values.get((number, value)) for number in ops]
        values: set[int] = set()
        for one in several:
            if one is None:  # an op with blocks, or what main returns
                return often
            values.update(one)
        return often * len(values) / stands

    def move(self, value: int, shardings: Mapping[int, Sharding], target: Sharding) -> float:
        """Return the seconds of one reshard of ``value`` from its sharding to ``target``."""
        array, own = self.program.arrays[value], shardings.get(value)
        if array is None or own is None or value in self.free:
            return 0.0
        return self.clock.move(array, own, target, self.meshes[value])

    def least_move(self, value: int, shardings: Mapping[int, Sharding], target: Sharding) -> float:
        """Return a lower bound of ``move``, without planning."""
        array, own = self.program.arrays[value], shardings.get(value)
        if array is None or own is None or value in self.free:
            return 0.0
        return self.clock.least_move(array, own, target, self.meshes[value])

    def known(
        self, number: int, shardings: Mapping[int, Sharding], results: tuple[Sharding | None, ...]
    ) -> Term | None:
        """Return the term of an op, or None if a split must be chosen for it first."""
        kind = self._kinds.get(number)
        if kind is None:
            return self.term(number, shardings, results)
        known = self._splits.get(_signature(*kind, shardings))
        return None if known is None else _of_operands(kind[1], known[0])

    def least(self, number: int) -> float:
        """Return a lower bound of an op's term: its work, spread over all devices."""
        least = self._leasts.get(number)
        if least is None:
            op = self.ops[number][0]
            assert op.model is not None
            arrays = [[self.program.array(value) for value in side] for side in (op.operands, op.results)]
            devices = self.program.mesh.num_devices
            least = self._leasts[number] = self.clock.least_work(
                op.model.rule, arrays[0], arrays[1], devices, self.borders[number]
            )
        return least

    def term(self, number: int, shardings: Mapping[int, Sharding], results: tuple[Sharding | None, ...]) -> Term:
        if number == RETURNED:
            returned = zip(self.program.body.returned, results, strict=True)
            return 0.0, tuple((value, to) for value, to in returned if to is not None)
        op = self.ops[number][0]
        if op.kind is OpKind.SPLIT:
            kind, values = self._kinds[number]
            key = _signature(kind, values, shardings)
            known = self._splits.get(key)
            if known is None:
                around = tuple([shardings.get(value) for value in values])  # kept, and with them their identities
                known = self._splits[key] = (self._split(op, shardings), around)
            return _of_operands(values, known[0])
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
            brought = [(v, op.mesh.replicated(a.rank)) for v in op.operands if (a := arrays[v]) is not None]
            return 0.0, tuple(brought)
        return 0.0, ()

    def _split(self, op: Op, shardings: Mapping[int, Sharding]) -> Term:
        placed = [self._placed(value, op, shardings) for value in op.operands]
        types = [self.program.array(value) for value in op.results]
        wanted = [self._sharding(v, t, op, shardings) for v, t in zip(op.results, types, strict=True)]
        assert op.model is not None
        choice = self.choices.of(op.model, op.mesh, placed, types, wanted, self.borders[op.number])
        send = self.clock.collective
        cost = self.clock.work(op.model.rule, choice.local.split, self.program.elements(op), self.borders[op.number])
        cost += sum(send(one.kind, one.bytes, one.axes, op.mesh) for one in choice.local.collectives)
        for type_, made, to in zip(types, choice.results, wanted, strict=True):
            cost += sum(send(done.kind, done.bytes, done.axes, op.mesh) for done in made.completions)
            if made.computed != to:
                cost += self.clock.move(type_, made.computed, to, op.mesh)
        demands = [
            (index, operand.sharding)
            for index, operand in enumerate(choice.operands)
            if index not in choice.local.ignored and operand.sharding != placed[index].sharding
        ]
        return cost, tuple(demands)

    def _placed(self, value: int, op: Op, shardings: Mapping[int, Sharding]) -> PlacedArray:
        type_ = self.program.array(value)
        sharding = self._sharding(value, type_, op, shardings)
        return PlacedArray(value, type_, sharding, op.mesh.dims(sharding, type_.rank), op.mesh)

    def _sharding(self, value: int, type_: Array, op: Op, shardings: Mapping[int, Sharding]) -> Sharding:
        sharding = shardings.get(value)
        if sharding is None or sharding.is_unknown or (op.mesh.manual and sharding.is_replicated):
            return op.mesh.replicated(type_.rank)
        return sharding


def _signature(kind: object, values: Sequence[int], shardings: Mapping[int, Sharding]) -> object:
    """Return the key on which a split op's term depends. Each sharding of a mesh is one object, so its id is
    enough.
    """
    return (kind, *[id(shardings.get(value)) for value in values])


def _of_operands(values: Sequence[int], term: Term) -> Term:
    """Return ``term`` with its demands by value instead of by the operand's index into ``values``."""
    return (term[0], tuple([(values[place], to) for place, to in term[1]])) if term[1] else term


class _Change:
    """Computes the price of a change from below, and ends as soon as it exceeds a limit, as for most changes.

    State: ``price``, below the price of the change or equal to it. Terms that are known count as they are, those for
    which a split must be chosen first count as the least that they may be, and so do reshards (``least_move``); one by
    one they are replaced by what they are. Invariant: none of these steps lowers ``price``.
    """

    def __init__(
        self,
        base: Estimate,
        shardings: Mapping[int, Sharding],
        results: tuple[Sharding | None, ...],
        touched: set[int],
    ) -> None:
        self.base, self.shardings, self.results, self.touched = base, shardings, results, touched
        self.price = base.sum
        # of arrays that may move otherwise: where, for how much at least, and for which ops
        self.targets: dict[int, dict[Sharding, tuple[float, list[int]]]] = {}

    def open(self, value: int) -> None:
        """Remove the base's reshards of ``value`` from the price, so that they are counted anew."""
        if value in self.targets or value not in self.base.moves:
            return
        self.price -= self.base.moves[value]
        self.targets[value] = {}
        for number, to in self.base.demanded.get(value, ()):
            if number not in self.touched:
                self._add(value, to, number)

    def priced(self, limit: float) -> float:
        base = self.base
        for number in self.touched:
            for value, _ in base.terms[number][1]:
                if value not in self.targets:
                    self.open(value)
        unknown: list[tuple[float, int, float]] = []
        for number in self.touched:
            weight, before = base.weights[number], base.terms[number][0]
            term = base.known(number, self.shardings, self.results)
            if term is None:
                unknown.append((-weight * before, number, weight))
                self.price += weight * (base.least(number) - before)
            else:
                self.price += weight * (term[0] - before)
                if term[1]:
                    self._take(number, term[1])
        for _, number, weight in sorted(unknown):
            if self.price > limit:
                return self.price
            term = base.term(number, self.shardings, self.results)
            self.price += weight * (term[0] - base.least(number))
            self._take(number, term[1])
        for value, targets in self.targets.items():
            for target, (least, ops) in targets.items():
                if self.price > limit:
                    return self.price
                self.price += (base.move(value, self.shardings, target) - least) * base.often(value, ops)
        return self.price

    def _take(self, number: int, demands: Demands) -> None:
        for value, to in demands:
            if value not in self.targets:
                self.open(value)
            self._add(value, to, number)

    def _add(self, value: int, target: Sharding, number: int) -> None:
        base, targets = self.base, self.targets[value]
        if target not in targets:
            targets[target] = base.least_move(value, self.shardings, target), []
        least, ops = targets[target]
        before = base.often(value, ops) if ops else 0.0
        ops.append(number)
        self.price += (base.often(value, ops) - before) * least
