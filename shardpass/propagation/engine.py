"""Propagation: derives shardings of all values from the few that the user gave.

Problem: each value of ``main`` is to have a split (``DimAxes``), such that ops move as few bytes as a local view can
tell. After GSPMD (Xu et al. 2021: rounds of ops by priority, merging of splits) and Shardy (factors, priorities of
the user); docs/propagation.md has worked examples and says where both differ.

State: the split of each value, which only grows; the steps, one for each op and each tie between values; a work list.
Invariants: a value that the user fixed never changes, but for its open dimensions; no split has more shards than
elements.

Cases, in this order:

1. The user's priorities (SDY): a dimension of priority p takes part from turn p on, with the axes that the user gave
   it and, where it is open, those that it is given; each turn runs all rounds.
2. Rounds of ops: those that pass shardings through; then contractions and reductions; then expansions (broadcasts,
   iota, constants), so that computed arrays decide before constants. Each round is a
   fixpoint: a step joins the splits of its values (``join``), and every step that touches a changed value is looked at
   again. On x=2, rows of a weight reach a bias only in the third round, after the activations did.
3. Ties: where two factors want one sub-axis and bytes do not decide (queries and keys of attention split alike), the
   step waits, as other ops often decide. A tie that is left after all rounds goes to the factor whose dimension is
   reduced least further on (``_reduced_later``): scores are split along queries, as the softmax sums over keys.

Equal steps in equal states (the layers of a network) are joined once (``joins``). Complexity: a value changes at most
as often as there are sub-axes, so O(values x sub-axes) steps, of which only distinct ones are worked out.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.propagation.join import NO_FACTS, NOTHING, Facts, Outcome, StepValue, join
from shardpass.propagation.joins import joins

LOOK_AHEAD = 64  # values that are looked at to decide a tie


@dataclass(slots=True)
class Value:
    """A ranked tensor of the program, and the known facts about its sharding."""

    shape: tuple[int, ...]
    bytes: int
    dims: DimAxes
    fixed: bool = False  # annotated by the user: closed dimensions never change
    open_dims: frozenset[int] = frozenset()
    by_priority: dict[int, dict[int, Axes]] = field(
        default_factory=dict
    )  # priority -> dimension -> the user's sub-axes
    divisible_only: bool = False  # takes only splits that divide it: an argument or result of main
    replicated_axes: frozenset[int] = frozenset()  # sub-axes that the user forbids
    steps: list[int] = field(default_factory=list)  # indices of the steps that touch it
    facts: Facts = NO_FACTS  # inputs of ``join`` besides ``dims``; made when propagation begins
    state: int = -1  # a number for (facts, dims)


@dataclass(frozen=True, slots=True)
class Step:
    """An op, or a tie between values: its rule and its values (indices), operands first.

    ``frozen``: positions of values that the step reads and never changes (a barrier).
    """

    rule: Rule
    values: tuple[int, ...]
    name: str = ""
    op: int | None = None  # the number of the op
    frozen: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two conflicting splits of one factor: the chosen and the refused split, with the bytes in favor of each."""

    step: int
    factor: int
    chosen: Axes
    refused: Axes
    chosen_bytes: int
    refused_bytes: int


@dataclass(frozen=True, slots=True)
class Event:
    """One change, for the trace: a step extended the split of a value."""

    step: int
    position: int  # of the value among the step's operands and results
    before: DimAxes
    after: DimAxes


