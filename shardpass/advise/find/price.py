"""The price of a program with changed annotations, by a model that takes milliseconds: propagated, planned and priced.

Another partitioner propagates the user's annotations and searches nothing. So the price of a program with changes is
that of the folded program (``planning.fold``), propagated (effort 0) and planned, and a little for the bytes at the
peak of memory. The price only selects the changes that are worth compiling; their saving is measured afterwards.

State: the folded program and its decisions, shared by all prices. Complexity: one propagation and one plan of the
folded program for each price.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardpass.advise.place.sites import ARGUMENT, BORDER, CHUNKS, CONSTRAINT, CUT, MESH, RESULT, Reading
from shardpass.advise.place.write import Change, on_values
from shardpass.cost.machine import Machine
from shardpass.diagnostics import collect
from shardpass.passes.propagate import barriers
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.planning.decide.candidates import Search
from shardpass.planning.plan.cost import costs
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.plan.task import Task, holding
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.fold import Folded
from shardpass.program.program import NO_ANNOTATION, OpKind, Program, ValueAnnotation, constraints_of
from shardpass.propagation.program import Propagated
from shardpass.sharding import Sharding

LARGEST = 2_000  # ops of a folded program that is decided


def propagated(imported: Any, changes: Sequence[Change], propagate: str) -> Any:
    """Return a copy of ``imported`` with ``changes`` after the pass ``propagate`` (with its options)."""
    module = on_values(imported, changes)
    with collect():  # remarks are for those who partition
        run_in_place(module, propagate)
    return module


def planned(imported: Any, changes: Sequence[Change], propagate: str) -> ProgramPlan:
    """Return the plan that the passes make of the module ``imported`` with ``changes``; ``propagate``: the pass."""
    return plan_of(propagated(imported, changes, propagate))


class Model:
    """Prices one program with changed annotations, on ``machine``.

    ``effort``: 0 propagates, as another partitioner; 1 and 2 search.
    """

    def __init__(self, reading: Reading, machine: Machine, effort: int = 0) -> None:
        self.program, self.effort = reading.program, effort
        self.task = Task.of(self.program, barriers(self.program, reading.handles), max(1, effort), machine)
        self.clock = clock_of(machine)

    def price(self, changes: Iterable[Change]) -> float:
        """Return the modelled seconds of one run with ``changes``, plus a little for the peak of memory."""
        folded = replace(self.task.folded, program=changed(self.task.folded, changes))
        task = self.task
        if self.effort:
            search = Search(task.program, task.barriers, task.machine, folded, task.decided)
            search.run()
            if search.solved is not None:
                return search.solved.price
        seconds, peak = as_propagated(task, folded.program, Propagated(folded.program, task.barriers))
        return seconds + holding(peak, self.clock)

    def decided(self) -> tuple[Mapping[int, Sharding], Mapping[int, Sharding]]:
        """Return the shardings of all values as propagated, and as decided where constraints may be given up.

        Those decided are empty for programs of more than LARGEST ops.
        """
        task, program = self.task, self.task.folded.program
        now = task.folded.unfolded(Propagated(program, task.barriers).shardings)
        if program.count > LARGEST:
            return now.of, {}
        free = replace(program, pinned=frozenset(), wishes=constraints_of(program))
        search = Search(task.program, task.barriers, task.machine, replace(task.folded, program=free), task.decided)
        search.run()
        return now.of, search.unfolded(search.candidates[-1]).of if search.candidates else {}

    def propagated(self, changes: Iterable[Change]) -> ProgramPlan:
        """Return the plan of the whole program with ``changes``, its shardings propagated."""
        task = self.task
        shardings = task.folded.unfolded(Propagated(changed(task.folded, changes), task.barriers).shardings)
        return plan_program(self.program, shardings, task.decided, machine=task.machine)


def as_propagated(task: Task, program: Program, propagated: Propagated) -> tuple[float, float]:
    """Return the modelled seconds of the folded ``program`` and the most bytes alive, split as ``propagated``."""
    shardings = propagated.shardings
    plan = plan_program(program, shardings, task.decided, folded=task.folded.repeats)
    return sum(costs(plan, task.decided.clock, task.folded).values()), task.footprint.peak(shardings.of)


def changed(folded: Folded, changes: Iterable[Change]) -> Program:
    """Return the folded program with ``changes``."""
    program, mesh = folded.program, folded.program.mesh
    annotations, results, wishes = dict(program.annotations), list(program.result_annotations), set(program.wishes)
    for change in changes:
        site, dims = change.site, change.dims(mesh)
        annotation = NO_ANNOTATION if dims is None else ValueAnnotation(mesh.sharding(dims))
        if site.kind in (BORDER, CHUNKS, CUT, MESH):
            continue  # no annotation that the model knows
        if site.kind == RESULT:
            for position in site.positions:
                results[folded.results[position]] = annotation
            continue
        for rep in {folded.of[value] for value in site.values}:
            if change.spec is not None:
                annotations[rep] = annotation
            elif site.kind == ARGUMENT:
                annotations.pop(rep, None)
            else:  # replicated, every dimension open to further splits
                rank = site.array.rank
                annotations[rep] = ValueAnnotation(mesh.replicated(rank), open_dims=tuple(range(rank)))
        if site.kind == CONSTRAINT and change.spec is None:
            reps = {folded.of[value] for value in site.values}
            every = program.body.every_op()
            wishes |= {op.number for op in every if op.kind is OpKind.CONSTRAINT and op.results[0] in reps}
    return replace(program, annotations=annotations, result_annotations=tuple(results), wishes=frozenset(wishes))
