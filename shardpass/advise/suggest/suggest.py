"""``suggest``: the few annotations under which a program is cheapest on a mesh, and fits into memory.

Problem: for a program with few or no annotations, find the shardings of its arguments, results and lines that a user
should write, in JAX's notation.

Steps:

1. The program is lowered and imported over the mesh; what the user annotated stays.
2. The tables by which the passes decide are solved with all arguments and results open (``planning.problem``), within
   the limit of memory (``planning.within``). Places that one annotation names are split alike, and states come out as
   they go in.
3. ``choose`` finds few annotations that lead there, and what each saves, by solving again.
4. The annotations are put on the imported module and the passes run: ``Suggestion.plan`` is the plan that they make.
   Where it breaks the limit (a plan holds copies, and passes know of no limit), the limit is tightened by what is
   missing, and steps 2 to 4 are done again.

"Before" is the program with the user's own annotations, where arguments that these do not reach are whole on every
device, as their caller knows of no other sharding; it is planned by the passes too. A program without annotations runs
on one device: its plan has every value whole.

Invariants: no annotation saves nothing; the figures are those of plans of exactly these annotations.

Example: see docs/suggest.md. Complexity: import, one set of tables, up to a dozen solutions within the limit, some
dozens with annotations, and two plans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardpass.advise.find.price import propagated
from shardpass.advise.find.propose.specs import whole
from shardpass.advise.find.verify import figures, figures_as_built, figures_of
from shardpass.advise.place.sites import ARGUMENT, RESULT, Reading, Site, Sites
from shardpass.advise.place.specs import full_text
from shardpass.advise.place.write import Change
from shardpass.advise.suggest import places, questioned
from shardpass.advise.suggest.choose import Chosen, as_in, choose
from shardpass.advise.suggest.compiled import compiled
from shardpass.advise.suggest.places import each, members, sayable
from shardpass.advise.suggest.questioned import without_annotations
from shardpass.advise.suggest.report import LINE, Advice, Suggestion
from shardpass.advise.suggest.take import (
    effort_of,
    imported,
    is_abstract,
    machine_of,
    partitioner_of,
    read_mesh,
    take,
    target_of,
)
from shardpass.advise.suggest.trials import Trials, nothing_annotated
from shardpass.cost import machine as cost
from shardpass.cost.chosen import chosen, machine_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.diagnostics.table_suggest import LIMIT_TOO_LOW
from shardpass.ir.context import UNNAMED
from shardpass.ir.doors import Given
from shardpass.ir.machines import module_machine
from shardpass.passes.propagate import barriers
from shardpass.pipeline.base import show_value
from shardpass.pipeline.plan import plan_of
from shardpass.planning.decide.problem import Answer, Problem
from shardpass.planning.decide.search import Bound
from shardpass.planning.decide.within import within
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.plan.task import Task
from shardpass.propagation.program import Propagated
from shardpass.redistribute.terms.limit import read_limit, show_bytes
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Figures
from shardpass.runtime.peers import OURS, XLA
from shardpass.sharding import Mesh, Sharding
from shardpass.sharding.quoting import bare
from shardpass.targets.machine import machine_of as machine_for
from shardpass.targets.target import Target

if TYPE_CHECKING:
    from shardpass.advise.repair.repair import Repairs

SCALE, LEAST_SCALE = 0.97, 0.5  # what may be left of a limit that is scaled down at once
COMPILED = 8  # programs that are compiled for one suggestion
FAR = 2e-2  # of a solution's price: a plan that costs more above it may have other annotations
TIGHTENED = 3  # times that the limit is lowered for what the default search adds


def suggest(
    f: Any,
    *args: Any,
    mesh: Any = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    machine: str | os.PathLike[str] | cost.Machine | None = None,
    partitioner: str | None = None,
    target: str | Target | None = None,
    profile: str | None = None,
    **kwargs: Any,
) -> Suggestion | Repairs:
    """Suggest the annotations that make ``f`` cheapest on ``mesh``, or the edits with which it traces if it raises an
    error of types.

    Where JAX raises ``ShardingTypeError`` or the like while ``f`` is traced, as on a mesh with Explicit axes, the
    answer is ``Repairs``: the cheapest edits with which ``f`` traces.

    ``f``: a function with its arguments (arrays or ``jax.ShapeDtypeStruct``), what ``jax.jit`` or ``lower`` returned, a
    module, or the path of one. ``mesh``: a jax Mesh or AbstractMesh; by default the one that the module names.
    ``memory_limit``: of a device, bytes or text as "16GiB"; by default the memory of the machine, and "none" for no
    limit. ``effort``: of the passes, 1 or 2. ``machine``: for which the program is decided, and by which figures are
    modelled, as ``explain`` takes it; ``profile``: its old name. ``partitioner``: "shardpass"; or "xla" or "shardy",
    which compile the program with an annotation of every argument and result, for its memory and bytes sent.
    ``target``: the devices for which XLA compiles it, as ``explain`` takes it; "xla" is then the default, and the
    machine follows.

    Raises ShardpassError: SP801 to SP804, SP840, SP843, SP412 to SP414, what lowering and import raise, and SP553 where
    another partitioner makes no program.
    """
    over = read_mesh(mesh)
    effort = effort_of("suggest", effort, 1)
    machine = machine_of("suggest", machine, profile)
    if memory_limit is not None:
        read_limit(memory_limit)
    built_for = target_of(target)
    if built_for is not None:
        machine = machine or machine_text(machine_for(built_for))
    default = OURS if built_for is None else XLA
    partitioner = partitioner_of("suggest", default if partitioner is None else partitioner)
    try:
        data, file, usual = take(f, args, kwargs, None if built_for is None else built_for.platform)
    except ShardpassError:
        raise
    except Exception as error:  # whatever the user's function raises
        repaired = _repairs(f, args, kwargs, error, machine, memory_limit, partitioner)
        if repaired is None:
            raise
        return repaired
    usual = None if is_abstract(mesh) else usual
    return suggest_module(data, file, over, memory_limit, effort, machine or usual, partitioner, built_for)


def _repairs(
    f: Any,
    args: Any,
    kwargs: Mapping[str, Any],
    error: Exception,
    machine: str | None,
    memory_limit: int | str | None,
    partitioner: str,
) -> Repairs | None:
    from shardpass.advise.repair.repair import repairs
    from shardpass.jax.here import machine_here

    return repairs(f, args, kwargs, error, machine or machine_here(), memory_limit, partitioner)


def suggest_module(
    data: Given,
    file: str = UNNAMED,
    mesh: Mesh | None = None,
    memory_limit: int | str | None = None,
    effort: int = 1,
    machine: str | None = None,
    partitioner: str = OURS,
    target: Target | None = None,
) -> Suggestion:
    """Suggest annotations, as ``suggest``, for a module's text or bytecode."""
    limit = read_limit(memory_limit)
    reading = imported(data, file, mesh)
    machine = machine_text(machine or module_machine(reading.module))
    on = chosen(machine)
    allowed = on.memory_limit if memory_limit is None else limit if isinstance(limit, int) else None
    rest = file, allowed, effort, on, _propagate(effort, machine), target
    with reading.module.context:
        asked = _Suggesting(reading, *rest)
    try:
        return asked.answer(partitioner, data)
    except ShardpassError as error:
        if error.code != LIMIT_TOO_LOW.id or not asked.written:
            raise
    with reading.module.context:
        return _Suggesting(without_annotations(reading), *rest, user=asked).answer(partitioner, data)


