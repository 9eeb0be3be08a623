"""Choose the split of an op: the cheapest candidate of ``splits.assign``, by the price of its collectives and work.

The price of a split is the time (``clock``) to reshard the operands from their nearest copies, of the op's own
collectives (``OpModel.plan``), to complete partial results and reshard the results, and of the op's work on one
device.

State: decisions on one machine by (model, available copies of each operand, required sharding of each result). So
equal layers of a program are decided once, and programs of one process share decisions (``decided_on``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ops.border import plan_of
from shardpass.ops.model import LocalPlan, OpModel, Shapes, Split
from shardpass.ops.splits.assign import Assignment, Completion, Floors, Known, Pricing, Side, assign, complete, settle
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule, unproject, used_axes
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles.masking import has_identity
from shardpass.planning.options.axes import whole_axes
from shardpass.planning.options.copies import Copies, PlacedArray
from shardpass.planning.options.sums import NO_SUMS, Sums
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.clock import Clock, Types, clock_of
from shardpass.planning.price.prices import Prices
from shardpass.planning.price.steps import Mask, Remark
from shardpass.program.program import Array
from shardpass.program.shardings import Factors
from shardpass.sharding import Sharding

MOST_CHOICES = 1 << 13  # that are kept from program to program, for each mesh


class OperandChoice(NamedTuple):
    """The sharding of an operand at its op, and the padding to mask there."""

    sharding: Sharding
    masks: tuple[Mask, ...]


class ResultChoice(NamedTuple):
    """How a result is computed: split as ``dims``, with the sharding ``computed`` after its partial sums are
    completed.
    """

    dims: DimAxes
    completions: tuple[Completion, ...]
    computed: Sharding

    @classmethod
    def of(cls, dims: DimAxes, mesh: PrimeMesh) -> ResultChoice:
        """Return the choice for a result that is not a partial sum."""
        return cls(dims, (), mesh.sharding(dims))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A chosen split of an op: the local op of a device, its operands and results, and the remarks for the user."""

    local: LocalPlan
    operands: tuple[OperandChoice, ...]
    results: tuple[ResultChoice, ...]
    remarks: tuple[Remark, ...]
    factors: dict[int, Axes]

    @property
    def completes_twice(self) -> bool:
        """Whether one collective after the other completes a result."""
        return any(len(made.completions) > 1 for made in self.results)


class Splits:
    """The local plans and costs of the splits of one op, by its model and the types of its values. Results are
    cached.
    """

    def __init__(
        self, model: OpModel[Any], rule: Rule, mesh: PrimeMesh, shapes: tuple[Shapes, Shapes], machine: Machine
    ) -> None:
        self.model, self.rule, self.mesh, self.shapes, self.machine = model, rule, mesh, shapes, machine
        self.known = Known()
        self._plans: dict[tuple[tuple[int, Axes], ...], LocalPlan] = {}

    def local(self, factors: dict[int, Axes]) -> LocalPlan:
        """Return the local plan of a device with each factor split over the given sub-axes."""
        key = tuple(sorted(factors.items()))
        plan = self._plans.get(key)
        if plan is None:
            split = Split.of(self.rule, self.mesh, factors, *self.shapes, self.machine)
            plan = self._plans[key] = plan_of(self.model, split)
        return plan

    def own(self, clock: Clock, types: Types, borders: Borders, factors: dict[int, Axes]) -> float:
        """Return the seconds of the op's own collectives and of its work on one device, on elements of ``types``."""
        local = self.local(factors)
        sent = sum([clock.collective(one.kind, one.bytes, one.axes, self.mesh) for one in local.collectives])
        return sent + clock.work(self.rule, local.split, types, borders)


