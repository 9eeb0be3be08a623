"""Propagation: shardings of all values from the few that the user gave.

State: for each value of ``main`` the sub-axes of its dimensions (``DimAxes``), which only grow. A value that the user
fixed never changes; its open dimensions may be split further.

One step takes an op's rule (``factors``): every operand and result says how it splits each factor, the splits are
joined factor by factor, and every value of the op takes what it can of the joined split. Joining: a longer split
that continues a shorter one wins; where two disagree, the one held by more bytes wins (moving the others costs less),
and the choice is recorded. Two factors that want one sub-axis: the one has it that moves fewer bytes (``_cost``: what
has both dimensions is exchanged, what has one is gathered or summed; tokens go to their experts by an exchange, rather
than all tokens to each). Where bytes do not decide either (queries and keys split alike), the step waits: what comes
from other ops often does; what is frozen undecided after all rounds goes to the factor whose dimension is reduced least
further on (``_reduced_later``: scores are split along queries, as the softmax sums over keys).

The user's priorities (SDY) come first: a dimension of priority p is there from round p on. Within one, rounds of ops:
ops that pass shardings through; then contractions and reductions; then expansions (broadcasts, iota,
constants), so that what the program computes on decides before what it makes up. Each round is a fixpoint with a work
list. A value changes at most (number of sub-axes) times, so all is O(values x sub-axes x op size).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from shardpass.ops.splits.factors import (
    Axes,
    DimAxes,
    DimMap,
    Kind,
    Priority,
    Rule,
    RuleBuilder,
    project,
    unproject,
    used_axes,
)
from shardpass.ops.splits.prime_mesh import PrimeMesh

LOOK_AHEAD = 64  # values that are looked at to decide a tie


@dataclass(slots=True)
class Value:
    """A ranked tensor of the program and what is known of its sharding."""

    shape: tuple[int, ...]
    bytes: int
    dims: DimAxes
    fixed: bool = False  # the user's word: closed dimensions never change
    open_dims: frozenset[int] = frozenset()
    by_priority: dict[int, dict[int, Axes]] = field(
        default_factory=dict
    )  # priority -> dimension -> the user's sub-axes
    divisible_only: bool = False  # takes only splits that divide it: what the program shows to the outside
    replicated_axes: frozenset[int] = frozenset()  # sub-axes that must not split it further: the user's word
    steps: list[int] = field(default_factory=list)  # indices of the steps that touch it


@dataclass(frozen=True, slots=True)
class Step:
    """An op, or a tie between values, seen by propagation: its rule and its values (indices), operands first.

    ``frozen``: positions of values that the step reads and never changes (a barrier).
    """

    rule: Rule
    values: tuple[int, ...]
    name: str = ""
    op: int | None = None  # the number of the op
    frozen: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two splits of one factor that do not agree: which was taken, and how many bytes spoke for each."""

    step: int
    factor: int
    taken: Axes
    refused: Axes
    taken_bytes: int
    refused_bytes: int


@dataclass(frozen=True, slots=True)
class Event:
    """One change, for the trace: a step gave a value more of a split."""

    step: int
    position: int  # of the value among the step's operands and results
    before: DimAxes
    after: DimAxes


