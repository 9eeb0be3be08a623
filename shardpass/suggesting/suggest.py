"""``suggest``: the few annotations under which a program is cheapest on a mesh, and fits into memory.

Problem: of a program that says little or nothing of shardings, find those of its arguments, results and lines that a
user should write, in JAX's words.

Steps:

1. The program is lowered and imported over the mesh; what the user annotated stays.
2. ``planning.limited`` searches the shardings of all values, within the limit.
3. ``choose`` finds the fewest annotations that lead there, and what each saves.
4. The annotations are put on the imported module and the passes run: ``Suggestion.plan`` is the plan that they make,
   with the default search in it. Where it breaks the limit (the default search knows of none), more arguments are
   annotated; where that is not enough, the limit is tightened by what is missing, and steps 2 to 4 are done again.

"Before" is the program with the user's own annotations, where arguments that these do not reach are whole on every
device, as their caller must be told otherwise; it is planned by the passes too. A program of which nothing is said runs
on one device: its plan is that of everything being whole.

Invariants: no annotation saves nothing; the figures are those of plans of exactly these annotations.

Example: see docs/suggest.md. Complexity: import, one search within the limit, O(k log n) searches of the folded
program for k of n annotations, and two plans.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardpass.cost import machine as cost
from shardpass.cost.chosen import chosen, machine_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, collect
from shardpass.diagnostics.arguments import has
from shardpass.diagnostics.table_suggest import LIMIT_TOO_LOW
from shardpass.ir.context import UNNAMED
from shardpass.ir.doors import Given
from shardpass.ir.machines import module_machine
from shardpass.passes.propagate import barriers
from shardpass.pipeline.base import show_value
from shardpass.planning.cost import price
from shardpass.planning.limited import NO_LIMIT, Limit, LimitedSearch, Task, search_within
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.planner import plan_program
from shardpass.program.read import read_program
from shardpass.propagation.program import Propagated
from shardpass.redistribute.terms.limit import read_limit, show_bytes
from shardpass.report.build import explain_module
from shardpass.report.explanation import Explanation
from shardpass.sharding import Mesh, Sharding
from shardpass.sharding.quoting import bare
from shardpass.suggesting import places
from shardpass.suggesting.apply import Figures, annotated, figures, placed, planned
from shardpass.suggesting.choose import NEAR, Chosen, choose, what_they_save
from shardpass.suggesting.explain import pipeline
from shardpass.suggesting.report import Advice, Suggestion
from shardpass.suggesting.specs import sayable, spec_text
from shardpass.suggesting.take import effort_of, imported, machine_of, read_mesh, take
from shardpass.suggesting.trials import Annotation, Trials, nothing_said

TIGHTENED = 3  # times that the limit is lowered for what the default search adds


def suggest(
    f: Any,
    *args: Any,
    mesh: Any = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    machine: str | os.PathLike[str] | cost.Machine | None = None,
    profile: str | None = None,
    **kwargs: Any,
) -> Suggestion:
    """The annotations that make ``f`` cheapest on ``mesh``.

    ``f``: a function with its arguments (arrays or ``jax.ShapeDtypeStruct``), what ``jax.jit`` or ``lower`` returned, a
    module, or the path of one. ``mesh``: a jax Mesh or AbstractMesh; by default the one that the module names.
    ``memory_limit``: of a device, bytes or text as "16GiB", by default that of the machine; "none" for any number.
    ``effort``: 1, or 2 to look longer. ``machine``: for which the program is decided, and by which figures are
    modelled, as ``explain`` takes it; over an AbstractMesh not that of the devices here; ``profile``: its old name.

    Raises ShardpassError: SP801 to SP804, SP412 to SP414, and what lowering and import raise.
    """
    over = read_mesh(mesh)
    effort = effort_of("suggest", effort, 1)
    machine = machine_of("suggest", machine, profile)
    if memory_limit is not None:
        read_limit(memory_limit)
    data, file, usual = take(f, args, kwargs)
    if over is not None and (isinstance(mesh, Mesh) or not has(mesh, "devices")):  # devices that are here are others
        usual = None
    return suggest_module(data, file, over, memory_limit, effort, machine or usual)


def suggest_module(
    data: Given,
    file: str = UNNAMED,
    mesh: Mesh | None = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    machine: str | None = None,
) -> Suggestion:
    """As ``suggest``, of a module's text or bytecode."""
    limit = read_limit(memory_limit)
    module = imported(data, file, mesh)
    machine = machine_text(machine or module_machine(module))
    on = chosen(machine)
    allowed = on.memory_limit if memory_limit is None else limit if isinstance(limit, int) else None
    with module.context:
        asked = _Suggesting(module, file, allowed, effort, on, _propagate(effort, machine))
    return asked.run()


def _propagate(effort: int, machine: str) -> str:
    options = [f"effort={effort}"] if effort != 1 else []
    return f"shardpass-propagate{{{' '.join([*options, f'machine={show_value(machine)}'])}}}"


@dataclass(frozen=True)
class _Answer:
    chosen: tuple[Chosen, ...]
    plan: ProgramPlan


