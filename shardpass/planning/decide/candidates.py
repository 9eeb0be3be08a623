"""The candidates of a decision: solutions of the tables of a folded program, under weights and with parts kept.

Complexity: one fold, one propagation, the tables (O(ops x ways x splits of a value)), and a few
solutions of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from shardpass.cost.machine import Machine
from shardpass.cost.material import MATERIAL
from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.planning.decide.solver import Solution, Solver
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.choose import Decided, decided_on
from shardpass.planning.options.counts import Counts
from shardpass.planning.options.partial import over, split_of
from shardpass.planning.options.slack import Slack
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.costly import every_op
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.fold import Folded, fold
from shardpass.planning.price.steps import SplitPlan
from shardpass.planning.solve.network import Table
from shardpass.planning.solve.result import Result
from shardpass.planning.solve.solve import Budget
from shardpass.program.program import Program
from shardpass.program.shardings import Factors, Shardings
from shardpass.propagation.engine import describe
from shardpass.propagation.implied import fix_implied
from shardpass.propagation.program import Propagated
from shardpass.sharding import Sharding

SPLICED = "slices that are joined again become one op after the decision"  # of which tables do not know
WEIGHED = Budget(backtracks=3)  # of each solution with weights
ROUNDS = 1 << 21  # entries of tables in all rounds of each
ENOUGH = 1e-6  # of a price: a smaller gain is rounding, and the annotated sharding is kept


@dataclass(frozen=True)
class Point:
    """The splits of all values of the folded program, and the ways of its ops (by number) that are decided too.

    ``partial``: the axes over which values wait as partial sums. ``copies``: of values that the user fixed, those that
    users share.
    """

    splits: tuple[DimAxes, ...]
    ways: Mapping[int, Factors] = field(default_factory=dict)
    partial: Mapping[int, Axes] = field(default_factory=dict)
    copies: Mapping[int, Sharding] = field(default_factory=dict)


class Search:
    """One decision about a folded program; call ``run``, then plan ``candidates``.

    ``first``: as propagated. ``candidates``: all points that the tables solved.
    """

    solver: Solver | None = None
    solved: Result | None = None
    settles = False
    open_results: tuple[int, ...] = ()  # values of the engine that follow from no annotation
    bounds: tuple[tuple[float, float, float], ...] = ()  # (compute, hideable, least) of each solution of the tables

    def __init__(
        self,
        program: Program,
        barriers: Mapping[int, str],
        machine: Machine,
        folded: Folded | None = None,
        decided: Decided | None = None,
    ) -> None:
        self.program, self.barriers, self.machine = program, barriers, machine
        self.folded: Folded = folded or fold(program, barriers)
        self.propagated = Propagated(self.folded.program, barriers)
        self.engine = self.propagated.engine
        self.decided = decided or decided_on(program.mesh, machine)
        self.counts = Counts(self.folded, self.decided.clock)
        self.first = Point(self.engine.snapshot())
        self.candidates: list[Point] = []
        self.why = ""  # there is no bound

    def unfolded(self, point: Point) -> Shardings:
        """Return the shardings of the whole program at ``point``."""
        self.engine.restore(point.splits)
        refused = self.engine.refusals()
        shardings = replace(
            self.propagated.table(),
            conflicts={
                op: describe(conflict, self.engine.mesh)
                for conflict in refused
                if (op := self.engine.steps[conflict.step].op) is not None
            },
            ways=point.ways,
            partial=point.partial,
            copies=point.copies,
        )
        return self.folded.unfolded(shardings)

    def settle_results(self) -> None:
        """Fix the results of main that follow from annotations, and tiles that ops show to the user. Precedes
        ``run``.
        """
        self.settles = True
        for value in tuple(dict.fromkeys(self._shown())):
            self.engine.fix(value)
        results = [result for result in self.propagated.results if result is not None]
        fix_implied(self.engine, results)
        self.open_results = tuple(result for result in results if not self.engine.values[result].fixed)

    def _shown(self) -> Iterator[int]:
        """Yield the values of the engine that are not fixed and whose tiles an op shows to the user, such as
        debugging callbacks.
        """
        for op in self.program.body.every_op():
            if op.model is not None and op.model.shows_tiles:
                for value in op.operands:
                    index = self.propagated.index.get(self.folded.of[value])
                    if index is not None and not self.engine.values[index].fixed:
                        yield index

    def run(self) -> None:
        """Solve the tables."""
        self.solver = solver = Solver(self.propagated, self.counts, whole_axes(self.folded.program.mesh))
        spliced = self._spliced()
        self.why = SPLICED if spliced else solver.left_out
        self.kept = self._present(spliced)
        solution = solver.solve(fixed=self.kept)
        if not solution.result.values:
            self.why = "no assignment of the tables keeps all that is fixed"
            return
        self._solved(solution)
        if not solution.splits.keys().isdisjoint(self.open_results):
            kept = solver.solve(fixed=self.kept | self._present(self.open_results), start=solution.result.values)
            if kept.result.values:
                self._add(kept)
                if solution.result.price > kept.result.price * (1 - MATERIAL):
                    self._solved(kept)
                    return
        self._add(solution)

    def _solved(self, solution: Solution) -> None:
        self.solved = solution.result
        self.bounds = ((1.0, 1.0, solution.result.bound),)

    def _spliced(self) -> list[int]:
        """Return the values of the engine that ops read or make which become one op later."""
        numbers, index = spliced(self.folded.program), self.propagated.index
        ops = [op for op in self.folded.program.body.every_op() if op.number in numbers]
        return [index[value] for op in ops for value in (*op.operands, *op.results) if value in index]

    def least(self) -> float:
        """Return a lower bound on the makespan of all shardings in the tables; 0 if there is no bound.

        Of a plan with the work W, the communication C, and C beyond the slacks of its edges E, one collective at a
        time: its makespan is at least W, at least C, and at least E and the least work of each op, L. So for weights
        k of work and h of what fits into slacks, the tables at least b: makespan >= (b + (1 - h) L) / (1 + k). Slacks
        of more work than the least are greater, and their bound is one.
        """
        if self.solver is None or self.why or self.machine.in_flight != 1:
            return 0.0
        work = math.fsum([least * often for least, often in self.solver.network.least.values()])
        return max([work, *[(least + (1 - hide) * work) / (1 + compute) for compute, hide, least in self.bounds]])

    def _present(self, indices: Iterable[int]) -> dict[int, int]:
        """Return the choice of each value of the engine that leaves it as it was propagated, by variable."""
        assert self.solver is not None
        dims_of = self.first.splits
        places = [(self.solver.place(index), dims_of[index]) for index in indices]
        return {place.variable: place.domain.index(dims) for place, dims in places if dims in place.domain}

    def cheaper_than(self, plan: ProgramPlan) -> bool:
        """Return whether the solution of the tables costs less than ``plan``."""
        return self.solved is not None and self.solved.price < price(plan) * (1 - ENOUGH)

    def with_sums_that_wait(self, plain: ProgramPlan, best: ProgramPlan, beside_whole: bool) -> Point | None:
        """Return the propagated shardings with sums that wait, ``beside_whole`` summands too or, as later passes join
        them (``passes.combine``), beside others alone; None where such a plan cannot be faster than ``best``.
        """
        solver = self.solver
        if solver is None or self.solved is None or not solver.network.may_wait:
            return None
        mixed = () if beside_whole else solver.network.waiting.beside_whole(self.folded.program)
        if not (mixed or beside_whole):
            return None
        self.engine.restore(self.first.splits)
        complete = {self.propagated.index[value] for value in mixed}
        fixed, more = {}, []
        for variable, domain in solver.network.domains.items():
            dims = self.engine.values[variable].dims
            same = [split_of(layout) == dims and not (over(layout) and variable in complete) for layout in domain]
            if sum(same) == 1:
                fixed[variable] = same.index(True)
            elif any(same):
                more.append(Table((variable,), np.where(same, 0.0, np.inf)))
        solution = solver.solve(more, fixed, budget=WEIGHED, entries=ROUNDS)
        saved = price(plain) - solution.result.price
        if not solution.partial or plain.makespan - saved >= best.makespan:
            return None
        return self._add(solution)

    def weighed(self, plan: ProgramPlan, compute: float, hideable: float) -> Point | None:
        """Return the solution of the tables in which what can be hidden counts in part; None if it is known.

        ``plan``: the best so far, for which the slacks are.
        """
        if self.solved is None or self.solver is None:
            return None
        slack = self.solver.network.slack or Slack(self.program, self.folded, plan.compute_by_op())
        solution = self.solve_weighed(slack, compute, hideable)
        return self._add(solution) if solution.result.values else None

    def as_propagated(self, plain: ProgramPlan, numbers: Collection[int]) -> Point | None:
        """Return the solution of the tables in which the ops ``numbers`` run as in ``plain``, the plan of propagation
        alone, on what they read and make there; None if it is known.
        """
        if self.solved is None or self.solver is None:
            return None
        self.engine.restore(self.first.splits)
        fixed, values = self.kept | self._present(self.open_results), set[int]()
        for one in every_op(plain.body):
            if one.op.number in numbers:
                values |= {self.folded.of[value] for value in (*one.op.operands, *one.op.results)}
                variable, ways = self.solver.network.ways.get(self.folded.ops.get(one.op.number, -1), (-1, ()))
                split = one.local.split if isinstance(one, SplitPlan) else None
                same = [
                    way for way in ways if split and way.operands == split.operands and way.results == split.results
                ]
                if same:
                    fixed[variable] = ways.index(same[0])
        index = self.propagated.index
        solution = self.solver.solve(
            fixed=fixed | self._present([index[value] for value in values if value in index]), start=self.solved.values
        )
        return self._add(solution) if solution.result.values else None

    def solve_weighed(self, slack: Slack, compute: float, hideable: float, entries: int = ROUNDS) -> Solution:
        """Solve the tables with weights, from their solution, and add the bound; once without ``entries``."""
        assert self.solver is not None
        assert self.solved is not None
        solver = self.solver
        self.engine.restore(self.first.splits)
        solver.network.weigh(slack, compute, hideable)
        fixed = self.kept | self._present(self.open_results)
        solution = solver.solve(fixed=fixed, start=self.solved.values, budget=WEIGHED, entries=entries)
        if solution.result.values:
            self.bounds += ((compute, hideable, solution.result.bound),)
        return solution

    def _add(self, solution: Solution) -> Point | None:
        """Add the point of a solution of the tables to the candidates; return None if it is known.

        Where the tables leave something out, the ways that the planner chooses are a candidate, too.
        """
        self.engine.restore(self.first.splits)
        self.engine.assign(solution.splits)
        values = {index: value for value, index in self.propagated.index.items()}
        partial = {values[index]: axes for index, axes in solution.partial.items()}
        copies = {value: self.counts.meshes[value].sharding(split) for value, split in solution.copies.items()}
        point = Point(self.engine.snapshot(), solution.ways, partial, copies)
        self.engine.restore(self.first.splits)
        if point in (self.first, *self.candidates):
            return None
        self.candidates.append(point)
        if self.why:
            self.candidates.append(Point(point.splits))
        return point

    @property
    def changes(self) -> int:
        """The number of ``neighbors`` of any splits, at most."""
        if self.solver is None or self.solved is None:
            return 0
        domains = self.solver.network.domains
        return sum(len(domain) - 1 for variable, domain in domains.items() if variable not in self.kept)

    def neighbors(self, splits: tuple[DimAxes, ...]) -> Iterator[tuple[DimAxes, ...]]:
        """Yield ``splits`` with one open value, and those that are tied to it, split otherwise."""
        assert self.solver is not None
        network = self.solver.network
        groups = {index: members for members in self.propagated.groups.values() for index in members}
        for variable, domain in network.domains.items():
            members = groups.get(variable) or network.members.get(variable) or [variable]
            for layout in domain if variable not in self.kept else ():
                if not over(layout) and layout != splits[variable]:
                    yield tuple([layout if index in members else dims for index, dims in enumerate(splits)])


def spliced(program: Program) -> frozenset[int]:
    """Return the numbers of concatenates of slices, and of these slices, which partitioning joins into one op."""
    cut = {value: op.number for op in program.body.every_op() if op.name == "stablehlo.slice" for value in op.results}
    numbers: set[int] = set()
    for op in program.body.every_op():
        if op.name == "stablehlo.concatenate" and not cut.keys().isdisjoint(op.operands):
            numbers.add(op.number)
            numbers.update(cut[value] for value in op.operands if value in cut)
    return frozenset(numbers)
