"""Solve one ``suggest``: find the cheapest splits within a memory limit, and few annotations that lead to them.

1. The tables by which the passes decide are solved with all arguments and results open (``planning.problem``), within
   the limit of memory (``planning.within``). Places that one annotation names are split alike, and states come out as
   they go in.
2. ``choose`` finds few annotations that lead there, and what each saves, by solving again.
3. The annotations are put on the imported module and the passes run: ``Suggestion.plan`` is the plan that they make.
   Where it breaks the limit (a plan holds copies, and passes know of no limit), the limit is tightened by what is
   missing, and all is done again.
4. For another partitioner, which may decide the shardings between annotations otherwise, every argument and result is
   annotated as in the solution, and the program is compiled so, for as many virtual devices as the mesh has. Memory is
   as that compiler counts it. Where it breaks the limit, the limit of the solution is scaled down by as much.

"Before" is the program with the user's own annotations, where arguments that these do not reach are whole on every
device, as their caller knows of no other sharding; it is planned by the passes too. A program without annotations runs
on one device: its plan has every value whole.

Invariants: no annotation saves nothing; the figures are those of plans of exactly these annotations.

Example of step 4 on d=8: ``x`` in rows and ``w`` whole become ``sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>`` and
``[{}, {}]``, which hold for XLA, as all dimensions are closed.

Complexity: import, one set of tables, up to a dozen solutions within the limit, some dozens with annotations, and two
plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir

from shardpass.advise.find.price import propagated
from shardpass.advise.find.propose.specs import whole
from shardpass.advise.find.verify import figures, figures_as_built, figures_of
from shardpass.advise.place.sites import ARGUMENT, RESULT, Reading, Site, Sites
from shardpass.advise.place.specs import full_text
from shardpass.advise.place.write import Change, Writer, on_values, signed
from shardpass.advise.suggest import places
from shardpass.advise.suggest.choose import Chosen, as_in, choose
from shardpass.advise.suggest.places import each, members, sayable
from shardpass.advise.suggest.report import LINE, Advice, Suggestion
from shardpass.advise.suggest.trials import Trials, nothing_annotated
from shardpass.cost.chosen import machine_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place
from shardpass.diagnostics.table_suggest import LIMIT_TOO_LOW
from shardpass.ir.annotations import SHARDING, Signature, main_of, num_devices, set_num_devices
from shardpass.ir.context import UNNAMED, parse_module
from shardpass.ir.doors import Given
from shardpass.passes.propagate import barriers
from shardpass.pipeline.plan import plan_of
from shardpass.planning.decide.bound import Bound
from shardpass.planning.decide.problem import Answer, Problem
from shardpass.planning.decide.within import within
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.plan.task import Task
from shardpass.propagation.program import Propagated
from shardpass.redistribute.terms.limit import show_bytes
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Figures
from shardpass.report.hlo.programs import explain_partitioned_by
from shardpass.runtime.peers import OURS
from shardpass.sharding import Sharding
from shardpass.sharding.quoting import bare
from shardpass.targets.target import Target

SCALE, LEAST_SCALE = 0.97, 0.5  # what may be left of a limit that is scaled down at once
COMPILED = 8  # programs that are compiled for one suggestion
FAR = 2e-2  # of a solution's price: a plan that costs more above it may have other annotations
TIGHTENED = 3  # times that the limit is lowered for what the default search adds


@dataclass(frozen=True)
class _Solution:
    """A solution, the annotations that lead to it, and the plan that the passes make with them.

    ``module``: the propagated module with these annotations.
    """

    answer: Answer
    chosen: tuple[Chosen, ...]
    plan: ProgramPlan
    module: Any


class Suggesting:
    """Prepares one suggestion: the program, and its tables.

    ``user``: the program with the user's annotations, if these are questioned. ``written``: the text of the user's
    annotations, by kind and place in main's signature. ``least``: the least memory of any plan so far, in bytes.
    """

    def __init__(
        self,
        reading: Reading,
        data: Given,
        file: str,
        limit: int | None,
        effort: int,
        machine: Machine,
        propagate: str,
        target: Target | None = None,
        user: Suggesting | None = None,
    ) -> None:
        self.reading, self.data, self.file, self.limit, self.target = reading, data, file, limit, target
        self.user = user or self
        self.least: int | None = None if user is None else user.least
        self.machine, self.propagate = machine, propagate
        known = [each for each in (limit, machine.memory_limit) if each is not None]
        self.goal = None if limit is None else min(known)  # as the passes keep the memory of the machine too
        self.program, self.sites = reading.program, Sites(reading)
        self.task = Task.of(self.program, barriers(self.program, reading.handles), effort, machine)
        self.folded = self.task.folded
        self.states = tuple(places.states(self.sites))
        self.arguments = places.arguments(self.sites, self.folded, dict(self.states))
        self.results = places.results(self.sites, self.folded)
        self.problem = Problem(self.task)
        annotated = (site for site in (*self.sites.arguments, *self.sites.results) if site.spec is not None)
        self.written = {(one.kind, place): full_text(one.spec or ()) for one in annotated for place in one.positions}

    def answer(self, partitioner: str) -> Suggestion:
        """Return the suggestion for the program that ``partitioner`` makes. Raises ShardpassError (SP804)."""
        return self._by_the_passes() if partitioner == OURS else self._by(partitioner)

    def _by_the_passes(self) -> Suggestion:
        limit = self.goal
        for tried in range(TIGHTENED + 1):
            solution = self._within(limit)
            peak = solution.plan.alive.peak
            if self.limit is None or limit is None or self.goal is None or peak <= self.limit:
                return self._suggestion(solution)
            self.least = min(peak, self.least or peak)
            limit = 0 if tried == TIGHTENED - 1 else max(0, limit - (peak - self.goal))  # at last, the least of all
        raise self._too_low()

    def _by(self, partitioner: str) -> Suggestion:
        """Suggest annotations of all arguments and results with which another partitioner's program keeps the limit."""
        limit, known = self.limit, dict[tuple[Change, ...], Explanation]()
        while True:
            answer, _ = self._solved(limit)
            every = tuple(self._every(answer))
            if every not in known:
                known[every] = self._compiled(partitioner, every)
            memory = figures(known[every]).memory
            self.least = min(memory, self.least or memory)
            if self.limit is None or limit is None or memory <= self.limit:
                break
            if answer.peak > limit or len(known) > COMPILED:  # no splits need less
                raise self._too_low()
            limit = int(min(limit, answer.peak) * max(LEAST_SCALE, min(self.limit / memory, SCALE)))
        module = propagated(self.reading.module, every, self.propagate)
        plan = plan_of(module)
        solution = _Solution(answer, tuple([Chosen(one, 0.0, 0.0) for one in every]), plan, module)
        suggestion = self._suggestion(solution, figures(known[every], work=plan.compute_seconds()))
        advice = tuple([replace(one, note="") for one in suggestion.advice])
        suggestion = replace(suggestion, advice=advice, partitioner=partitioner)
        if nothing_annotated((user := self.user).program):
            return suggestion
        before = user._compiled(partitioner, user._reached())
        return replace(suggestion, figures_before=figures(before, work=suggestion.before.compute_seconds()))

    def _every(self, answer: Answer) -> list[Change]:
        """Annotate, after ``answer``, all arguments and results that the user did not annotate."""
        return [as_in(self.problem, answer, site) for site in (*self.arguments, *self.results)]

    def _compiled(self, partitioner: str, annotations: Sequence[Change]) -> Explanation:
        """Explain the program that another partitioner makes with ``annotations`` of arguments and results.

        The annotations are written in Shardy's notation, as JAX writes them, unless the module itself uses GSPMD's.
        Raises ShardpassError (SP553, SP911) if the partitioner makes no program.
        """
        module, mesh = parse_module(self.data, self.file), self.program.mesh.mesh
        with module.context, ir.Location.unknown():
            count = len(self.program.body.arguments)
            alike = len(Signature(main_of(module)).arguments) == count and SHARDING not in str(module.operation)
            if alike:
                Writer(module, mesh, shardy=True).sign(signed(annotations, mesh))
                if num_devices(module) in (None, 1):
                    set_num_devices(module, mesh.size)
        module = module if alike else on_values(self.reading.module, annotations)
        machine = machine_text(self.machine)
        return explain_partitioned_by(partitioner, module, self.file, mesh, machine, (), self.target)

    def _too_low(self) -> Exception:
        where = NOWHERE if self.file == UNNAMED else Place(self.file)
        assert self.limit is not None
        assert self.least is not None
        return LIMIT_TOO_LOW.error(where, limit=show_bytes(self.limit), least=show_bytes(self.least), bytes=self.least)

    def _within(self, limit: int | None) -> _Solution:
        """Solve within ``limit``, choose the annotations that lead to the solution, and plan with them.

        First the few that lead to its price, as plans may hold less than the tables say; where these hold too much or
        are not near its price, those whose trials keep the limit. Where the tables leave something out, their price
        says little, and the plans of both are compared.
        """
        answer, trials = self._solved(limit)
        goal, planned = self.goal, []
        for bound in (None, limit):
            trials.begin(bound)
            few = choose(trials, answer, self.arguments, lambda: [*self.results, *places.lines(self.sites)])
            if bound is None and limit is not None and goal is not None and not self._may_keep(trials, few, goal):
                continue
            planned.append(self._planned(trials, answer, few))
            if limit is None or goal is None:
                break
            plan = planned[0].plan
            is_near = plan.alive.peak <= goal and price(plan) <= answer.price * (1 + FAR)
            if is_near and not self.problem.left_out:
                break
        return min(planned, key=lambda one: (max(0, one.plan.alive.peak - (goal or 0)), one.plan.makespan))

    def _may_keep(self, trials: Trials, few: Sequence[Chosen], goal: int) -> bool:
        """Return whether the plan of the passes' solution with ``few`` keeps the limit, as far as the tables know."""
        if self.problem.left_out:
            return True
        shardings = self.problem.shardings(trials.passes([one.annotation for one in few]))
        return plan_program(self.program, shardings, self.task.decided, machine=self.machine).alive.peak <= goal

    def _planned(self, trials: Trials, answer: Answer, chosen: Sequence[Chosen]) -> _Solution:
        few = [one.annotation for one in chosen]
        if self.user is not self:  # what the user annotated is named, as it stays or as it changes
            few += [
                one
                for one in self._every(answer)
                if one not in few and any((one.site.kind, place) in self.user.written for place in one.site.positions)
            ]
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
        for kind in (RESULT, ARGUMENT, ""):
            module = propagated(self.reading.module, kept, self.propagate)
            plan = plan_of(module)
            more = self._changed(kind, dict(plan.body.arguments), plan.returned) if kind else ()
            if not more:
                break
            kept += [one for one in more if one not in kept]
        return kept, plan, module

    def _changed(self, kind: str, before: Mapping[int, Sharding], after: Sequence[Sharding | None]) -> list[Change]:
        """List the annotations of results, or of arguments, with which a step returns its states as it takes them."""
        wanted = {}
        for value, place in self.states:
            member, sharding = (place, before.get(value)) if kind == RESULT else (value, after[place])
            if sharding is not None and before.get(value) != after[place]:
                wanted[member] = sharding
        return list(self._as(self.results if kind == RESULT else self.arguments, wanted))

    def _as(self, groups: Sequence[Site], wanted: Mapping[int, Sharding]) -> Iterator[Change]:
        """Yield the annotations for the shardings ``wanted``: a single one for a site whose values have equal
        splits.
        """
        for site in groups:
            shardings = {member: wanted[member] for member in members(site) if member in wanted}
            alike = len(shardings) == len(members(site)) and len(set(shardings.values())) == 1
            for member, one in [(members(site)[0], site)] if alike else each(site):
                if member in shardings:
                    spec = whole(shardings[member], site.array.rank, self.program)
                    yield Change(one, spec or ((),) * site.array.rank)

    def _solved(self, limit: int | None) -> tuple[Answer, Trials]:
        """Return the cheapest splits within ``limit``, and the trials by which annotations are chosen."""
        problem, slots = self.problem, [places.slots(self.problem, site) for site in self.arguments]
        states = problem.ties(self._tied())
        answer = within(problem, [*problem.ties(slots), *states], limit, slots)
        return answer, Trials(problem, states, answer, most=self.goal)

    def _tied(self) -> Iterator[Sequence[int]]:
        """Yield, for each state, the engine's values of the argument and of the result that updates it."""
        searched, folded = self.problem.propagated, self.folded
        for value, place in self.states:
            before, after = searched.index.get(folded.of[value]), searched.results[folded.results[place]]
            if before is not None and after is not None:
                yield before, after

    def _before(self) -> tuple[ProgramPlan, Figures]:
        """Plan the program without advice; a program without annotations has no collectives, so nothing is built."""
        if nothing_annotated(self.program):
            shardings = Propagated(self.program, self.task.barriers).shardings
            plan = plan_program(self.program, shardings, machine=self.machine)
            return plan, figures_of(plan)
        module = propagated(self.reading.module, self._reached(), self.propagate)
        return plan_of(module), figures_as_built(module, self.file)

    def _reached(self) -> list[Change]:
        """List the split of each value of the arguments by propagation from the user's own annotations."""
        searched, mesh = self.problem.propagated, self.program.mesh
        result = []
        for value, site in (row for group in self.arguments for row in each(group)):
            dims = searched.engine.values[searched.index[self.folded.of[value]]].dims
            result.append(Change(site, sayable(dims, site.array.shape, mesh)))
        return result

    # ---------------------------------------------------------------- the answer

    def _suggestion(self, solution: _Solution, after: Figures | None = None) -> Suggestion:
        before, figures_before = self.user._before()
        mesh, plan, answer = self.program.mesh, solution.plan, solution.answer
        ends = dict(plan.body.arguments)
        arguments: dict[str, str] = {}
        for site in self.arguments:
            shape = site.array.shape
            for name, value in zip(site.names, site.values, strict=True):
                dims = mesh.dims(ends.get(value, Sharding.replicated()), len(shape)) or ((),) * len(shape)
                arguments.setdefault(name, full_text(sayable(dims, shape, mesh)))
        costs = price(plan)  # beside the lower bound of all prices within the limit of memory
        left_out = self.problem.left_out
        least = (answer.price, answer.least, answer.why, True)  # ties, and the fold, split equal arrays alike
        bound = Bound(costs, why=left_out) if left_out else Bound.of(costs, *least)
        return Suggestion(
            ", ".join(f"{bare(name)}={size}" for name, size in mesh.mesh.axes),
            self.limit,
            tuple(map(_advice, solution.chosen)),
            tuple(arguments.items()),
            before,
            plan,
            figures_before,
            after or figures_as_built(solution.module, self.file),
            self.propagate,
            bound.as_dict(),
        )


def _advice(one: Chosen) -> Advice:
    site = one.annotation.site
    kind = site.kind if site.kind in (ARGUMENT, RESULT) else LINE
    seconds, memory = one.saves_price, round(one.saves_memory)
    note = "as it came in" if site.kind == RESULT and not seconds and not memory else None
    paths, spec = tuple(dict.fromkeys(site.names)), full_text(one.annotation.spec or ())
    return Advice(kind, paths, spec, site.place.file, site.place.line, seconds, memory, one.annotation, note)