class _Suggesting:
    """One suggestion in the making: the program, and what searches and trials of it share."""

    def __init__(
        self, module: Any, file: str, limit: int | None, effort: int, machine: Machine, propagate: str
    ) -> None:
        self.module, self.file, self.limit = module, file, limit
        self.machine, self.propagate = machine, propagate
        self.program, self.handles = read_program(module, "propagate")
        self.task = Task.of(self.program, barriers(self.program, self.handles), effort, machine)
        self.folded = self.task.folded
        self.arguments = places.arguments(self.program, self.handles, self.folded)

    def run(self) -> Suggestion:
        limit, least = self.limit, None
        for _ in range(TIGHTENED):
            answer = self._within(limit)
            peak = answer.plan.alive.peak
            least = peak if least is None else min(least, peak)
            if self.limit is None or limit is None or peak <= self.limit:
                return self._told(answer)
            limit = max(0, limit - (peak - self.limit))
        assert least is not None
        raise self._too_low(least)

    def _too_low(self, least: int) -> Exception:
        where = NOWHERE if self.file == UNNAMED else Place(self.file)
        assert self.limit is not None
        return LIMIT_TOO_LOW.error(where, limit=show_bytes(self.limit), least=show_bytes(least), bytes=least)

    def _within(self, limit: int | None) -> _Answer:
        """The annotations whose search keeps ``limit``, planned by the passes."""
        search = LimitedSearch(self.task, Limit(limit))
        found = search_within(search, limit)
        if limit is not None and found.peak > limit:
            raise self._too_low(found.peak)
        trials = Trials(self.task, search.limit)
        pools = (
            lambda: self.arguments,
            lambda: places.results(self.program, self.handles, self.folded),
            lambda: places.lines(self.program, self.handles),
        )
        chosen = choose(trials, found.shardings, search.best.price, pools)
        plan = self._planned([one.annotation for one in chosen])
        if self.limit is None or plan.alive.peak <= self.limit:
            return _Answer(chosen, plan)
        named = {one.annotation.group for one in chosen}
        ends = trials.of([one.annotation for one in chosen]).arguments
        others = [self._uniform(group, ends) for group in self.arguments if group not in named]
        kept, plan = self._fitting([one.annotation for one in chosen], plan, others, self.limit)
        return _Answer(what_they_save(trials, kept, price(plan), plan.alive.peak), plan)

    def _fitting(
        self, chosen: list[Annotation], plan: ProgramPlan, others: Sequence[Annotation], limit: int
    ) -> tuple[list[Annotation], ProgramPlan]:
        """``chosen`` with those of ``others`` that save memory, until its plan fits, less what is not needed then.

        All of them, where none of these fits. Trials are of the folded program, and the passes decide about the whole
        one, which now and then holds more.
        """
        kept = chosen
        for one in others:
            with_it = self._planned([*kept, one])
            if with_it.alive.peak < plan.alive.peak:
                kept, plan = [*kept, one], with_it
            if plan.alive.peak <= limit:
                break
        else:
            return [*chosen, *others], self._planned([*chosen, *others])
        for one in chosen:
            rest = [other for other in kept if other is not one]
            without = self._planned(rest)
            if without.alive.peak <= limit and price(without) <= price(plan) * (1 + NEAR):
                kept, plan = rest, without
        return kept, plan

    def _uniform(self, group: places.Group, arguments: Any) -> Annotation:
        """What the first of a group's values has, as JAX can say it."""
        rank = group.array.rank
        dims = self.program.mesh.dims(arguments.get(group.values[0], Sharding.replicated()), rank)
        return Annotation(group, sayable(dims or ((),) * rank, group.array.shape, self.program.mesh))

    def _planned(self, annotations: Sequence[Annotation]) -> ProgramPlan:
        return planned(self.module, annotations, self.propagate)

    def _before(self) -> tuple[ProgramPlan, Figures]:
        """The plan without advice. Of a program of which nothing is said, no collective is there to be built."""
        if nothing_said(self.program):
            whole = Propagated(self.program, self.task.barriers).shardings
            plan = plan_program(self.program, whole, machine=self.machine)
            return plan, figures(plan)
        reached = placed(self.program, self.arguments, Trials(self.task, NO_LIMIT).of([]).arguments)
        plan = self._planned(reached)
        return plan, figures(plan, self._built(reached))

    def _built(self, annotations: Sequence[Annotation]) -> Explanation:
        """The report of the program that is built with ``annotations``, as ``shardpass.explain`` gives it."""
        module = annotated(self.module, annotations)
        passes = pipeline(self.task.effort, machine=machine_text(self.machine))
        with collect():
            return explain_module(module, self.file, pipeline=passes, folders=())

    # ---------------------------------------------------------------- the answer

    def _told(self, answer: _Answer) -> Suggestion:
        before, figures_before = self._before()
        mesh = self.program.mesh
        advice = tuple(self._advice(one) for one in answer.chosen)
        ends = dict(answer.plan.body.arguments)
        arguments: dict[str, str] = {}
        for group in self.arguments:
            for name, value in zip(group.names, group.values, strict=True):
                dims = mesh.dims(ends.get(value, Sharding.replicated()), group.array.rank)
                arguments.setdefault(name, spec_text(sayable(dims or (), group.array.shape, mesh), mesh))
        axes = ", ".join(f"{bare(name)}={size}" for name, size in mesh.mesh.axes)
        return Suggestion(
            axes,
            self.limit,
            advice,
            tuple(arguments.items()),
            before,
            answer.plan,
            figures_before,
            figures(answer.plan, self._built([one.annotation for one in answer.chosen])),
            self.propagate,
            Trials(self.task, NO_LIMIT).bound(one.annotation for one in answer.chosen).as_dict(),
        )

    def _advice(self, one: Chosen) -> Advice:
        group = one.annotation.group
        spec = spec_text(one.annotation.dims, self.program.mesh)
        seconds, memory = one.saves_price, round(one.saves_memory)
        return Advice(
            group.kind, group.paths, spec, group.place.file, group.place.line, seconds, memory, one.annotation
        )
