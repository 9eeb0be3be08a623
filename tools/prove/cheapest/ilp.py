"""The cheapest program as an integer linear program, solved by HiGHS: a bound that no plan can be below.

Problem: choose for each op an option (``options``), and for each array the copies that exist and what each is made
from, such that every operand finds its copy and the sum of all costs is least. After Alpa (Zheng et al. 2022) and
AutoParallel; they pay for each edge of the program by itself, here an array is brought to a sharding once, however many
ops take it from there, and a copy may start from any other copy, as in the planner.

Columns, all 0 or 1. Distances between shardings are the least that any chain of moves costs.

1. ``y[o,j]``: op o takes option j, which makes its results under one sharding each; for an argument the options are
   its shardings. One option an op; an op that can be computed again (``rematerialize``) takes at least one, and each
   makes a copy and pays for its work.
2. An array that is used once: ``f[S,T]`` takes it from S, where an option made it, to T, where the op's option wants
   it: sums of f over T are at most y's that make S, sums over S at least y's that take T.
3. An array that is used K > 1 times: the copies form a tree, from what an option made to what each use takes. A tree
   with K leaves branches in at most K - 1 places. ``hub[l,X]``, l = 1..K-1 (at most ``HUBS``), says that X is there,
   made from the option's copy (l = 1) or from a hub of l - 1; each use takes f[X,T] from a hub of the last level. A hub
   costs its distance, which is 0 from the same sharding: so a copy that two uses take is a hub, and paid once.
4. A result of main is a use that may take any sharding that the outside can hold, or the one that the user fixed.

What the model does not know of the planner, all of which makes plans dearer, so that the bound stays one: the planner
decides op by op, in program order, among the splits that an op's values suggest; it holds each value under one wanted
sharding; it computes again at most ``rematerialize.DEPTH`` ops up, and only where its own estimate of a move is dearer.
A bound below every plan is therefore no error; ``witness`` says how far the best plan found is from it. A plan whose
arrays branch in more than ``HUBS`` places, or that splits what ``Space`` does not split, could be below it.

Columns that alone cost more than a plan at hand are left out. Size: some thousands of columns for 12 ops and arrays
with 11 to 19 shardings each; as a rule tenths of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from shardpass.ops.splits.factors import Kind
from shardpass.program.program import Op, OpKind, Program
from shardpass.sharding import Sharding
from tools.prove.cheapest.options import Costs, Option
from tools.prove.cheapest.space import Slot, Space

HUBS = 3  # levels
SLACK = 1e-6  # HiGHS takes what is this near to a whole number for one


@dataclass(frozen=True)
class Solution:
    """``bound``: no plan is cheaper. What the solver chose, by array (``roots``), by (op, operand), by result."""

    bound: float
    exact: bool  # HiGHS closed the gap within its time
    made: Mapping[int, list[Sharding]]
    taken: Mapping[tuple[int, int], list[Sharding]]
    left: Mapping[int, Sharding]


@dataclass(slots=True)
class _Rows:
    """Columns and rows under construction."""

    costs: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def column(self, cost: float, whole: bool = False) -> int:
        """``whole`` where the others do not make it so."""
        self.costs.append(cost)
        self.whole.append(int(whole))
        return len(self.costs) - 1

    def total(self, columns: Iterable[int], low: float, high: float = np.inf, less: Iterable[int] = ()) -> None:
        """``low <= sum(columns) - sum(less) <= high``."""
        row = len(self.low)
        self.entries += [(row, column, 1.0) for column in columns]
        self.entries += [(row, column, -1.0) for column in less]
        self.low.append(low)
        self.high.append(high)

    def covered(self, many: Iterable[int], by: Iterable[int]) -> None:
        """``sum(many) <= sum(by)``."""
        self.total(by, 0.0, less=many)

    def solve(self, seconds: float) -> tuple[np.ndarray[Any, Any], float, bool]:
        """The values, the bound, and whether it is reached."""
        scale = max(self.costs) or 1.0
        rows, columns, weights = zip(*self.entries, strict=True)
        matrix = csr_matrix((weights, (rows, columns)), shape=(len(self.low), len(self.costs)))
        found = milp(
            np.array(self.costs) / scale,
            integrality=np.array(self.whole),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, np.array(self.low), np.array(self.high)),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if found.x is None:
            raise TimeoutError(f"HiGHS: {found.message}")
        exact = found.status == 0
        return found.x, float(found.fun if exact else found.mip_dual_bound) * scale, exact


@dataclass(slots=True)
class _Use:
    """Where an array is taken: the columns that take it, by sharding. ``many``: under several shardings perhaps."""

    takes: dict[Sharding, list[int]] = field(default_factory=dict)
    many: bool = False


class Cheapest:
    """The integer program of one ``Space``. ``below``: the price of a plan at hand."""

    def __init__(self, space: Space, costs: Costs, below: float = np.inf) -> None:
        self.space, self.costs, self.program, self.below = space, costs, space.program, below
        self.rows = _Rows()
        self.root = roots(self.program)
        self.makes: dict[int, dict[Sharding, list[int]]] = {}  # y by array and sharding
        self.uses: dict[int, list[_Use]] = {root: [] for root in self.root.values()}
        self.by_operand: dict[tuple[int, int], _Use] = {}
        self.by_result: dict[int, _Use] = {}
        self._arguments()
        self._ops()
        self._results()
        times = self._times()
        for array, uses in self.uses.items():
            if uses:
                self._array(array, uses, times[array])

    # ---------------------------------------------------------------- 1

    def _make(self, value: int, sharding: Sharding, column: int) -> None:
        self.makes.setdefault(self.root[value], {}).setdefault(sharding, []).append(column)

    def _arguments(self) -> None:
        for value in self.program.body.arguments:
            columns = []
            for sharding in self.space.domains[value]:
                columns.append(self.rows.column(0.0, whole=True))
                self._make(value, sharding, columns[-1])
            self.rows.total(columns, 1, 1)

    def _ops(self) -> None:
        ops = [op for op in self.program.body.ops if op.kind is not OpKind.CONSTRAINT and self._used(op)]
        options = {op.number: self.costs.options(op, self.program) for op in ops}
        least = {number: min(option.cost for option in some) for number, some in options.items()}
        room = self.below * (1 + SLACK) - sum(least.values())
        for op in ops:
            self._op(op, [one for one in options[op.number] if one.cost - least[op.number] <= room])

    def _used(self, op: Op) -> bool:
        """Whether a result of main depends on ``op``: of these alone a plan must have one option at least."""
        if not hasattr(self, "_live"):
            live = set(self.program.body.returned)
            for one in reversed(self.program.body.ops):
                if live.intersection(one.results):
                    live.update(one.operands)
            self._live = live
        return bool(self._live.intersection(op.results))

    def _op(self, op: Op, options: list[Option]) -> None:
        again = computed_again(op)
        columns = []
        for option in options:
            column = self.rows.column(option.cost, whole=True)
            columns.append(column)
            for value, sharding in zip(op.results, option.results, strict=True):
                self._make(value, sharding, column)
            for place, taken in enumerate(option.operands):
                if taken is not None:
                    use = self.by_operand.get((op.number, place))
                    if use is None:
                        use = self.by_operand[op.number, place] = _Use(many=again)
                        self.uses[self.root[op.operands[place]]].append(use)
                    use.takes.setdefault(taken, []).append(column)
        self.rows.total(columns, 1, np.inf if again else 1)

    # ---------------------------------------------------------------- 4

    def _results(self) -> None:
        for place, value in enumerate(self.program.body.returned):
            use = self.by_result[place] = _Use()
            for sharding in self.space.domains[Slot(place)]:
                use.takes[sharding] = [self.rows.column(0.0, whole=True)]
            self.rows.total([column for (column,) in use.takes.values()], 1, 1)
            self.uses[self.root[value]].append(use)

    # ---------------------------------------------------------------- 2 and 3

    def _times(self) -> dict[int, int]:
        """How often each array may be taken: an op that is computed again takes its operands as often as it runs."""
        times = dict.fromkeys(self.root.values(), 0)
        for value in self.program.body.returned:
            times[self.root[value]] += 1
        for op in reversed(self.program.body.ops):
            if op.kind is not OpKind.CONSTRAINT and self._used(op):
                runs = max(1, times[self.root[op.results[0]]]) if computed_again(op) else 1
                for value in op.operands:
                    times[self.root[value]] += runs
        return times

    def _array(self, array: int, uses: list[_Use], times: int) -> None:
        type_ = self.program.array(array)
        made = self.makes[array]
        wanted = {sharding for use in uses for sharding in use.takes}
        shardings = tuple(dict.fromkeys([*self.costs.domains.of(type_.shape, False), *made, *wanted]))
        place = {sharding: index for index, sharding in enumerate(shardings)}
        far = self.costs.distances(type_, shardings)
        there = {place[sharding]: columns for sharding, columns in made.items()}
        if times > 1:
            for _ in range(min(HUBS, times - 1)):
                there = self._hubs(there, far)
        for use in uses:
            takes = {place[sharding]: columns for sharding, columns in use.takes.items()}
            self._taken(there, takes, far, use.many)

    def _hubs(self, there: dict[int, list[int]], far: np.ndarray[Any, Any]) -> dict[int, list[int]]:
        """Copies made from those that are ``there``."""
        into: dict[int, list[int]] = {}
        for source, columns in there.items():
            for target in range(len(far)):
                if far[source, target] <= self.below:
                    arc = self.rows.column(float(far[source, target]))
                    self.rows.covered([arc], columns)
                    into.setdefault(target, []).append(arc)
        hubs = {}
        for target, arcs in into.items():
            hub = self.rows.column(0.0, whole=True)
            self.rows.covered([hub], arcs)
            hubs[target] = [hub]
        return hubs

    def _taken(
        self, there: dict[int, list[int]], takes: dict[int, list[int]], far: np.ndarray[Any, Any], many: bool
    ) -> None:
        """Brings a copy that is ``there`` to each sharding that is taken."""
        into: dict[int, list[int]] = {}
        for source, columns in there.items():
            arcs = []
            for target in takes:
                if far[source, target] <= self.below:
                    arcs.append(self.rows.column(float(far[source, target])))
                    into.setdefault(target, []).append(arcs[-1])
            if many:
                for arc in arcs:
                    self.rows.covered([arc], columns)
            else:
                self.rows.covered(arcs, columns)
        for target, columns in takes.items():
            if many:
                for column in columns:
                    self.rows.covered([column], into.get(target, ()))
            else:
                self.rows.covered(columns, into.get(target, ()))

    # ---------------------------------------------------------------- solving

    def solve(self, seconds: float = 10.0) -> Solution:
        """Raises TimeoutError where HiGHS found nothing in time."""
        x, bound, exact = self.rows.solve(seconds)

        def chosen(columns: Mapping[Sharding, list[int]]) -> list[Sharding]:
            return [sharding for sharding, some in columns.items() if any(x[column] > 0.5 for column in some)]

        return Solution(
            bound,
            exact,
            {array: chosen(columns) for array, columns in self.makes.items()},
            {key: chosen(use.takes) for key, use in self.by_operand.items()},
            {place: chosen(use.takes)[0] for place, use in self.by_result.items()},
        )


def roots(program: Program) -> dict[int, int]:
    """The first value that holds the array of each value: a constraint's result holds its operand's."""
    root = {value: value for value in range(len(program.arrays))}
    for op in program.body.ops:
        if op.kind is OpKind.CONSTRAINT:
            root[op.results[0]] = root[op.operands[0]]
    return root


def computed_again(op: Op) -> bool:
    """Whether the planner may compute ``op`` again under another sharding (``rematerialize.Movers.made_by``)."""
    if not op.cheap or len(op.results) != 1 or op.model is None:
        return False
    rule = op.model.rule
    return all(f.kind is Kind.PARALLEL and not f.elastic for f in rule.factors) and not rule.independent