class Propagation:
    """The engine. Fill ``values`` and ``add`` steps, then ``run``. ``events`` tells every change, in order."""

    def __init__(self, mesh: PrimeMesh) -> None:
        self.mesh = mesh
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.conflicts: dict[tuple[int, int], Conflict] = {}
        self.events: list[Event] = []
        self.waiting: dict[int, None] = {}  # steps with a tie between factors, in order
        self.decide_ties = False

    def add_value(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def add(self, step: Step) -> None:
        index = len(self.steps)
        self.steps.append(step)
        for value in set(step.values):
            self.values[value].steps.append(index)

    def run(self) -> None:
        """To the fixpoint of every round, for each of the user's priorities in turn."""
        self._rounds()
        for priority in sorted({p for value in self.values for p in value.by_priority}):
            for value in self.values:
                if priority in value.by_priority:
                    given = value.by_priority[priority]
                    value.dims = tuple(given.get(dim, axes) for dim, axes in enumerate(value.dims))
            self._rounds(everything=True)

    def _rounds(self, everything: bool = False) -> None:
        for level in Priority:  # the steps of earlier rounds are at rest until one of these moves something
            first = everything and level == Priority.PASS_THROUGH
            start = [i for i, step in enumerate(self.steps) if first or step.rule.priority == level]
            self._fixpoint(start, level)
        while self.waiting:  # one at a time: a decision may settle the next tie
            self.decide_ties = True
            tie = next(iter(self.waiting))
            del self.waiting[tie]
            changed = self._step(tie)
            self.decide_ties = False
            self._fixpoint([s for value in changed for s in self.values[value].steps], max(Priority))

    def _fixpoint(self, start: Iterable[int], level: Priority) -> None:
        queue = deque(start)
        waiting = set(queue)
        while queue:
            index = queue.popleft()
            waiting.discard(index)
            for value in self._step(index):
                for touched in self.values[value].steps:
                    if touched not in waiting and self.steps[touched].rule.priority <= level:
                        waiting.add(touched)
                        queue.append(touched)

    def _step(self, index: int) -> list[int]:
        """Joins the splits of one op's values; returns the values that changed."""
        step = self.steps[index]
        maps = (*step.rule.operands, *step.rule.results)
        held: dict[int, dict[Axes, int]] = {}  # factor -> split -> bytes of the values that hold it
        said: list[dict[int, Axes]] = []
        for value, dim_map in zip(step.values, maps, strict=True):
            known = self.values[value]
            found: dict[int, Axes] = {}
            if any(known.dims):
                found = project(step.rule, dim_map, known.shape, known.dims, self.mesh.sizes)
                for factor, axes in found.items():
                    votes = held.setdefault(factor, {})
                    votes[axes] = votes.get(axes, 0) + known.bytes
            said.append(found)
        if not held:
            return []
        joined = {factor: self._join(index, factor, votes) for factor, votes in held.items()}
        cost = {factor: self._cost(step, said, joined, factor) for factor in held}
        tied = self._tied(joined, cost)
        later = {f: self._reduced_later(step, f, joined[f]) for f in tied} if tied and self.decide_ties else {}
        order = sorted(joined, key=lambda f: (cost[f], later.get(f, 0), f))
        if self.decide_ties:
            tied = set()
        changed = []
        for position, (value, dim_map, own) in enumerate(zip(step.values, maps, said, strict=True)):
            if position in step.frozen:
                continue
            before = self.values[value].dims
            mine = {f for factors in dim_map for f in factors}
            here = [f for f in order if f in mine]
            if len(tied & mine) > 1 and not self.values[value].fixed:
                self.waiting[index] = None
                here = [f for f in here if f not in tied]
            if self._extend(value, dim_map, own, step.rule, joined, here):
                changed.append(value)
                self.events.append(Event(index, position, before, self.values[value].dims))
        return changed

    def _cost(self, step: Step, said: list[dict[int, Axes]], joined: dict[int, Axes], factor: int) -> int:
        """Bytes that move, over all devices, where ``factor`` has the sub-axes that other factors want too.

        A value that splits another factor over them is gathered, or, where it has ``factor`` too, exchanged. Partial
        results are summed where nothing else was wanted of them.
        """
        maps = (*step.rule.operands, *step.rule.results)
        mine = set(joined[factor])
        contested = {a for other, axes in joined.items() if other != factor for a in axes if a in mine}
        if not contested:
            return 0
        total = 0
        partial = step.rule.factors[factor].kind is Kind.REDUCTION
        for position, (value, dim_map, found) in enumerate(zip(step.values, maps, said, strict=True)):
            lost = {a for other, axes in found.items() if other != factor for a in axes if a in mine}
            count = prod(self.mesh.sizes[a] for a in lost or contested)
            moved = self.values[value].bytes * (count - 1) // count
            if lost:
                total += moved // count if any(factor in factors for factors in dim_map) else moved
            elif partial and position >= len(step.rule.operands):
                total += 2 * moved
        return total

    def _tied(self, joined: dict[int, Axes], cost: dict[int, int]) -> set[int]:
        """Factors that want a sub-axis which another factor wants as much."""
        claims: dict[int, list[int]] = {}
        for factor, axes in joined.items():
            for axis in axes:
                claims.setdefault(axis, []).append(factor)
        tied: set[int] = set()
        for factors in claims.values():
            least = min(cost[f] for f in factors)
            best = [f for f in factors if cost[f] == least]
            if len(best) > 1:
                tied.update(best)
        return tied

    def _reduced_later(self, step: Step, factor: int, axes: Axes) -> int:
        """Bytes of the values that are joined along ``factor`` were it split over ``axes``: here, or further on.

        Looks only at what the decision would change: past values that are split so already, or that the user fixed,
        nothing depends on it.
        """
        results = list(zip(step.values[len(step.rule.operands) :], step.rule.results, strict=True))
        if step.rule.factors[factor].kind is not Kind.PARALLEL:
            return sum(self.values[value].bytes for value, _ in results)
        todo = [
            (value, dim)
            for value, dim_map in results
            for dim, factors in enumerate(dim_map)
            if factor in factors and self._takes(value, dim, axes)
        ]
        seen, total = set(todo), 0
        while todo and len(seen) < LOOK_AHEAD:
            value, dim = todo.pop(0)
            for index in self.values[value].steps:
                user = self.steps[index]
                operands = user.values[: len(user.rule.operands)]
                if user is step or value not in operands:
                    continue
                mapped = set(user.rule.operands[operands.index(value)][dim])
                if any(user.rule.factors[f].kind is not Kind.PARALLEL for f in mapped):
                    total += self.values[value].bytes
                for result, dim_map in zip(user.values[len(operands) :], user.rule.results, strict=True):
                    found = {(result, d) for d, factors in enumerate(dim_map) if mapped & set(factors)} - seen
                    seen |= found
                    todo += sorted(pair for pair in found if self._takes(*pair, axes))
        return total

    def _takes(self, value: int, dim: int, axes: Axes) -> bool:
        """Whether dimension ``dim`` of ``value`` may yet be split over ``axes``, and is not."""
        known = self.values[value]
        closed = known.fixed and dim not in known.open_dims
        return not closed and known.dims[dim][: len(axes)] != axes

    def _join(self, step: int, factor: int, votes: dict[Axes, int]) -> Axes:
        """The split that most bytes speak for; a split speaks for its own beginnings too."""
        if len(votes) == 1:
            return next(iter(votes))

        def support(axes: Axes) -> int:
            return sum(b for other, b in votes.items() if axes[: len(other)] == other or other[: len(axes)] == axes)

        best = max(votes, key=lambda axes: (support(axes), len(axes), [-a for a in axes]))
        for other, size in votes.items():
            if best[: len(other)] != other:
                self.conflicts[step, factor] = Conflict(step, factor, best, other, support(best), size)
        return best

    def _extend(
        self, value: int, dim_map: DimMap, own: dict[int, Axes], rule: Rule, joined: dict[int, Axes], order: list[int]
    ) -> bool:
        """Gives ``value``, which holds ``own``, what it can take of the joined splits; True where it changed.

        ``order``: its factors, those first that have the first choice of sub-axes.
        """
        known = self.values[value]
        if known.fixed and not known.open_dims:
            return False
        if all(own.get(factor, ()) == joined[factor] for factor in order):
            return False
        used = set(used_axes(known.dims)) | known.replicated_axes
        used.update(a for given in known.by_priority.values() for axes in given.values() for a in axes)
        wanted: dict[int, Axes] = dict(own)
        for factor in order:
            have, more = own.get(factor, ()), joined[factor]
            if more[: len(have)] != have:
                continue
            fresh = []
            for axis in more[len(have) :]:
                if axis in used:
                    break
                used.add(axis)
                fresh.append(axis)
            wanted[factor] = have + tuple(fresh)
        target = unproject(rule, dim_map, known.shape, wanted, self.mesh.sizes)
        grown = tuple(
            self._grow(known, dim, old, new) for dim, (old, new) in enumerate(zip(known.dims, target, strict=True))
        )
        if grown == known.dims:
            return False
        known.dims = grown
        return True

    def _grow(self, known: Value, dim: int, old: Axes, new: Axes) -> Axes:
        """``new`` where it continues ``old`` and the dimension may change; no more shards than elements."""
        if len(new) <= len(old) or new[: len(old)] != old or (known.fixed and dim not in known.open_dims):
            return old
        taken = len(old)
        while taken < len(new) and self._fits(known, dim, new[: taken + 1]):
            taken += 1
        return new[:taken]

    def _fits(self, known: Value, dim: int, axes: Axes) -> bool:
        size, count = known.shape[dim], prod(self.mesh.sizes[a] for a in axes)
        return size % count == 0 if known.divisible_only else size >= count


def tie(shape: tuple[int, ...]) -> Rule:
    """The rule of two values that hold the same array (a constraint, a function's result)."""
    build = RuleBuilder([len(shape)], [len(shape)])
    for dim, size in enumerate(shape):
        factor = build.factor(size)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
    return build.build()


def border(outer: tuple[int, ...], inner: tuple[int, ...]) -> Rule:
    """The rule of a manual region's border: each outer dimension is (manual part, inner dimension), major to minor."""
    build = RuleBuilder([len(outer)], [len(inner)])
    for dim, (whole, part) in enumerate(zip(outer, inner, strict=True)):
        if part and whole > part:
            build.operand(0, dim, build.factor(whole // part))
        free = build.factor(part)
        build.operand(0, dim, free)
        build.result(0, dim, free)
    return build.build()


def describe(conflict: Conflict, mesh: PrimeMesh) -> str:
    """For people: which split won and why."""
    return (
        f"split over {mesh.names(conflict.taken)} ({conflict.taken_bytes} bytes) "
        f"rather than {mesh.names(conflict.refused)} ({conflict.refused_bytes} bytes)"
    )