@dataclass(frozen=True)
class Decided:
    """A cache of decisions by their inputs, and of prices, for one plan or for all programs on one mesh and machine."""

    prices: Prices
    clock: Clock = field(default_factory=lambda: clock_of(IDEAL))
    choices: dict[Any, Choice] = field(default_factory=dict)
    splits: dict[Any, Splits] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether the cache is large enough that further programs should start with an empty one."""
        return max(len(self.choices), self.prices.count // 4) > MOST_CHOICES


def decided_on(mesh: PrimeMesh, machine: Machine = IDEAL) -> Decided:
    """Return the decisions that programs on ``mesh`` and ``machine`` share; plan add to them.

    A decision depends on nothing but its key, so programs of one process share them: a training step and its evaluation
    have most of their layers in common. Once there are too many, they are dropped and the next program starts with
    none.
    """
    kept = _kept_on(mesh, machine)
    if kept[0].is_full:
        kept[0] = Decided(Prices(mesh.num_devices), clock_of(machine))
    return kept[0]


@lru_cache(maxsize=8)
def _kept_on(mesh: PrimeMesh, machine: Machine) -> list[Decided]:
    return [Decided(Prices(mesh.num_devices), clock_of(machine))]


class Choices:
    """Chooses splits for the ops of one plan; reuses the decisions of ``decided`` and adds to them."""

    def __init__(self, decided: Decided, copies: Copies) -> None:
        self.prices, self.clock = decided.prices, decided.clock
        self.copies = copies
        self._known = decided.choices
        self._splits = decided.splits

    def of(
        self,
        model: OpModel[Any],
        mesh: PrimeMesh,
        placed: Sequence[PlacedArray],
        types: Sequence[Array],
        wanted: Sequence[Sharding],
        borders: Borders,
        way: Factors | None = None,
        sums: Sums = NO_SUMS,
    ) -> Choice:
        """Choose the cheapest split of an op with ``model``.

        ``placed``: its operands. ``types`` and ``wanted``: its results and the shardings that they must have.
        ``borders``: which values go through memory. ``way``: the sub-axes of its factors, where they are decided
        already. ``sums``: which operands and results are partial sums.
        """
        at_hand = self.copies.of
        key = (model, mesh.manual, borders, way, sums, *[(h.type, at_hand(h)) for h in placed], *types, *wanted)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._choose(model, mesh, placed, types, wanted, borders, way, sums)
        return known

    def _choose(
        self,
        model: OpModel[Any],
        mesh: PrimeMesh,
        placed: Sequence[PlacedArray],
        types: Sequence[Array],
        wanted: Sequence[Sharding],
        borders: Borders,
        way: Factors | None,
        sums: Sums,
    ) -> Choice:
        key = (model, mesh.manual, borders, *[h.type for h in placed], *types)
        splits = self._splits.get(key)
        if splits is None:
            shapes = tuple(h.shape for h in placed), tuple(t.shape for t in types)
            machine = self.clock.machine
            splits = self._splits[key] = Splits(model, maskable(model.rule, placed), mesh, shapes, machine)
        rule = splits.rule
        inputs = [Side(h.shape, m, h.dims, h.type.element) for h, m in zip(placed, rule.operands, strict=True)]
        outputs = tuple(
            Side(t.shape, m, mesh.dims(s, t.rank), t.element)
            for t, m, s in zip(types, rule.results, wanted, strict=True)
        )

        elements = tuple([value.type.element for value in placed]), tuple([type_.element for type_ in types])

        def deliver(i: int, dims: DimAxes) -> float:
            if outputs[i].dims == dims:
                return 0.0
            return self.clock.reshard(types[i], mesh.sharding(dims), wanted[i], mesh, self.prices)

        def least_delivered(i: int, dims: DimAxes) -> float:
            return (
                0.0
                if outputs[i].dims == dims
                else self.clock.least_move(types[i], mesh.sharding(dims), wanted[i], mesh)
            )

        pricing = Pricing(
            lambda i, dims: self.copies.price(placed[i], mesh.sharding(dims)),
            deliver,
            lambda factors: splits.own(self.clock, elements, borders, factors),
            lambda done: self.clock.collective(done.kind, done.bytes, done.axes, mesh),
            lambda i, count: self.clock.made(count, elements[0][i]),
            Floors(lambda i, dims: self.copies.least(placed[i], mesh.sharding(dims)), least_delivered),
        )
        at_hand = [
            replace(side, dims=mesh.dims(copy, h.type.rank))
            for h, side in zip(placed, inputs, strict=True)
            for copy in self.copies.of(h)[1:]
        ]
        if way is not None:
            chosen = on_way(rule, inputs, outputs, dict(way), mesh)
        else:
            chosen = assign(rule, inputs, outputs, mesh, pricing, at_hand, splits.known)
        operands = [
            OperandChoice(mesh.sharding(dims), masks(rule, index, placed[index].shape, dims, mesh))
            for index, dims in enumerate(chosen.operands)
        ]
        results = []
        for array, side, dims in zip(types, outputs, chosen.results, strict=True):
            done: tuple[Completion, ...] = ()
            if now := sums.completed(chosen.partial):
                dims, done = self._completed(array, side, dims, now, rule.combiner or "add", mesh, way is not None)
            results.append(ResultChoice(dims, done, sums.made(dims, mesh)))
        remarks = gather_remarks(rule, placed, chosen.operands, mesh, self.prices)
        return Choice(splits.local(chosen.factors), tuple(operands), tuple(results), remarks, chosen.factors)

    def _completed(
        self, array: Array, side: Side, dims: DimAxes, partial: Axes, combiner: str, mesh: PrimeMesh, decided: bool
    ) -> tuple[DimAxes, tuple[Completion, ...]]:
        """Choose how to complete a partial result, counting the reshard to ``side`` that follows.

        Example on data=4, model=2, partial over data and wanted in rows over model: scattered to rows over data, and
        then exchanged, a device receives less than in a sum of whole rows. ``decided``: whether the op's way is, which
        the tables price by its cheapest completion: of a small array partial over both and wanted in rows over data,
        one all_reduce, of which each device keeps its rows, for a reduce_scatter and an all_reduce.
        """
        best = complete(side, dims, partial, combiner, mesh)
        if side.dims is None or (best[0] == side.dims and (not decided or len(best[1]) < 2)):
            return best
        wanted = mesh.sharding(side.dims)

        def price(option: tuple[DimAxes, tuple[Completion, ...]]) -> float:
            reached, steps = option
            sums = [self.clock.collective(step.kind, step.bytes, step.axes, mesh) for step in steps]
            return sum(sums) + self.clock.move(array, mesh.sharding(reached), wanted, mesh)

        summed = [axes for axes in whole_axes(mesh) if axes[0] in partial]
        options = [best]
        for places in itertools.product(range(-1, array.rank), repeat=len(summed)):
            through = list(dims)
            for place, axes in zip(places, summed, strict=True):
                if place >= 0:
                    through[place] += tuple([axis for axis in axes if axis in partial])
            options.append(complete(replace(side, dims=tuple(through)), dims, partial, combiner, mesh))
        return min(options, key=price)


def on_way(
    rule: Rule, operands: Sequence[Side], results: Sequence[Side], factors: dict[int, Axes], mesh: PrimeMesh
) -> Assignment:
    """Return the splits of an op's operands and results if its factors are split as in ``factors``."""
    factors = settle(rule, [*operands, *results], factors, mesh.sizes)  # where text says one that no value can say
    inputs, outputs = (
        tuple([unproject(rule, side.dim_map, side.shape, factors, mesh.sizes) for side in sides])
        for sides in (operands, results)
    )
    partial = () if rule.self_completing else partial_axes(rule, [factors.get(f, ()) for f in range(len(rule.factors))])
    return Assignment(factors, inputs, outputs, partial, 0.0)