def _propagate(effort: int, machine: str) -> str:
    options = [f"effort={effort}"] if effort != 1 else []
    return f"shardpass-propagate{{{' '.join([*options, f'machine={show_value(machine)}'])}}}"


@dataclass(frozen=True)
class _Solution:
    """A solution, the annotations that lead to it, and the plan that the passes make with them.

    ``module``: the propagated module with these annotations.
    """

    answer: Answer
    chosen: tuple[Chosen, ...]
    plan: ProgramPlan
    module: Any


class _Suggesting:
    """Prepares one suggestion: the program, and its tables.

    ``user``: the program with the user's annotations, if these are questioned. ``least``: the least memory of any plan
    so far, in bytes.
    """

    def __init__(
        self,
        reading: Reading,
        file: str,
        limit: int | None,
        effort: int,
        machine: Machine,
        propagate: str,
        target: Target | None = None,
        user: _Suggesting | None = None,
    ) -> None:
        self.target = target
        self.user = user or self
        self.least: int | None = None if user is None else user.least
        self.reading, self.file, self.limit = reading, file, limit
        self.machine, self.propagate = machine, propagate
        known = [each for each in (limit, machine.memory_limit) if each is not None]
        self.goal = None if limit is None else min(known)  # as the passes keep the memory of the machine too
        self.program, self.sites = reading.program, Sites(reading)
        self.task = Task.of(self.program, barriers(self.program, reading.handles), effort, machine)
        self.folded = self.task.folded
        self.states = tuple(places.states(self.sites))
        self.arguments = places.arguments(self.sites, self.folded, dict(self.states))
        self.problem = Problem(self.task)
        self.written = questioned.written(self.sites)

    def answer(self, partitioner: str, data: Given) -> Suggestion:
        """Return the suggestion for the program that ``partitioner`` makes: shardpass, or another one."""
        suggestion = self.run() if partitioner == OURS else self.run_by(partitioner, data)
        return suggestion if self.user is self else questioned.beside(suggestion, self.user.written)

    def run(self) -> Suggestion:
        limit = self.goal
        for tried in range(TIGHTENED + 1):
            solution = self._within(limit)
            peak = solution.plan.alive.peak
            if self.limit is None or limit is None or self.goal is None or peak <= self.limit:
                return self._suggestion(solution)
            self.least = min(peak, self.least or peak)
            limit = 0 if tried == TIGHTENED - 1 else max(0, limit - (peak - self.goal))  # at last, the least of all
        raise self._too_low()

    def run_by(self, partitioner: str, data: Given) -> Suggestion:
        """Suggest annotations of all arguments and results with which another partitioner's program keeps the limit.

        Where the compiled program needs more memory than the plan, the limit of the solution is scaled down by as much.
        """
        limit, known = self.limit, dict[tuple[Change, ...], Explanation]()
        while True:
            answer, _ = self._solved(limit)
            every = tuple(self._every(answer))
            built = known.get(every)
            if built is None:
                built = known[every] = self._compiled(partitioner, data, every)
            memory = figures(built).memory
            self.least = min(memory, self.least or memory)
            if self.limit is None or limit is None or memory <= self.limit:
                return self._suggestion_for(partitioner, data, answer, every, built)
            if answer.peak > limit or len(known) > COMPILED:  # no splits need less
                raise self._too_low()
            limit = int(min(limit, answer.peak) * max(LEAST_SCALE, min(self.limit / memory, SCALE)))

    def _every(self, answer: Answer) -> list[Change]:
        """Annotate, after ``answer``, all arguments and results that the user did not annotate."""
        results = places.results(self.sites, self.folded)
        return [as_in(self.problem, answer, site) for site in (*self.arguments, *results)]

    def _compiled(self, partitioner: str, data: Given, annotations: Sequence[Change]) -> Explanation:
        asked = partitioner, data, self.file, self.reading, annotations
        return compiled(*asked, machine_text(self.machine), self.target)

    def _suggestion_for(
        self, partitioner: str, data: Given, answer: Answer, every: Sequence[Change], built: Explanation
    ) -> Suggestion:
        module = self._propagated(every)
        plan = plan_of(module)
        solution = _Solution(answer, tuple([Chosen(one, 0.0, 0.0) for one in every]), plan, module)
        suggestion = self._suggestion(solution, figures(built, work=plan.compute_seconds()))
        advice = tuple([replace(one, note="") for one in suggestion.advice])
        suggestion = replace(suggestion, advice=advice, partitioner=partitioner)
        if nothing_annotated((user := self.user).program):
            return suggestion
        before = user._compiled(partitioner, data, [one for site in user.arguments for one in user._reached(site)])
        return replace(suggestion, figures_before=figures(before, work=suggestion.before.compute_seconds()))

    def _too_low(self) -> Exception:
        where = NOWHERE if self.file == UNNAMED else Place(self.file)
        assert self.limit is not None
        assert self.least is not None
        return LIMIT_TOO_LOW.error(where, limit=show_bytes(self.limit), least=show_bytes(self.least), bytes=self.least)

    def _within(self, limit: int | None) -> _Solution:
        """Solve within ``limit``, chooses the annotations that lead to the solution, and plans with them.

        First the few that lead to its price, as plans may hold less than the tables say; where these hold too much or
        are not near its price, those whose trials keep the limit. Where the tables leave something out, their price
        says little, and the plans of both are compared.
        """
        answer, trials = self._solved(limit)
        trials.begin(None)
        few = self._few(trials, answer)
        if limit is None or self.goal is None:
            return self._planned(trials, answer, few)
        first = self._planned(trials, answer, few) if self._may_keep(trials, few) else None
        if first and not self.problem.left_out and self._is_near(first):
            return first
        trials.begin(limit)
        second = self._planned(trials, answer, self._few(trials, answer))
        both = [one for one in (first, second) if one is not None]
        return min(both, key=lambda one: (max(0, one.plan.alive.peak - (self.goal or 0)), one.plan.makespan))

    def _is_near(self, solution: _Solution) -> bool:
        plan = solution.plan
        keeps = self.goal is None or plan.alive.peak <= self.goal
        return keeps and price(plan) <= solution.answer.price * (1 + FAR)

    def _few(self, trials: Trials, answer: Answer) -> tuple[Chosen, ...]:
        return choose(trials, answer, self.arguments, self._others)

    def _may_keep(self, trials: Trials, few: Sequence[Chosen]) -> bool:
        """Return whether the plan of the passes' solution with ``few`` keeps the limit, as far as the tables know."""
        if self.problem.left_out or self.goal is None:
            return True
        return self._plan(trials.passes([one.annotation for one in few])).alive.peak <= self.goal

    def _plan(self, answer: Answer) -> ProgramPlan:
        shardings = self.problem.shardings(answer)
        return plan_program(self.program, shardings, self.task.decided, machine=self.machine)

    def _planned(self, trials: Trials, answer: Answer, chosen: Sequence[Chosen]) -> _Solution:
        few = [one.annotation for one in chosen]
        if self.user is not self:  # what the user annotated is named, as it stays or as it changes
            few += questioned.named(self._every(answer), few, self.user.written)
        kept, *planned = self._consistent(few, trials)
        known = {one.annotation: one for one in chosen}
        return _Solution(answer, tuple([known.get(one, Chosen(one, 0.0, 0.0)) for one in kept]), *planned)

    def _consistent(self, kept: list[Change], trials: Trials) -> tuple[list[Change], ProgramPlan, Any]:
        """Add to ``kept`` annotations of states whose result would be split otherwise than their argument.

        First of results, as their arguments are split; then of arguments that the passes have split otherwise since.
        Returns all annotations, the plan with them, and the module.
        """
        solved = self.problem.shardings(trials.passes(kept))
        kept += self._changed(RESULT, solved.of, solved.results)
        for kind in (RESULT, ARGUMENT):
            module = self._propagated(kept)
            plan = plan_of(module)
            more = self._changed(kind, dict(plan.body.arguments), plan.returned)
            if not more:
                return kept, plan, module
            kept += [one for one in more if one not in kept]
        module = self._propagated(kept)
        return kept, plan_of(module), module

    def _changed(self, kind: str, before: Mapping[int, Sharding], after: Sequence[Sharding | None]) -> list[Change]:
        """List the annotations of results, or of arguments, with which a step returns its states as it takes them."""
        unlike = [(value, place) for value, place in self.states if before.get(value) != after[place]]
        if kind == RESULT:
            groups = places.results(self.sites, self.folded)
            wanted = {place: sharding for value, place in unlike if (sharding := before.get(value)) is not None}
            return list(self._as(groups, wanted))
        return list(self._as(self.arguments, {v: sharding for v, place in unlike if (sharding := after[place])}))

    def _as(self, groups: Sequence[Site], wanted: Mapping[int, Sharding]) -> Iterator[Change]:
        """Yield the annotations for the shardings ``wanted``: one for a site whose values are split alike."""
        for site in groups:
            shardings = {member: wanted[member] for member in members(site) if member in wanted}
            if len(shardings) == len(members(site)) and len(set(shardings.values())) == 1:
                yield self._annotation(site, shardings[members(site)[0]])
                continue
            for member, one in each(site):
                if member in shardings:
                    yield self._annotation(one, shardings[member])

    def _annotation(self, site: Site, sharding: Sharding) -> Change:
        return Change(site, whole(sharding, site.array.rank, self.program) or ((),) * site.array.rank)

    def _solved(self, limit: int | None) -> tuple[Answer, Trials]:
        """Return the cheapest splits within ``limit``, and the trials by which annotations are chosen."""
        problem, slots = self.problem, [places.slots(self.problem, site) for site in self.arguments]
        states = problem.ties(self._tied())
        ties = [*problem.ties(slots), *states]
        answer = within(problem, ties, limit, slots)
        return answer, Trials(problem, states, answer, most=self.goal)

    def _tied(self) -> Iterator[Sequence[int]]:
        """Yield, for each state, the engine's values of the argument and of the result that updates it."""
        searched, folded = self.problem.propagated, self.folded
        for value, place in self.states:
            before, after = searched.index.get(folded.of[value]), searched.results[folded.results[place]]
            if before is not None and after is not None:
                yield before, after

    def _others(self) -> list[Site]:
        results = places.results(self.sites, self.folded)
        return [*results, *places.lines(self.sites)]

    def _propagated(self, annotations: Sequence[Change]) -> Any:
        return propagated(self.reading.module, annotations, self.propagate)

    def _before(self) -> tuple[ProgramPlan, Figures]:
        """Plan the program without advice; a program without annotations has no collectives, so nothing is built."""
        if nothing_annotated(self.program):
            whole = Propagated(self.program, self.task.barriers).shardings
            plan = plan_program(self.program, whole, machine=self.machine)
            return plan, figures_of(plan)
        reached = [one for site in self.arguments for one in self._reached(site)]
        module = self._propagated(reached)
        plan = plan_of(module)
        return plan, figures_as_built(module, self.file)

    def _reached(self, site: Site) -> Iterator[Change]:
        """Yield, for each value of an argument, its split by propagation from the user's own annotations."""
        searched = self.problem.propagated
        for value, one in each(site):
            dims = searched.engine.values[searched.index[self.folded.of[value]]].dims
            yield Change(one, sayable(dims, site.array.shape, self.program.mesh))

    # ---------------------------------------------------------------- the answer

    def _suggestion(self, solution: _Solution, after: Figures | None = None) -> Suggestion:
        before, figures_before = self.user._before()
        mesh = self.program.mesh
        advice = tuple(self._advice(one) for one in solution.chosen)
        ends = dict(solution.plan.body.arguments)
        arguments: dict[str, str] = {}
        for site in self.arguments:
            shape = site.array.shape
            for name, value in zip(site.names, site.values, strict=True):
                dims = mesh.dims(ends.get(value, Sharding.replicated()), len(shape)) or ((),) * len(shape)
                arguments.setdefault(name, full_text(sayable(dims, shape, mesh)))
        axes = ", ".join(f"{bare(name)}={size}" for name, size in mesh.mesh.axes)
        return Suggestion(
            axes,
            self.limit,
            advice,
            tuple(arguments.items()),
            before,
            solution.plan,
            figures_before,
            after or figures_as_built(solution.module, self.file),
            self.propagate,
            self._bound(solution).as_dict(),
        )

    def _bound(self, solution: _Solution) -> Bound:
        """Return the price of the plan with the lower bound of all prices within the limit of memory."""
        plan, answer = price(solution.plan), solution.answer
        if self.problem.left_out:
            return Bound(plan, why=self.problem.left_out)
        return Bound.of(plan, answer.price, answer.least, answer.why)

    def _advice(self, one: Chosen) -> Advice:
        site = one.annotation.site
        kind = site.kind if site.kind in (ARGUMENT, RESULT) else LINE
        seconds, memory = one.saves_price, round(one.saves_memory)
        note = "as it came in" if site.kind == RESULT and not seconds and not memory else None
        paths, spec = tuple(dict.fromkeys(site.names)), full_text(one.annotation.spec or ())
        return Advice(kind, paths, spec, site.place.file, site.place.line, seconds, memory, one.annotation, note)