class Propagation:
    """The engine. Fill ``values`` and ``add`` steps, then ``run``. ``events`` lists its changes, in order."""

    def __init__(self, mesh: PrimeMesh) -> None:
        self.mesh = mesh
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.conflicts: dict[tuple[int, int], Conflict] = {}
        self.events: list[Event] = []
        self.waiting: dict[int, None] = {}  # steps with a tie between factors, in order
        self._joins = joins(mesh.sizes)
        self._kinds: list[int] = []  # of each step, the number of those that join as it does

    def add_value(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def add(self, step: Step) -> None:
        index = len(self.steps)
        self.steps.append(step)
        self._kinds.append(self._joins.kind(step.rule, step.frozen, step.values))
        for value in set(step.values):
            self.values[value].steps.append(index)

    def run(self) -> None:
        """Run every round to its fixpoint, for each of the user's priorities in turn."""
        self._begin()
        self._rounds()
        for priority in sorted({p for value in self.values for p in value.by_priority}):
            for value in self.values:
                if priority in value.by_priority:
                    given = value.by_priority[priority]
                    value.facts = self._facts(value, priority)
                    self._set(value, tuple(given.get(dim, axes) for dim, axes in enumerate(value.dims)))
            self._rounds(everything=True)

    def snapshot(self) -> tuple[DimAxes, ...]:
        """Return the splits of all values."""
        return tuple([value.dims for value in self.values])

    def restore(self, splits: Sequence[DimAxes]) -> None:
        """Set all values to a ``snapshot``."""
        for value, dims in zip(self.values, splits, strict=True):
            if value.dims is not dims and value.dims != dims:
                self._set(value, dims)

    def assign(self, splits: Mapping[int, DimAxes]) -> None:
        """Set new splits of some values, with no propagation from there."""
        for index, dims in splits.items():
            self._change(index, dims)

    def refusals(self) -> list[Conflict]:
        """List the conflicts of the current splits."""
        out = []
        for index in range(len(self.steps)):
            out += [Conflict(index, *refused) for refused in self._outcome(index).refusals]
        return out

    def _rounds(self, everything: bool = False) -> None:
        for level in Priority:  # the steps of earlier rounds are at rest until one of these moves something
            first = everything and level == Priority.PASS_THROUGH
            start = [i for i, step in enumerate(self.steps) if first or step.rule.priority == level]
            self._fixpoint(start, level)
        self._ties()

    def _ties(self) -> None:
        """Decide the ties that are left."""
        while self.waiting:  # one at a time: a decision may settle the next tie
            tie = next(iter(self.waiting))
            del self.waiting[tie]
            changed = self._decide(tie)
            self._fixpoint([s for value in changed for s in self.values[value].steps], max(Priority))

    def _fixpoint(self, start: Iterable[int], level: Priority) -> None:
        queue = deque(start)
        waiting = set(queue)
        steps, values, kinds, outcomes = self.steps, self.values, self._kinds, self._joins.outcomes
        while queue:
            index = queue.popleft()
            waiting.discard(index)
            if outcomes.get((kinds[index], *[values[v].state for v in steps[index].values])) is NOTHING:
                continue  # as of most, and known of most
            for value in self._step(index):
                for touched in values[value].steps:
                    if touched not in waiting and steps[touched].rule.priority <= level:
                        waiting.add(touched)
                        queue.append(touched)

    def _step(self, index: int) -> list[int]:
        """Join the splits of one op's values; returns the values that changed.

        The result depends only on the rule and the values' facts and splits, so equal steps in equal states (the
        layers of a network) are joined once.
        """
        return self._apply(index, self._outcome(index))

    def _outcome(self, index: int) -> Outcome:
        step, values = self.steps[index], self.values
        key = (self._kinds[index], *[values[v].state for v in step.values])
        outcome = self._joins.outcomes.get(key)
        if outcome is None:
            outcome = self._joins.outcomes[key] = self._joined(step, None)
        return outcome

    def _decide(self, index: int) -> list[int]:
        """Join as ``_step``, and decides a tie by the dimension that is reduced further on."""
        step = self.steps[index]
        return self._apply(index, self._joined(step, lambda f, axes: self._reduced_later(step, f, axes)))

    def _joined(self, step: Step, reduced_later: Callable[[int, Axes], int] | None) -> Outcome:
        sides = [StepValue(v, self.values[v].facts, self.values[v].dims) for v in step.values]
        return join(step.rule, step.frozen, sides, self.mesh.sizes, reduced_later)

    def _apply(self, index: int, outcome: Outcome) -> list[int]:
        if outcome.waits:
            self.waiting[index] = None
        for refused in outcome.refusals:
            self.conflicts[index, refused.factor] = Conflict(index, *refused)
        changed: list[int] = []
        for position, dims in outcome.changes:
            number = self.steps[index].values[position]
            value = self.values[number]
            self.events.append(Event(index, position, value.dims, dims))
            self._change(number, dims)
            changed.append(number)
        return changed

    def _change(self, index: int, dims: DimAxes) -> None:
        """Set the split of a value."""
        value = self.values[index]
        value.dims = dims
        state = value.facts.states.get(dims)
        value.state = self._joins.state(value.facts, dims) if state is None else state

    def _set(self, value: Value, dims: DimAxes) -> None:
        value.dims = dims
        value.state = self._joins.state(value.facts, dims)

    def _begin(self) -> None:
        """Number the facts and states of all values: equal ones get the same number."""
        for value in self.values:
            value.facts = self._facts(value, 0)
            self._set(value, value.dims)

    def fix(self, index: int) -> None:
        """Fix the current split of the value, as if the user had annotated it."""
        value = self.values[index]
        value.fixed = True
        value.facts = self._facts(value, sys.maxsize)
        self._set(value, value.dims)

    def _facts(self, value: Value, turn: int) -> Facts:
        """Return the facts of a value in the turn of a priority; equal facts are one object."""
        waiting = [given for priority, given in value.by_priority.items() if priority > turn]
        facts = Facts(
            value.shape,
            value.bytes,
            value.fixed,
            value.open_dims.difference(*waiting),
            value.replicated_axes.union(a for given in waiting for axes in given.values() for a in axes),
            value.divisible_only,
        )
        return self._joins.facts(facts)

    def _reduced_later(self, step: Step, factor: int, axes: Axes) -> int:
        """Count bytes of the values joined along ``factor`` if ``axes`` split it: here, or further on.

        Counts only values that the decision would change: values with that split already, and values that the user
        fixed, end the search.
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
                    new = {(result, d) for d, factors in enumerate(dim_map) if mapped & set(factors)} - seen
                    seen |= new
                    todo += sorted(pair for pair in new if self._takes(*pair, axes))
        return total

    def _takes(self, value: int, dim: int, axes: Axes) -> bool:
        """Return whether dimension ``dim`` of ``value`` may still be split over ``axes``, and is not yet."""
        known = self.values[value]
        closed = known.fixed and dim not in known.open_dims
        return not closed and known.dims[dim][: len(axes)] != axes


@lru_cache(maxsize=4096)
def tie(shape: tuple[int, ...]) -> Rule:
    """Return the rule of two values that hold the same array (a constraint, a function's result)."""
    build = RuleBuilder([len(shape)], [len(shape)])
    for dim, size in enumerate(shape):
        factor = build.factor(size)
        build.operand(0, dim, factor)
        build.result(0, dim, factor)
    return build.build()


@lru_cache(maxsize=4096)
def border(outer: tuple[int, ...], inner: tuple[int, ...]) -> Rule:
    """Return the rule of a manual region's border: outer dimensions are (manual part, inner dimension)."""
    build = RuleBuilder([len(outer)], [len(inner)])
    for dim, (whole, part) in enumerate(zip(outer, inner, strict=True)):
        if part and whole > part:
            build.operand(0, dim, build.factor(whole // part))
        free = build.factor(part)
        build.operand(0, dim, free)
        build.result(0, dim, free)
    return build.build()


def describe(conflict: Conflict, mesh: PrimeMesh) -> str:
    """Explain to people which split won and why."""
    return (
        f"split over {mesh.names(conflict.chosen)} ({conflict.chosen_bytes} bytes) "
        f"rather than {mesh.names(conflict.refused)} ({conflict.refused_bytes} bytes)"
    )
