"""Questions about shardpass's own program: which annotations save in it, and which decisions of its search save most.

Both try edits one at a time on the folded program (``price``), and report the best with the bytes of whole plans.

1. ``find_hints``: a value or an argument of the lines that take most time has another spec: that of a longer search
   first, then each. The best of each is planned as the pipeline does. An annotation that saves no bytes there, makes
   the plan more expensive, or needs more memory (``MORE_MEMORY``) is no hint. An argument that the user annotated gets
   a constraint in the program instead.
2. ``find_decided``: a search decides all values at once, and its reader asks which matter, and what to write where a
   partitioner propagates and searches nothing. So values, arguments and results get the spec of the plan, where
   propagation has another. The cheapest is kept, and the next is tried on top of it.

Example: with rows of x over 'data' and rows of w over 'data', ``y = x @ w`` sums partial results. The hint is
``w = with_sharding_constraint(w, P())``: gathering it costs a tenth.

Complexity: a propagation (or a search) and a plan of the folded program for each edit; ``VERIFIED`` plans of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shardpass.advise.find.price import Model, planned
from shardpass.advise.find.propose.program import Context
from shardpass.advise.find.propose.specs import every_spec
from shardpass.advise.find.text import code_of
from shardpass.advise.place.keep import keep_best
from shardpass.advise.place.sites import ARGUMENT, VALUE, Site, Sites, read, reading_of
from shardpass.advise.place.specs import spec_text
from shardpass.advise.place.write import Change
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.doors import Given
from shardpass.ir.frames import NO_FRAME
from shardpass.planning.decide.search import decide
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.steps import BlockPlan, ControlFlowPlan, SplitPlan
from shardpass.program.program import Program
from shardpass.report.naming import Sources
from shardpass.report.rows import DecidedFact, HintFact, folded_name
from shardpass.sharding import Sharding

LINE = "line"  # the kind of a hint that is a constraint
TRIES = {0: 400, 1: 24, 2: 12}  # hints that are priced, by the effort of each
VERIFIED = 6  # hints that are planned on the whole program
MOST_HINTS, MOST_NAMES = 3, 4
LEAST_BYTES = 0.01  # of all bytes, that a hint saves
MORE_MEMORY = 1.05  # the peak that a hint may lead to, beside that of the program as it is

OPS = 5_000  # ops that are priced for decisions
FEWEST = 6  # decisions that are priced
MOST_DECIDED = 2
LEAST_TIME = 0.02  # of the modelled time, that a decision saves
MOST_LINES = 6


def find_hints(module: Any, effort: int, machine: Machine, sources: Sources) -> tuple[HintFact, ...]:
    """Return the hints for a module, which is imported in place, greatest savings first."""
    reading = reading_of(module, sources)
    with module.context:
        hints = list(_Hints(Sites(reading), effort, machine).run())
    return tuple(sorted(dict.fromkeys(hints), key=lambda hint: -hint.saves)[:MOST_HINTS])


def find_decided(data: Given, file: str, plan: ProgramPlan, sources: Sources) -> tuple[DecidedFact, ...]:
    """Return the shardings of ``plan`` that save most, greatest savings first. ``data``: the program that it plans."""
    try:
        reading = read(data, file, sources, trusted=False)
    except ShardpassError:
        return ()
    with reading.module.context:
        if not _is_same(reading.program, plan.program):
            return ()
        return tuple(_decisions(Sites(reading), plan))


@dataclass(frozen=True)
class _Lines:
    """The lines of a plan: ``context`` has those that take most time, and ``makers`` those that make their operands."""

    context: Context
    makers: tuple[Place, ...]


def _lines(sites: Sites, plan: ProgramPlan) -> _Lines:
    sums: dict[Place, float] = {}
    ops = {op.number: op for op in sites.program.body.every_op()}
    spent = [(sent.op, sent.seconds(plan.machine) * sent.times) for sent in plan.collectives]
    spent += [(ops.get(number), seconds) for number, seconds in plan.compute_by_op().items()]
    for op, seconds in spent:
        place = NOWHERE if op is None else sites.names.frame(op).place
        sums[place] = sums.get(place, 0.0) + seconds
    sums.pop(NOWHERE, None)
    most = sorted(sums, key=lambda place: -sums[place])[:MOST_LINES]
    known = {(place.file, place.line) for place in most}
    used = [value for op in ops.values() if _key(sites.names.frame(op).place) in known for value in op.operands]
    makers = (sites.names.frame(sites.names.makers[value]).place for value in used if value in sites.names.makers)
    return _Lines(Context(sites, most), tuple(dict.fromkeys(one for one in makers if one != NOWHERE)))


def _key(place: Place) -> tuple[str, int]:
    return place.file, place.line


class _Hints:
    """One search for hints. State: the plan of the current program."""

    def __init__(self, sites: Sites, effort: int, machine: Machine) -> None:
        self.sites, self.effort, self.machine = sites, effort, machine
        self.model = Model(sites.reading, machine, effort)
        self.propagate = f"shardpass-propagate{{effort={effort}}}"
        self.base = planned(sites.reading.module, (), self.propagate)

    def run(self) -> Iterator[HintFact]:
        if self.sites.program.mesh.mesh.size < 2 or not self.base.bytes_received:
            return
        lines = _lines(self.sites, self.base)
        self.context = lines.context
        self.now = self._decided(self.effort)
        best: dict[Site, tuple[float, Change]] = {}
        base = self.model.price(())
        for change in self._changes(lines)[: TRIES[self.effort]]:
            cost = self.model.price((change,))
            if cost < min(base * (1 - LEAST_BYTES / 10), best.get(change.site, (base, change))[0]):
                best[change.site] = cost, change
        for _, change in sorted(best.values(), key=lambda one: one[0])[:VERIFIED]:
            yield from self._verified(change)

    def _decided(self, effort: int) -> Mapping[int, Sharding]:
        return decide(self.sites.program, self.model.task.barriers, effort, self.machine).shardings.of

    def _changes(self, lines: _Lines) -> list[Change]:
        """List changes, the likeliest first: the specs of a longer search, then every spec."""
        places = dict.fromkeys((*lines.context.lines, *lines.makers))
        sites = [*self.sites.values(list(places)), *map(self._inner, self.sites.arguments)]
        searched = self._decided(min(2, self.effort + 1))
        first = [Change(site, spec) for site in sites if (spec := self.context.spec_in(site, searched)) is not None]
        every = (Change(site, spec) for site in sites for spec in every_spec(site.array.shape, self.context.axes))
        return [one for one in dict.fromkeys((*first, *every)) if one.spec != self.context.spec_in(one.site, self.now)]

    def _inner(self, site: Site) -> Site:
        """Return the site of a constraint on an argument that has an annotation of its own."""
        if site.spec is None:
            return site
        frames = (
            self.sites.names.frame(op) for op in self.sites.program.body.every_op() if site.values[0] in op.operands
        )
        return replace(site, kind=VALUE, spec=None, positions=(), frame=next(frames, NO_FRAME))

    def _verified(self, change: Change) -> Iterator[HintFact]:
        """Plan the whole program with ``change``; yield a hint where that saves."""
        base, site, spec = self.base, change.site, change.spec
        assert spec is not None
        plan = planned(self.sites.reading.module, (change,), self.propagate)
        saved = base.bytes_received - plan.bytes_received
        if saved < LEAST_BYTES * base.bytes_received or plan.makespan >= base.makespan:
            return
        if plan.alive.peak > base.alive.peak * MORE_MEMORY:
            return
        names = dict.fromkeys(folded_name(name) if len(site.names) > 1 else name for name in site.names)
        yield HintFact(
            ARGUMENT if site.kind == ARGUMENT else LINE,
            ", ".join(list(names)[:MOST_NAMES]),
            spec_text(spec),
            spec_text(self.context.spec_in(site, self.now) or ()),
            Place(*_key(site.place)) if site.place != NOWHERE else NOWHERE,
            base.bytes_received,
            plan.bytes_received,
            plan.alive.peak - base.alive.peak,
        )


def _decisions(sites: Sites, plan: ProgramPlan) -> list[DecidedFact]:
    model = Model(sites.reading, plan.machine)
    before, was = model.propagated(()), model.price(())
    count = max(FEWEST, OPS // max(1, model.task.folded.program.count))
    changes = _decided_changes(_lines(sites, before).context, before, plan)[:count]
    kept, facts = list[Change](), list[DecidedFact]()

    def tried(change: Change) -> tuple[float, Change] | None:
        price = math.inf if change in kept else model.price((*kept, change))
        return (price, change) if price <= was * (1 - LEAST_TIME) else None

    def keep(best: tuple[float, Change]) -> None:
        nonlocal before, was
        now, change = best
        kept.append(change)
        after = model.propagated(kept)
        received = before.bytes_received, after.bytes_received
        facts.append(DecidedFact(words(change), code_of(change), change.site.place, *received, was, now))
        before, was = after, now

    keep_best(lambda: changes, tried, lambda best: best[:1], keep, MOST_DECIDED)
    return facts


def _decided_changes(context: Context, before: ProgramPlan, plan: ProgramPlan) -> list[Change]:
    here, there, sites = _shardings_of(before), _shardings_of(plan), context.sites
    changes = []
    for site in (*sites.arguments, *sites.results, *sites.values(context.lines)):
        spec = context.spec_in(site, there, plan.returned)
        if site.spec is None and spec is not None and context.spec_in(site, here, before.returned) != spec:
            changes.append(Change(site, spec))
    return changes


def words(change: Change) -> str:
    """Describe a split: ``splitting dimension 0 of `x` over data``."""
    name, spec = change.site.pattern, change.spec or ()
    parts = [f"dimension {dim} of `{name}` over {' and '.join(axes)}" for dim, axes in enumerate(spec) if axes]
    return f"splitting {' and '.join(parts)}" if parts else f"keeping `{name}` whole"


def _shardings_of(plan: ProgramPlan) -> Mapping[int, Sharding]:
    """Return the shardings of main's arguments and of the results of split ops, by value number."""
    return dict(_of_block(plan.body))


def _of_block(block: BlockPlan) -> Iterator[tuple[int, Sharding]]:
    yield from block.arguments
    for op in block.ops:
        if isinstance(op, SplitPlan):
            yield from ((one.value, one.wanted) for one in op.results if one is not None)
        elif isinstance(op, ControlFlowPlan):
            for inner in op.blocks:
                yield from _of_block(inner)


def _is_same(one: Program, other: Program) -> bool:
    """Return whether the ops and values of two readings of a program have the same numbers."""
    return [op.name for op in one.body.every_op()] == [op.name for op in other.body.every_op()] and (
        [array and array.shape for array in one.arrays] == [array and array.shape for array in other.arrays]
    )
