"""The tables of a program (``tables``) with the bytes that live together, solved under further conditions.

Problem: a limit of memory, and the question of what an annotation is worth, are one network solved several times: with
a price for bytes, and with the annotated values fixed. One solution gives all values that are open the shardings under
which the program is cheapest, with a bound.

1. Ties: values that are split alike, as one annotation names them (the weights of all layers), or as a state that a
   step takes and returns comes out as it went in. Each is a table that forbids all else.
2. A charge: seconds for each byte alive at some moments of the program (``planning.footprint``). Memory is a sum over
   values, so that a charge is one table a value, and the tables with it have a bound of their own (``within``).

State: the tables, with the reshards that solutions have planned. Complexity: that of ``Solver.solve``, once a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.planning.decide.candidates import SPLICED, spliced
from shardpass.planning.decide.solver import Solver
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.counts import Counts
from shardpass.planning.options.partial import split_of
from shardpass.planning.options.tables import alike
from shardpass.planning.plan.task import Task
from shardpass.planning.price.footprint import aligned
from shardpass.planning.solve.network import Table
from shardpass.program.shardings import Factors, Shardings
from shardpass.propagation.program import Propagated

Floats = NDArray[np.float64]
Fixed = Mapping[int, DimAxes]  # by value of the engine


@dataclass(frozen=True)
class Answer:
    """Splits of all values of the engine, with their price in seconds and ``least``, a lower bound of all prices.

    ``why``: the reason for which the bound is not closer. ``partial``: for values of the engine that wait, the axes
    over which they are partial. ``values``: of the tables' variables. ``sizes``: the bytes of a device's tile for each
    column of the footprint; ``peak``: the most alive at once. With a charge, ``least`` bounds the price that includes
    it. ``tied``: whether the ties hold.
    """

    splits: tuple[DimAxes, ...]
    ways: Mapping[int, Factors]
    partial: Mapping[int, Axes]
    price: float
    least: float
    why: str
    values: Mapping[int, int]
    sizes: Floats
    peak: float
    tied: bool = True


@dataclass(frozen=True)
class Charge:
    """A charge of ``seconds`` for each byte alive, on average over ``moments`` (rows of the footprint)."""

    seconds: float
    moments: tuple[int, ...]


class Problem:
    """The tables of one program, solved under additional constraints."""

    def __init__(self, task: Task) -> None:
        self.task, self.footprint = task, task.footprint
        self.propagated = Propagated(task.folded.program, task.barriers)
        axes = whole_axes(task.folded.program.mesh)
        self.solver = Solver(self.propagated, Counts(task.folded, task.decided.clock), axes)
        present = self.propagated.shardings.of
        self._columns: list[tuple[int | None, Floats]] = []  # of the footprint: the variable, bytes by its value
        for value, array in zip(self.footprint.column, self.footprint.arrays, strict=True):
            index = self.propagated.index.get(value)
            if index is None or index in self.propagated.own:
                size = self.footprint.tile(array, present.get(value))
                self._columns.append((None, np.array([size], np.float64)))
            else:
                place, mesh = self.solver.place(index), self.propagated.meshes[index]
                sizes = [self.footprint.tile(array, mesh.sharding(dims)) for dims in map(split_of, place.domain)]
                self._columns.append((place.variable, np.array(sizes, np.float64)))

    @property
    def left_out(self) -> str:
        """The reason for which the tables do not cover the whole program, "" if they do."""
        return SPLICED if spliced(self.task.folded.program) else self.solver.left_out

    def shardings(self, answer: Answer) -> Shardings:
        """Convert ``answer`` into shardings of all values of the whole program."""
        engine = self.propagated.engine
        before = engine.snapshot()
        engine.restore(answer.splits)
        of = {index: value for value, index in self.propagated.index.items()}
        partial = {of[index]: axes for index, axes in answer.partial.items()}
        shardings = replace(self.propagated.present(), ways=answer.ways, partial=partial)
        engine.restore(before)
        return self.task.folded.unfolded(shardings)

    def ties(self, several: Iterable[Sequence[int]]) -> list[Table]:
        """Return tables that force the values of the engine in each group of ``several`` to one split."""
        out = []
        for first, *others in several:
            one = self.solver.place(first)
            for other in map(self.solver.place, others):
                table = alike(one, other)
                if table is not None and min(table.costs.shape) > 1:
                    out.append(table)
        return out

    # ---------------------------------------------------------------- solutions

    def solve(
        self,
        fixed: Fixed | None = None,
        ties: Sequence[Table] = (),
        charge: Charge | None = None,
        start: Answer | None = None,
    ) -> Answer:
        """Return the cheapest splits.

        ``fixed``: splits that are given, as far as the tables list them. ``ties``: tables to add, dropped if ``fixed``
        contradicts them. ``charge``: a price for bytes alive. ``start``: an answer to start from.
        """
        given = {}
        for index, dims in (fixed or {}).items():
            place = self.solver.place(index)
            if dims in place.domain:
                given[place.variable] = place.domain.index(dims)
        extra = [] if charge is None else self._charged(charge)
        solution = self.solver.solve((*ties, *extra), given, None if start is None else start.values)
        result = solution.result
        if ties and not result.values:
            return replace(self.solve(fixed, (), charge, start), tied=False)
        splits = [value.dims for value in self.propagated.engine.values]
        for index, dims in solution.splits.items():
            splits[index] = dims
        sizes, price = self.sizes(splits), self.solver.price(result.values)
        peak = float(self.alive(sizes).max())
        parts = tuple(splits), solution.ways, solution.partial, price, result.bound, result.why
        return Answer(*parts, result.values, sizes, peak)

    def sizes(self, splits: Sequence[DimAxes]) -> Floats:
        """Return the bytes of a device's tile for each column of the footprint."""
        out = []
        for variable, sizes in self._columns:
            domain = () if variable is None else self.solver.place(variable).domain
            place = domain.index(splits[variable]) if variable is not None and splits[variable] in domain else 0
            out.append(sizes[place])
        return np.array(out)

    def alive(self, sizes: Floats) -> Floats:
        """Return the bytes alive at each moment, for tiles of these ``sizes``."""
        total: Floats = self.footprint.rows @ aligned(sizes) + self.footprint.fixed @ sizes
        return total

    def _charged(self, charge: Charge) -> list[Table]:
        rows = self.footprint.rows[list(charge.moments)].mean(axis=0)
        costs: dict[int, Floats] = {}
        for row, fixed, (variable, sizes) in zip(rows, self.footprint.fixed, self._columns, strict=True):
            if variable is not None and len(sizes) > 1 and (row or fixed):
                costs[variable] = costs.get(variable, 0.0) + charge.seconds * (row * aligned(sizes) + fixed * sizes)
        return [Table((variable,), cost) for variable, cost in costs.items()]

    def uncharged(self, charge: Charge) -> float:
        """Return the bytes alive at the moments of ``charge`` that cannot be split and that no table charges."""
        rows = self.footprint.rows[list(charge.moments)].mean(axis=0)
        whole = [sizes[0] if variable is None or len(sizes) == 1 else 0.0 for variable, sizes in self._columns]
        sizes = np.array(whole)
        return float(rows @ aligned(sizes) + self.footprint.fixed @ sizes)
