"""The price of a program with changed annotations, by a model that takes milliseconds: propagated, planned and priced.

Another partitioner propagates the user's annotations and searches nothing. So the price of a program with changes is
that of the folded program (``planning.fold``), propagated (effort 0) and planned, and a little for the bytes at the
peak of memory. The price only selects the changes that are worth compiling; their saving is measured afterwards.

State: the folded program and its decisions, shared by all prices. Complexity: one propagation and one plan of the
folded program for each price.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shardpass.cost.machine import Machine
from shardpass.diagnostics import collect
from shardpass.ops.splits.factors import DimAxes
from shardpass.passes.propagate import barriers
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.places.sites import ARGUMENT, CONSTRAINT, CUT, RESULT, Reading, Sites
from shardpass.places.specs import Spec
from shardpass.places.write import Change, on_values
from shardpass.planning.clock import clock_of
from shardpass.planning.cost import costs
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.planner import plan_program
from shardpass.planning.search import Search
from shardpass.planning.task import Task, holding
from shardpass.program.program import NO_ANNOTATION, OpKind, Program, ValueAnnotation
from shardpass.propagation.program import Propagated
from shardpass.sharding import AxisRef, Sharding


def planned(sites: Sites, changes: Iterable[Change], propagate: str) -> ProgramPlan:
    """Returns the plan that the passes make of the imported program with ``changes``; ``propagate``: the pass."""
    mesh = sites.program.mesh.mesh
    written = [
        (one.site.kind, one.site.positions or one.site.values, Sharding.tiled(mesh, one.spec or ())) for one in changes
    ]
    module = on_values(sites.reading.module, written)
    with collect():  # remarks are for those who partition
        run_in_place(module, propagate)
    return plan_of(module)


class Model:
    """Prices one program with changed annotations, on ``machine``.

    ``effort``: 0 propagates, as another partitioner; 1 and 2 search.
    """

    def __init__(self, reading: Reading, machine: Machine, effort: int = 0) -> None:
        self.program, self.effort = reading.program, effort
        self.task = Task.of(self.program, barriers(self.program, reading.handles), max(1, effort), machine)
        self.clock = clock_of(machine)

    def price(self, changes: Iterable[Change]) -> float:
        """Returns the modelled seconds of one run with ``changes``, plus a little for the peak of memory."""
        changed = self._changed(changes)
        task = self.task
        if self.effort:
            folded = replace(task.folded, program=changed)
            search = Search(task.program, task.barriers, self.effort, task.machine, folded, task.decided)
            search.run()
            return search.best.price
        shardings = Propagated(changed, task.barriers).shardings
        plan = plan_program(changed, shardings, task.decided, folded=task.folded.repeats)
        peak = task.footprint.peak(shardings.of)
        return sum(costs(plan, self.clock, task.folded).values()) + holding(peak, self.clock)

    def propagated(self, changes: Iterable[Change]) -> ProgramPlan:
        """Returns the plan of the whole program with ``changes``, its shardings propagated."""
        task = self.task
        shardings = task.folded.unfolded(Propagated(self._changed(changes), task.barriers).shardings)
        return plan_program(self.program, shardings, task.decided, machine=task.machine)

    def dims(self, spec: Spec) -> DimAxes | None:
        """Converts ``spec`` to axes of the program's mesh; None where the mesh does not have them."""
        dims = []
        for axes in spec:
            known = self.program.mesh.numbered([AxisRef(name) for name in axes])
            if known is None:
                return None
            dims.append(known)
        return tuple(dims)

    # ---------------------------------------------------------------- the folded program with changes

    def _changed(self, changes: Iterable[Change]) -> Program:
        folded = self.task.folded
        program = folded.program
        annotations, results, wishes = dict(program.annotations), list(program.result_annotations), set(program.wishes)
        for change in changes:
            site = change.site
            if site.kind == CUT:
                continue  # no annotation
            for position, value in zip(site.positions or site.values, site.values, strict=False):
                if site.kind == RESULT:
                    results[folded.results[position]] = self._annotation(change.spec)
                    continue
                rep = folded.of[value]
                if change.spec is not None:
                    annotations[rep] = self._annotation(change.spec)
                elif site.kind == ARGUMENT:
                    annotations.pop(rep, None)
                else:
                    annotations[rep] = self._open(rep)
            if site.kind == CONSTRAINT and change.spec is None:
                reps = {folded.of[value] for value in site.values}
                every = program.body.every_op()
                wishes |= {op.number for op in every if op.kind is OpKind.CONSTRAINT and op.results[0] in reps}
        return replace(program, annotations=annotations, result_annotations=tuple(results), wishes=frozenset(wishes))

    def _annotation(self, spec: Spec | None) -> ValueAnnotation:
        dims = None if spec is None else self.dims(spec)
        return NO_ANNOTATION if dims is None else ValueAnnotation(self.program.mesh.sharding(dims))

    def _open(self, value: int) -> ValueAnnotation:
        """Returns the annotation that replaces a dropped constraint: replicated, every dimension open to
        further splits.
        """
        rank = self.program.array(value).rank
        return ValueAnnotation(self.program.mesh.replicated(rank), open_dims=tuple(range(rank)))
