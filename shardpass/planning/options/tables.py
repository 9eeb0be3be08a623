"""The shardings of all values of a small program at once: the least sum of what its ops and reshards cost.

Problem: a search by moves stops where no single move pays, and the best assignment may be two or three moves away. The
price of a program is nearly a sum of local terms, so that it can be minimised as one (``solve``).
Alpa (Zheng et al. 2022) does this with an integer program; here it is a cost function network.

Variables: of each open value its split; of each op its *way* (``ways``); of a value that the user fixed, and that
several ops take, one copy that they may share; of a constraint, whether its result is made. Tables:

1. a way: its own cost;
2. a way and an operand: the reshard from the operand's split, or from the shared copy where that is nearer;
3. a way and a result: the reshard to the result's split;
4. two values that hold one array (constraints, what regions take and return, results of main): the reshard between.

What a loop carries is one variable: its result, and the argument of each of its blocks.

Left out, and left to the planner: that users of an open value share a reshard. So the answer is a proposal, which a
plan has to confirm. Values whose splits cannot be listed (of manual regions, with more than ``FEW`` splits) keep their
present one.

Example: ``(x @ w0) @ w1`` on d=4 with nothing but w0 fixed, in columns over d: the variables are x, w1, both results
and both ways; the least sum splits w1's rows over d, and sums the last result.

Complexity: O(ops x ways x splits of a value) for the tables, and that of ``solve``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ops.model import OpModel
from shardpass.ops.splits.factors import Axes, DimAxes, pair_rules
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.counts import Counts
from shardpass.planning.options.hoists import BARRIER, Trips
from shardpass.planning.options.linear import accumulations, waiting
from shardpass.planning.options.partial import layouts, partial_ways, split_of, weighed
from shardpass.planning.options.reshards import Moves, Reshards
from shardpass.planning.options.slack import Samples, Slack, hidden
from shardpass.planning.options.ways import Way, every_split, ways
from shardpass.planning.price.borders import Borders, pair_borders
from shardpass.planning.price.distances import Distances
from shardpass.planning.price.fold import passes
from shardpass.planning.solve.network import Costs, Table
from shardpass.program.program import Array, Op, OpKind
from shardpass.propagation.engine import Value
from shardpass.propagation.program import Propagated

FEW = 216  # splits of one value that are looked at

Values = Mapping[int, int]
Pair = tuple[Moves, int, int]


class _Priced:
    """A table of reshard prices, built again after ``moves`` have been raised."""

    def __init__(
        self,
        variables: tuple[int, ...],
        moves: Sequence[Moves],
        build: Callable[[], Costs],
        pairs: Callable[[Values], Sequence[Pair]],
    ) -> None:
        self.variables, self.moves, self.build, self.pairs = variables, moves, build, pairs
        self._table: Table | None = None
        self._changes = 0

    def forget(self) -> None:
        """Build the table again when it is asked for."""
        self._table = None

    @property
    def table(self) -> Table:
        changes = sum([each.changes for each in self.moves])
        if self._table is None or changes != self._changes:
            self._table, self._changes = Table(self.variables, self.build()), changes
        return self._table


@dataclass(frozen=True, slots=True)
class Place:
    """A value in the tables: its variable and the splits that it may have."""

    variable: int
    domain: tuple[DimAxes, ...]


def alike(one: Place, other: Place) -> Table | None:
    """Return a table that forces two values to the same split; None if they share a variable."""
    if one.variable == other.variable:
        return None
    unlike = [[0.0 if first == second else np.inf for second in other.domain] for first in one.domain]
    return Table((one.variable, other.variable), np.array(unlike))


class ProgramTables:
    """The variables and tables of one program. Variables of values have the engine's numbers, all others higher
    ones.
    """

    def __init__(self, propagated: Propagated, counts: Counts, axes: Sequence[Axes]) -> None:
        self.propagated, self.counts, self.axes = propagated, counts, axes
        self.reshards = Reshards(Distances(counts.clock, axes), counts.clock)
        self.program = counts.program
        self.trips = Trips(self.program, counts.clock.machine)
        self.own: list[Table | _Priced] = []  # of ops by themselves
        self.priced: list[_Priced] = []
        self.slack: Slack | None = None  # in which what is sent counts by the weight ``hideable`` alone
        self.compute = self.hideable = 1.0
        self.least: dict[int, tuple[float, float]] = {}  # of an op that is split: the least work of a run, and runs
        self.domains: dict[int, tuple[DimAxes, ...]] = {}
        self.members: dict[int, list[int]] = {}  # of a variable that stands for several values of the engine
        self.present: dict[int, int] = {}  # of copies: the choice that changes nothing
        self._leaders: dict[int, int] = {}  # of these values, the variable
        self._copies: dict[int, Place] = {}  # of a fixed value, the copy that its users may share
        self._before: dict[int, tuple[Place, int]] = {}  # of a constraint's result: its operand; whether it is made
        self._every: dict[tuple[int, ...], tuple[DimAxes, ...]] = {}
        self._allowed: dict[tuple[object, ...], tuple[DimAxes, ...]] = {}  # of these, by what forbids others
        self.ways: dict[int, tuple[int, tuple[Way, ...]]] = {}  # of an op that is split: the variable and its ways
        self.narrowed = 0  # values that were given their present split alone
        self._next = len(propagated.engine.values)
        fixed = [value for value, index in propagated.index.items() if propagated.engine.values[index].fixed]
        self.waiting = waiting(self.program, fixed)
        self.behind = {number: one.loop.trips or 1 for number, one in accumulations(self.program).items()}
        self.may_wait = {propagated.index[value] for value in self.waiting.values if value in propagated.index}

    def read(self) -> None:
        ops = self.counts.ops.values()
        self.makers = {value: op.number for op, _ in ops for value in op.results}
        for op, _ in ops:
            if op.is_loop:
                self._carry(op)
        for value, count in Counter(value for op, _ in ops for value in {*op.operands}).items():
            if count > 1:
                self._share(value)
        for op, often in ops:
            self._op(op, often)
        for value, slot in zip(self.program.body.returned, self.propagated.results, strict=True):
            if slot is None:
                continue
            values, index = self.propagated.engine.values, self.propagated.index.get(value)
            if index is not None and values[index].fixed:  # what the user fixed leaves as it was fixed
                self.domains[slot] = (values[slot].dims,)
            self._same(value, self.place(slot), self._times(value))
        for members in self.propagated.groups.values():
            self._group(members)

    @property
    def tables(self) -> list[Table]:
        return [one if isinstance(one, Table) else one.table for one in (*self.own, *self.priced)]

    def weigh(self, slack: Slack, compute: float, hideable: float) -> None:
        """Weigh all tables: seconds of work by ``compute``, and what can be hidden in ``slack`` by ``hideable``."""
        self.slack, self.compute, self.hideable = slack, compute, hideable
        for one in (*self.own, *self.priced):
            if isinstance(one, _Priced):
                one.forget()

    def _hidden(self, costs: Costs, slack_of: Callable[[Slack], Samples], copied: Costs | float = 0.0) -> Costs:
        """Return ``costs`` of one run, where the part that fits into the slack counts by its weight. ``copied``: the
        part that is work.
        """
        if self.slack is None:
            return costs
        return hidden(costs - copied, slack_of(self.slack), self.hideable) + self.compute * copied

    def plan(self, values: Values) -> bool:
        """Plan the reshards of an assignment; return whether one costs more than its entry in the tables."""
        before = sum([moves.changes for moves in self.reshards.every])
        for priced in self.priced:
            for moves, source, target in priced.pairs(values):
                moves.plan(source, target)
        return sum([moves.changes for moves in self.reshards.every]) > before

    # ---------------------------------------------------------------- variables

    def _new(self) -> int:
        self._next += 1
        return self._next

    def place(self, index: int) -> Place:
        """Return the variable of a value of the engine, with its splits."""
        variable = self._leaders.get(index, index)
        domain = self.domains.get(variable)
        if domain is None:
            domain = self.domains[variable] = self._domain(self.propagated.engine.values[variable], variable)
        return Place(variable, domain)

    def _of(self, value: int) -> Place | None:
        """Return the variable of a value of the program; None for one without a split."""
        index = self.propagated.index.get(value)
        return None if index is None or index in self.propagated.own else self.place(index)

    def _carry(self, op: Op) -> None:
        for place, result in enumerate(op.results):
            same = [self.propagated.index.get(value) for value in (result, *[b.arguments[place] for b in op.blocks])]
            indices = dict.fromkeys(index for index in same if index is not None)
            if len(indices) == len(same) and not any(index in self._leaders for index in indices):
                leader = next(iter(indices))
                self.members[leader] = list(indices)
                self._leaders.update(dict.fromkeys(indices, leader))

    def _domain(self, value: Value, variable: int) -> tuple[DimAxes, ...]:
        """Return the splits that a value may have; its present one alone if there are too many."""
        if value.fixed or self.propagated.meshes[variable].manual:
            return (value.dims,)
        key = value.shape, value.facts.forbidden, value.divisible_only
        every = self._allowed.get(key)
        if every is None:
            splits = self._splits(value.shape)
            every = self._allowed[key] = tuple([one for one in splits if _allowed(value, one, self.program.mesh)])
        if 0 < len(every) <= FEW:
            return (*every, *layouts(every, self.axes)) if variable in self.may_wait else every
        self.narrowed += 1
        return (value.dims,)

    def _splits(self, shape: tuple[int, ...]) -> tuple[DimAxes, ...]:
        """Return every split of an array of ``shape`` over whole axes into no more parts than it has elements."""
        splits = self._every.get(shape)
        if splits is None:
            splits = self._every[shape] = tuple(every_split(shape, self.axes, self.program.mesh))
        return splits

    def _share(self, value: int) -> None:
        """Add the copy of ``value`` that several users may share; the user fixed its sharding."""
        place = self._of(value)
        array = self.program.array(value)
        if place is None or len(place.domain) > 1 or value in self.counts.free or not array.bytes:
            return
        if self.counts.meshes[value].manual:  # splits here are of the whole mesh
            return
        splits = self._splits(array.shape)
        if len(splits) > FEW:
            return
        copy = self._copies[value] = Place(self._new(), (place.domain[0], *splits))
        self.present[copy.variable] = 0  # no other copy
        moves, times = (
            self.reshards.of(array, self.counts.meshes[value], place.domain, copy.domain),
            self._times(value),
        )
        self.priced.append(
            _Priced(
                (copy.variable,),
                (moves,),
                lambda: self._hidden(moves.costs, lambda slack: slack.shared(value), moves.copied)[0] * times,
                lambda values: [(moves, 0, values[copy.variable])],
            )
        )

    def copies_at(self, values: Values) -> dict[int, DimAxes]:
        """Return the copies that users share in an assignment, by value of the program."""
        chosen = {value: place.domain[values[place.variable]] for value, place in self._copies.items()}
        return {value: split for value, split in chosen.items() if split != self._copies[value].domain[0]}

    def _times(self, value: int) -> float:
        return self.counts.times.get(value, 1.0)

    # ---------------------------------------------------------------- tables

    def _op(self, op: Op, often: float) -> None:
        if op.kind is OpKind.SPLIT:
            assert op.model is not None
            if op.model.looks_on:
                self._follow(op)
                return
            if not op.model.rule.independent:
                self._split(op.model, op, op.operands, op.results, often, self.counts.borders[op.number])
                return
            for place, (rule, _) in enumerate(pair_rules(op.model.rule)):
                at = pair_borders(self.counts.borders[op.number], place)
                self._split(passes(rule), op, (op.operands[place],), (op.results[place],), often, at)
        elif op.kind is OpKind.CONSTRAINT:
            self._constraint(op)
        elif op.kind is OpKind.CONTROL_FLOW:
            results = [self._of(value) for value in op.results]
            for value, result in zip(op.operands, results, strict=False):
                if op.is_loop:
                    self._same(value, result, self._times(value), op.number)
            for block in op.blocks[op.is_loop :]:
                for value, result in zip(block.returned, results, strict=True):
                    self._same(value, result, self._times(value))
        else:
            self._whole(op)

    def _follow(self, op: Op) -> None:
        """Tie the results of an op to the splits of the operands that it passes on."""
        for value, result in zip(op.operands, op.results, strict=False):
            source, target = self._of(value), self._of(result)
            if source is not None and target is not None:
                table = alike(source, target)
                if table is not None and np.isfinite(table.costs).any(axis=1).all():
                    self.own.append(table)

    def _group(self, members: Sequence[int]) -> None:
        """Tie the values of a sharding group to one split, where all of them may have it."""
        first, *others = map(self.place, members)
        for other in others:
            table = alike(first, other)
            if table is not None and np.isfinite(table.costs).any():
                self.own.append(table)

    def _same(self, value: int, target: Place | None, times: float, reader: int | None = None) -> None:
        """Add the reshard of ``value`` to the split of ``target``, for the op ``reader``; None: for what a block
        returns.
        """
        if target is not None:
            self._operand(value, target.variable, target.domain, times, reader)

    def _constraint(self, op: Op) -> None:
        """Add the reshard from the operand of a constraint to its result.

        If the constraint is only a wish, users may read either, and a result that no one reads is not made.
        """
        (value,), (result,) = op.operands, op.results
        source, target = self._of(value), self._of(result)
        if value in self._before:
            source = self._before[value][0]
        holds = op.number not in self.program.wishes
        if holds or source is None or target is None or len(target.domain) > 1 or value in self.counts.free:
            self._same(value, target, self._times(value), op.number)
            return
        array, mesh = self.program.array(value), self.counts.meshes[value]
        made = self._new()
        self.present[made] = 1
        moves, times, variable = (
            self.reshards.of(array, mesh, source.domain, target.domain),
            self._times(value),
            source.variable,
        )
        self.priced.append(
            _Priced(
                (variable, made),
                (moves,),
                lambda: moves.costs[:, 0, None] * np.array([0.0, times]),
                lambda values: [(moves, values[variable], 0)] if values[made] else [],
            )
        )
        self._before[result] = (source, made)

    def _whole(self, op: Op) -> None:
        """Add the gathers of an op that needs its operands whole."""
        for value in dict.fromkeys(op.operands) if op.kind is OpKind.WHOLE else ():
            array = self.program.arrays[value]
            if array is not None:
                variable = self._new()
                self._operand(value, variable, (((),) * array.rank,), self.counts.often(value, (op.number,)), op.number)

    def _operand(
        self,
        value: int,
        variable: int,
        wanted: Sequence[DimAxes | None],
        times: float,
        reader: int | None,
        op: int | None = None,
    ) -> None:
        """Add the reshards of ``value`` to each split in ``wanted``, one for each value of ``variable``.

        ``times``: how often they run. ``reader``: the op that takes it; None: a block returns it. ``op``: the op whose
        way the variable is, if it is one.
        """
        source = self._of(value)
        if source is None or source.variable == variable:
            return
        array, mesh = self.program.array(value), self.counts.meshes[value]
        if value in self.counts.free:
            self._again(value, source, variable, wanted, times)
            return
        read = [dims is not None for dims in wanted]
        targets = [dims if dims is not None else ((),) * array.rank for dims in wanted]

        def weight(sources: Sequence[DimAxes]) -> Costs:
            once = times * np.array(read, np.float64)[None, :]
            if op is None or self.trips.room > array.bytes:
                return once
            before, after = ([_bytes_of(array, mesh, dims) for dims in side] for side in (sources, targets))
            return once * self.trips.of(value, op, before, after)

        def hid(moves: Moves) -> Costs:
            return self._hidden(
                moves.costs,
                lambda slack: slack.returned(value) if reader is None else slack.operand(reader, value),
                moves.copied,
            )

        own = weight(source.domain)
        moves = self.reshards.of(array, mesh, source.domain, targets)
        if value in self._before and self._before[value][0].variable != variable:
            before, made = self._before[value]
            other = self.reshards.of(array, mesh, before.domain, targets)
            theirs = weight(before.domain)
            self.priced.append(
                _Priced(
                    (before.variable, made, variable),
                    (moves, other),
                    lambda: _stacked(weighed(hid(other), theirs), weighed(hid(moves), own)),
                    lambda values: [
                        (other, values[before.variable], values[variable]),
                        (moves, 0, values[variable]),
                    ],
                )
            )
        elif value in self._copies:
            copy = self._copies[value]
            shared = self.reshards.of(array, mesh, copy.domain, targets)
            theirs = weight(copy.domain)
            self.priced.append(
                _Priced(
                    (copy.variable, variable),
                    (moves, shared),
                    lambda: np.minimum(weighed(hid(shared), theirs), weighed(hid(moves), own)),
                    lambda values: [
                        (shared, values[copy.variable], values[variable]),
                        (moves, 0, values[variable]),
                    ],
                )
            )
        else:
            self.priced.append(
                _Priced(
                    (source.variable, variable),
                    (moves,),
                    lambda: weighed(hid(moves), own),
                    lambda values: [(moves, values[source.variable], values[variable])],
                )
            )

    def _operand_twice(
        self, value: int, variable: int, several: Sequence[Sequence[DimAxes | None]], times: float, op: int
    ) -> None:
        """Add the reshards of ``value`` for the operands of ``op`` that all are this one array.

        The plan makes one of the copies first, or the whole array, and each other one from the array or from a copy.
        """
        array, mesh, start = self.program.array(value), self.counts.meshes[value], len(self.priced)
        whole: Sequence[DimAxes] = (((),) * array.rank,) * len(several[0])
        for wanted in (*several, whole):
            self._operand(value, variable, wanted, times, op, op)
        if len(self.priced) == start:
            return
        *each, first = self.priced[start:]
        del self.priced[start:]
        splits = tuple(dict.fromkeys(dims for wanted in several for dims in wanted if dims is not None))
        moves, rows = self.reshards.of(array, mesh, splits, splits), {dims: row for row, dims in enumerate(splits)}
        places = [np.array([-1 if dims is None else rows[dims] for dims in wanted]) for wanted in several]

        def build() -> Costs:
            costs = self._hidden(moves.costs, lambda slack: slack.operand(op, value), moves.copied) * times
            between = np.pad(costs, (0, 1), constant_values=np.inf)  # an operand that is not read is no source
            alone = [one.build() for one in each]
            near = []
            for place, own in enumerate(alone):
                others = [between[one, places[place]] for at, one in enumerate(places) if at != place]
                near.append(np.minimum(own, np.min(others, axis=0)))
            best: Costs = np.minimum(first.build(), np.sum(alone, axis=0))
            for place, own in enumerate(alone):
                rest = np.sum([one for at, one in enumerate(near) if at != place], axis=0)
                best = np.minimum(best, np.where(places[place] >= 0, own, np.inf) + rest)
            return best

        self.priced.append(
            _Priced(
                first.variables,
                [*[one for priced in each for one in priced.moves], *first.moves, moves],
                build,
                lambda values: [pair for one in each for pair in one.pairs(values)],
            )
        )

    def _again(self, value: int, source: Place, variable: int, wanted: Sequence[DimAxes | None], times: float) -> None:
        """Add the cost to compute ``value`` again, which any device can, under each split in ``wanted``."""
        array, mesh = self.program.array(value), self.counts.meshes[value]
        written = any(self.counts.borders[self.makers[value]].writes)
        rows = {dims: row for row, dims in enumerate(source.domain)}
        costs = np.zeros((len(source.domain), len(wanted)))
        for column, dims in enumerate(wanted):
            if dims is not None:
                tile = math.prod(mesh.tile(array.shape, split_of(dims)))
                price = self.counts.clock.made(tile, array.element, written)
                costs[:, column] = times * price
                if (row := rows.get(dims)) is not None:
                    costs[row, column] = 0.0
        self.priced.append(_Priced((source.variable, variable), (), lambda: self.compute * costs, lambda values: []))

    def _split(
        self,
        model: OpModel[Any],
        op: Op,
        operands: Sequence[int],
        results: Sequence[int],
        often: float,
        at: Borders,
    ) -> None:
        types = tuple([self.program.array(value) for value in operands])
        made = tuple([self.program.array(value) for value in results])
        axes = tuple([each for each in self.axes if not set(each) & set(op.mesh.manual)])
        strategies = ways(model, op.mesh, axes, types, made, self.counts.clock, at)
        if not strategies:
            for value in (*operands, *results):
                self._hold(value)
            return
        places, waits = self.waiting.places.get(op.number, ()), results[0] in self.waiting.values
        if places or waits:
            trips = self.behind.get(op.number, 1)
            strategies = (
                *strategies,
                *partial_ways(model, op.mesh, axes, types, made[0], self.counts.clock, at, places, waits, trips),
            )
        variable = self._new()
        least, _ = self.least.get(op.number, (0.0, 1))
        self.least[op.number] = least + min([way.cost - way.sent for way in strategies]), often
        if op.number not in self.counts.folded.parts and len(operands) == len(op.operands):
            self.ways[op.number] = variable, strategies
        self.own.append(_Priced((variable,), (), lambda: often * self._weighed(op, strategies), lambda values: []))
        wanted: dict[int, dict[tuple[DimAxes | None, ...], None]] = {}  # of each value, the splits by way
        for place, value in enumerate(operands):
            wanted.setdefault(value, {})[tuple([way.operands[place] for way in strategies])] = None
        for value, several in wanted.items():
            times = self.counts.often(value, (op.number,))
            if op.name == BARRIER:
                times = max(times, often)  # it is brought in the loop that the barrier is in
            first, *others = several
            if others:
                self._operand_twice(value, variable, (first, *others), times, op.number)
            else:
                self._operand(value, variable, first, times, op.number, op.number)
        for place, value in enumerate(results):
            target = self._of(value)
            if target is not None:
                sources = [way.results[place] for way in strategies]
                self._made(
                    self.reshards.of(made[place], op.mesh, sources, target.domain, made=True),
                    variable,
                    target.variable,
                    often,
                    op.number,
                )

    def _weighed(self, op: Op, strategies: Sequence[Way]) -> Costs:
        """Return the cost of each way of ``op``."""
        costs: Costs = np.array([way.cost for way in strategies])
        if self.slack is None:
            return costs
        sent: Costs = np.array([way.sent for way in strategies])
        return self.compute * (costs - sent) + self._hidden(sent, lambda slack: slack.result(op.number))

    def _made(self, moves: Moves, variable: int, target: int, often: float, op: int) -> None:
        """Add the reshards from an op's ways to the splits of a result."""
        self.priced.append(
            _Priced(
                (variable, target),
                (moves,),
                lambda: weighed(self._hidden(moves.costs, lambda slack: slack.result(op), moves.copied), often),
                lambda values: [(moves, values[variable], values[target])],
            )
        )

    def _hold(self, value: int) -> None:
        """Leave the value at its present split, as an op beside it has too many ways to list."""
        place = self._of(value)
        self.narrowed += 1
        if place is not None and len(place.domain) > 1:
            present = self.propagated.engine.values[place.variable].dims
            costs = np.array([0.0 if dims == present else np.inf for dims in place.domain])
            self.own.append(Table((place.variable,), costs))


def _bytes_of(array: Array, mesh: PrimeMesh, layout: DimAxes) -> int:
    """Return the bytes of one device's tile."""
    return array.element.bytes(math.prod(mesh.tile(array.shape, split_of(layout))))


def _stacked(one: Costs, other: Costs) -> Costs:
    """Return a table [before, made, variable]: ``one`` if a constraint's result is not made, else the lesser
    of both.
    """
    return np.stack([one, np.minimum(one, other)], axis=1)


def _allowed(value: Value, dims: DimAxes, mesh: PrimeMesh) -> bool:
    used = {axis for one in dims for axis in one}
    even = all(size % mesh.count(one) == 0 for size, one in zip(value.shape, dims, strict=True))
    return not used & value.facts.forbidden and (even or not value.divisible_only)