def maskable(rule: Rule, operands: Sequence[PlacedArray]) -> Rule:
    """Return ``rule``, without split reductions if padding of an operand could not be masked."""
    if not rule.combiner or rule.masks:
        return rule
    if all(has_identity(rule.combiner, h.type.element) for h in operands):
        return rule
    factors = tuple(replace(f, kind=Kind.REPLICATED) if f.kind is Kind.REDUCTION else f for f in rule.factors)
    return replace(rule, factors=factors)


def masks(rule: Rule, index: int, shape: Sequence[int], dims: DimAxes, mesh: PrimeMesh) -> tuple[Mask, ...]:
    """Return the masks of operand ``index``: one for each padded dimension that the op reduces."""
    if rule.masks or not any(dims):
        return ()
    out = []
    for dim, (factors, axes) in enumerate(zip(rule.operands[index], dims, strict=True)):
        if not axes or not any(rule.factors[f].kind is Kind.REDUCTION for f in factors):
            continue
        if shape[dim] % mesh.count(axes):
            out.append(Mask(dim, shape[dim], axes, rule.combiner))
    return tuple(out)


def gather_remarks(
    rule: Rule, placed: Sequence[PlacedArray], chosen: Sequence[DimAxes], mesh: PrimeMesh, prices: Prices
) -> tuple[Remark, ...]:
    """Return a remark (SP304) for each operand that is gathered because the rule cannot split the dimension it is
    split along.

    A gather that is preferred, as it moves fewer bytes than the alternatives, gets none.
    """
    out = []
    for index, (value, dims) in enumerate(zip(placed, chosen, strict=True)):
        if value.dims is None or value.dims == dims:
            continue
        kept = used_axes(dims)
        stuck = [
            dim
            for dim, axes in enumerate(value.dims)
            if not kept.issuperset(axes) and not _splits(rule, rule.operands[index][dim])
        ]
        gathered = prices.move(value.type, value.sharding, mesh.sharding(dims), mesh) if stuck else 0
        if gathered:
            free = [d for d, n in enumerate(value.shape) if n > 1 and _splits(rule, rule.operands[index][d])]
            out.append(Remark("SP304", index, value.type, tuple(stuck), tuple(free), gathered))
    return tuple(out)


def _splits(rule: Rule, factors: tuple[int, ...]) -> bool:
    return any(rule.factors[f].kind is not Kind.REPLICATED for f in factors)
