"""Which shardings of a decision save most, each with the annotation by which another partitioner has it.

Problem: a search decides all values at once. Its reader asks which of its shardings matter, and what to write where a
partitioner propagates and searches nothing.

1. Candidates: arguments and results without an annotation, and the values that expressions stand for at the lines that
   take most time where shardings are propagated alone. Each with the sharding of the plan, where that is another one
   than propagation's, in whole axes that divide.
2. Each is put on the program alone, which is propagated and planned (``model``). The cheapest is kept, and those that
   are left are tried again on top of it.
3. What is kept saves at least ``LEAST`` of the time by the model. Bytes are those of plans of the whole program.

Example: of ``h = x @ up`` with x whole and rows of up over 'model', propagation alone sums h. The search splits the
columns of x; that sharding, alone on x, saves all that the search saves.

Complexity: (MOST + 1) x candidates, each a propagation and a plan of the folded program; MOST + 1 plans of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardpass.advise.price import Model
from shardpass.advise.propose.program import Context, Edit
from shardpass.advise.text import code_of
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.doors import Given
from shardpass.places.sites import Sites, read
from shardpass.places.specs import Spec
from shardpass.places.write import Change
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.steps import BlockPlan, ControlFlowPlan, SplitPlan
from shardpass.program.program import Program
from shardpass.report.naming import Sources
from shardpass.report.rows import DecidedFact
from shardpass.sharding import Sharding

TRIES = 5_000  # ops that are priced in all
FEWEST = 6  # candidates that are priced
MOST = 2  # shardings that are named
MOST_LINES = 4
LEAST = 0.02  # of the modelled time


def find_decided(data: Given, file: str, plan: ProgramPlan, sources: Sources) -> tuple[DecidedFact, ...]:
    """Returns the shardings of ``plan`` that save most, greatest savings first. ``data``: the program that it plans."""
    try:
        reading = read(data, file, sources, trusted=False)
    except ShardpassError:
        return ()
    with reading.module.context:
        if not _is_same(reading.program, plan.program):
            return ()
        return tuple(_Decisions(Sites(reading), plan).run())


class _Decisions:
    """Selects the shardings of one program. State: the edits that are kept, and the bytes received with them."""

    def __init__(self, sites: Sites, plan: ProgramPlan) -> None:
        self.sites, self.plan = sites, plan
        self.model = Model(sites.reading, plan.machine)
        self.kept: list[Edit] = []

    def run(self) -> Iterator[DecidedFact]:
        before = self.model.propagated(())
        price = self.model.price(())
        count = max(FEWEST, TRIES // max(1, self.model.task.folded.program.count))
        left = self._candidates(before)[:count]
        while left and len(self.kept) < MOST:
            priced = sorted(((self._price(edit), place) for place, edit in enumerate(left)))
            best, place = priced[0]
            if best > price * (1 - LEAST):
                return
            edit, was, price = left[place], price, best
            left = [left[other] for _, other in priced[1:]]
            self.kept.append(edit)
            after = self.model.propagated([change for one in self.kept for change in one])
            site, spec = edit[0].site, edit[0].spec or ()
            received = before.bytes_received, after.bytes_received
            yield DecidedFact(words(site.pattern, spec), code_of(edit[0]), site.place, *received, was, price)
            before = after

    def _price(self, edit: Edit) -> float:
        return self.model.price([change for one in (*self.kept, edit) for change in one])

    def _candidates(self, before: ProgramPlan) -> list[Edit]:
        context = Context(self.sites, self._lines(before))
        here, there = shardings_of(before), shardings_of(self.plan)
        edits: list[Edit] = []
        for site in (*self.sites.arguments, *self.sites.results, *self.sites.values(context.lines)):
            spec = context.spec_in(site, there, self.plan.returned)
            if site.spec is None and spec is not None and context.spec_in(site, here, before.returned) != spec:
                edits.append((Change(site, spec),))
        return edits

    def _lines(self, plan: ProgramPlan) -> list[Place]:
        sums: dict[Place, float] = {}
        ops = {op.number: op for op in self.sites.program.body.every_op()}
        spent = [(sent.op, sent.seconds(plan.machine) * sent.times) for sent in plan.collectives]
        spent += [(ops.get(number), seconds) for number, seconds in plan.compute_by_op().items()]
        for op, seconds in spent:
            place = NOWHERE if op is None else self.sites.names.frame(op).place
            if place != NOWHERE:
                sums[place] = sums.get(place, 0.0) + seconds
        return sorted(sums, key=lambda place: -sums[place])[:MOST_LINES]


def words(name: str, spec: Spec) -> str:
    """Describes a split: ``splitting dimension 0 of `x` over data``."""
    parts = [f"dimension {dim} of `{name}` over {' and '.join(axes)}" for dim, axes in enumerate(spec) if axes]
    return f"splitting {' and '.join(parts)}" if parts else f"keeping `{name}` whole"


def shardings_of(plan: ProgramPlan) -> Mapping[int, Sharding]:
    """Returns the shardings of main's arguments and of the results of split ops, by value number."""
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
    """Whether the ops and values of two readings of a program have the same numbers."""
    return [op.name for op in one.body.every_op()] == [op.name for op in other.body.every_op()] and (
        [array and array.shape for array in one.arrays] == [array and array.shape for array in other.arrays]
    )
