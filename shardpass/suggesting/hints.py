"""Hints: for the most expensive lines, the annotation that would save most; each is tried by planning again.

Problem: a report shows the lines that receive bytes. Its reader wants to know which annotation to write, and a guess
that does not save is worse than no hint.

1. Candidates: values at the most expensive lines (``MOST_LINES``), operands and results of these lines, and arguments.
   Each with the likely specs: the sharding by a search (which decides otherwise where propagation alone was led
   astray), whole, each of its dimensions split over each axis of the mesh, and each pair of
   dimensions over each pair of axes.
2. Each is tried on the folded program (``planning.fold``): propagated, or searched, as the report's pipeline does, and
   planned; its price is compared. At most ``TRIES``.
3. The best of each value, cheapest first, is planned as the pipeline does, on the whole program. An annotation that
   saves no bytes there, makes the plan more expensive, or needs more memory (``MORE_MEMORY``) is no hint.

A constraint is put on the value and, as JAX does, on its gradient.

Example: with rows of x over 'data' and rows of w over 'data', ``y = x @ w`` sums partial results. The hint is
``w = with_sharding_constraint(w, P())``: gathering it costs a tenth.

Complexity: candidates x (propagation and plan of the folded program), and ``VERIFIED`` plans of the whole one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place
from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.splits.specs import spec
from shardpass.passes.propagate import barriers
from shardpass.places.sites import Site, Sites, reading_of
from shardpass.planning.axes import whole_axes
from shardpass.planning.clock import clock_of
from shardpass.planning.cost import costs, price
from shardpass.planning.descent import SMALL
from shardpass.planning.planner import plan_program
from shardpass.planning.search import Search, decide
from shardpass.planning.task import Task
from shardpass.program.program import Op, OpKind
from shardpass.program.shardings import Shardings
from shardpass.propagation.program import Propagated
from shardpass.report.naming import Sources
from shardpass.report.rows import HintFact, folded_name
from shardpass.sharding import Sharding
from shardpass.suggesting.apply import planned
from shardpass.suggesting.places import ARGUMENT, LINE, Group
from shardpass.suggesting.specs import sayable
from shardpass.suggesting.trials import Annotation, annotated

MOST_LINES = 6  # the most expensive lines, whose values are candidates
TRIES = {0: 400, 1: 24, 2: 12}  # by the effort of each trial
VERIFIED = 6  # candidates that are planned on the whole program
MOST_HINTS = 3
LEAST = 0.01  # of all bytes, that a hint saves
MORE_MEMORY = 1.05  # the peak that a hint may lead to, beside that of the program as it is


@dataclass(frozen=True)
class _Candidate:
    annotation: Annotation
    price: float


def find_hints(module: Any, effort: int, machine: Machine, sources: Sources) -> tuple[HintFact, ...]:
    """Returns the hints for a module, which is imported in place, greatest savings first."""
    reading = reading_of(module, sources)
    with module.context:
        return _Hints(Sites(reading), effort, machine).run()


class _Hints:
    """One search for hints. State: the folded program, and the present plan."""

    def __init__(self, sites: Sites, effort: int, machine: Machine) -> None:
        self.sites, self.effort, self.clock = sites, effort, clock_of(machine)
        self.module, self.program, self.names = sites.reading.module, sites.program, sites.names
        self.propagate = f"shardpass-propagate{{effort={effort}}}"
        self.task = Task.of(self.program, barriers(self.program, sites.reading.handles), max(1, effort), machine)
        self.base = planned(self.module, (), self.propagate)
        self.before = price(self.base)
        self.shardings = decide(self.program, self.task.barriers, effort, machine).shardings.of
        self.at = self._lines()

    def run(self) -> tuple[HintFact, ...]:
        if self.program.mesh.mesh.size < 2 or not self.base.bytes_received:
            return ()
        result: list[HintFact] = []
        for candidate in self._ranked()[:VERIFIED]:
            hint = self._verified(candidate.annotation)
            if hint is not None and (hint.place, hint.code) not in {(one.place, one.code) for one in result}:
                result.append(hint)
        result.sort(key=lambda hint: -hint.saves)
        return tuple(result[:MOST_HINTS])

    # ---------------------------------------------------------------- tried on the folded program

    def _ranked(self) -> list[_Candidate]:
        """Returns the best candidate of each value that is cheaper than the present program, cheapest first."""
        as_it_is = self._tried(None)
        best: dict[Group, _Candidate] = {}
        left = TRIES[self.effort]
        for annotation in self._candidates():
            if not left:
                break
            left -= 1
            cost = self._tried(annotation)
            known = best.get(annotation.group)
            if cost < as_it_is * (1 - LEAST / 10) and (known is None or cost < known.price):
                best[annotation.group] = _Candidate(annotation, cost)
        return sorted(best.values(), key=lambda candidate: candidate.price)

    def _tried(self, annotation: Annotation | None) -> float:
        """Returns the price of the folded program with ``annotation``, propagated or searched as the pipeline does."""
        task = self.task
        program = task.folded.program
        changed = program if annotation is None else annotated(program, [annotation], task.folded)
        if self.effort:
            folded = dataclasses.replace(task.folded, program=changed)
            search = Search(task.program, task.barriers, self.effort, task.machine, folded, task.decided)
            search.run()
            return search.best.price
        shardings = Propagated(changed, task.barriers).shardings
        plan = plan_program(changed, shardings, task.decided, folded=task.folded.repeats)
        return sum(costs(plan, self.clock, task.folded).values())

    # ---------------------------------------------------------------- candidates

    def _candidates(self) -> Iterator[Annotation]:
        """Yields candidates, the likeliest first: the splits that a search chooses, then every simple spec."""
        groups = self._groups()
        chosen = self._searched() if self.effort == 0 or self.task.folded.program.count <= SMALL else self.shardings
        seen: set[tuple[Group, DimAxes]] = set()
        for of_group in (lambda group: [self._dims(chosen, group)], lambda group: _simple(group, self.program.mesh)):
            for group in groups:
                for dims in of_group(group):
                    if (group, dims) not in seen and dims != self._dims(self.shardings, group):
                        seen.add((group, dims))
                        yield Annotation(group, dims)

    def _searched(self) -> Mapping[int, Sharding]:
        """Returns the sharding of every value by a search with one more step of effort than the pipeline's."""
        task = self.task
        further = min(2, self.effort + 1)
        search = Search(task.program, task.barriers, further, task.machine, task.folded, task.decided)
        search.run()
        shardings: Shardings = search.unfolded()
        return shardings.of

    def _dims(self, shardings: Mapping[int, Sharding], group: Group) -> DimAxes:
        rank, mesh = group.array.rank, self.program.mesh
        dims = mesh.dims(shardings.get(group.values[0], Sharding.replicated()), rank) or ((),) * rank
        return sayable(dims, group.array.shape, mesh)

    def _groups(self) -> list[Group]:
        """Lists values that a user can constrain: those of the most expensive lines, then arguments."""
        cost = costs(self.base, self.clock)
        sent: dict[Place, float] = {}
        for one in self.base.collectives:
            if one.op is not None:
                place = self._line(one.op)
                sent[place] = sent.get(place, 0.0) + one.bytes * one.times
        for op in self.program.body.every_op():
            sent[self._line(op)] = sent.get(self._line(op), 0.0) + cost.get(op.number, 0.0) * 1e-6
        sent.pop(NOWHERE, None)
        expensive = sorted(sent, key=lambda place: -sent[place])[:MOST_LINES]
        order: dict[int, int] = {}
        for value in (v for place in expensive for op in self.at.get(place, ()) for v in (*op.results, *op.operands)):
            order.setdefault(value, len(order))
        makers = (self.names.makers[value] for value in order if value in self.names.makers)
        lines = [place for place in dict.fromkeys((*expensive, *map(self._line, makers))) if place != NOWHERE]
        groups: dict[int, Group] = {}
        for site in self.sites.values(lines):
            used = [order[value] for value in site.values if value in order]
            if used:
                groups[min(used)] = _group(site)
        for value in filter(self._may_constrain, self.program.body.arguments):
            groups.setdefault(order.get(value, len(order) + value), self._argument(value))
        return list({groups[key].values: groups[key] for key in sorted(groups)}.values())

    def _lines(self) -> Mapping[Place, list[Op]]:
        """Returns the ops of each line, without those of gradients."""
        at: dict[Place, list[Op]] = {}
        for op in self.program.body.every_op():
            if op.kind is OpKind.SPLIT and not self.names.is_backward(op):
                at.setdefault(self._line(op), []).append(op)
        return at

    def _line(self, op: Op) -> Place:
        place = self.names.frame(op).place
        return NOWHERE if place == NOWHERE else Place(place.file, place.line)

    def _may_constrain(self, argument: int) -> bool:
        array, name = self.program.arrays[argument], self.names.of(argument)
        return array is not None and array.rank > 0 and bool(name) and "..." not in name

    def _argument(self, value: int) -> Group:
        """Returns the arguments that an annotation of one names: those that fold to the same."""
        folded, program = self.task.folded.of, self.program
        alike = [other for other in program.body.arguments if folded[other] == folded[value]]
        kind = LINE if value in program.annotations else ARGUMENT
        return Group(kind, tuple(alike), tuple(map(self.names.of, alike)), program.array(value), self._first_use(value))

    def _first_use(self, value: int) -> Place:
        """Returns the line that reads an argument first."""
        result = (self._line(op) for op in self.program.body.every_op() if value in op.operands)
        return next((place for place in result if place != NOWHERE), NOWHERE)

    # ---------------------------------------------------------------- verified on the whole program

    def _verified(self, annotation: Annotation) -> HintFact | None:
        """Plans the whole program with ``annotation``; returns the hint, or None where too little is saved."""
        plan = planned(self.module, [annotation], self.propagate)
        total, after = self.base.bytes_received, plan.bytes_received
        if total - after < LEAST * total or price(plan) >= self.before:
            return None
        if plan.alive.peak > self.base.alive.peak * MORE_MEMORY:
            return None
        group, mesh = annotation.group, self.program.mesh
        now = self._dims(self.shardings, group)
        names = dict.fromkeys(folded_name(name) if len(group.names) > 1 else name for name in group.names)
        return HintFact(
            group.kind,
            ", ".join(list(names)[:4]),
            spec(annotation.dims, mesh),
            spec(now, mesh),
            group.place,
            total,
            after,
            plan.alive.peak - self.base.alive.peak,
        )


def _group(site: Site) -> Group:
    return Group(LINE, site.values, site.names, site.array, Place(site.place.file, site.place.line))


def _simple(group: Group, mesh: PrimeMesh) -> Iterator[DimAxes]:
    """Yields the simple splits: none; each dimension over each axis; each pair of dimensions over each pair of axes."""
    shape = group.array.shape
    axes = [one for one in whole_axes(mesh) if one]
    rank = len(shape)
    yield ((),) * rank
    for axis in axes:
        for dim in range(rank):
            if shape[dim] % mesh.count(axis) == 0:
                yield _split(rank, {dim: axis})
    for first, second in ((a, b) for a in axes for b in axes if a is not b):
        for one, other in combinations(range(rank), 2):
            if shape[one] % mesh.count(first) == 0 and shape[other] % mesh.count(second) == 0:
                yield _split(rank, {one: first, other: second})


def _split(rank: int, by: Mapping[int, Axes]) -> DimAxes:
    return tuple(by.get(dim, ()) for dim in range(rank))
