"""What each op may do, and what it costs: every split of its factors, with its collectives, completions and work.

An ``Option`` of an op is a split (every distribution of mesh axes over the factors of its rule which all of its values
can say exactly), and, where results are partial, one way to complete them: partial sums are scattered as the wanted
sharding of the result asks for (``splits.assign.complete``), so each wanted sharding gives a completion.

Costs are those that a plan lists, in the unit of ``planning.cost.price``: bytes received, a latency for every
collective, work. State: ``Costs`` keeps what it has worked out for a whole run, by types, models and splits; a new
(array, source, target) plans one redistribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ops.model import LocalPlan, OpModel, Split
from shardpass.ops.splits.assign import Side, complete, settle
from shardpass.ops.splits.factors import Axes, Kind, Rule
from shardpass.ops.splits.partial import partial_axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.choose import maskable
from shardpass.planning.options.copies import PlacedArray
from shardpass.planning.price.borders import Borders, borders
from shardpass.planning.price.clock import clock_of
from shardpass.planning.price.listed import redistribution
from shardpass.planning.price.steps import Copy, Reshard
from shardpass.program.program import Array, Op, OpKind, Program
from shardpass.sharding import Sharding
from tools.prove.cheapest.space import Domains, Unsupported, distributions


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run an op. ``operands``: the sharding of each operand, None where it is not read."""

    cost: float
    operands: tuple[Sharding | None, ...]
    results: tuple[Sharding, ...]


class Costs:
    """What moves and ops cost on one mesh of ``machine``; see the module's text."""

    def __init__(self, mesh: PrimeMesh, domains: Domains, machine: Machine = IDEAL) -> None:
        self.mesh = mesh
        self.domains = domains
        self.clock = clock_of(machine)
        self._moves: dict[tuple[Array, Sharding, Sharding], float] = {}
        self._splits: dict[Any, tuple[dict[int, Axes], ...]] = {}
        self._options: dict[Any, tuple[Option, ...]] = {}
        self._distances: dict[Any, np.ndarray[Any, Any]] = {}

    def move(self, array: Array, source: Sharding, target: Sharding) -> float:
        """To bring ``array`` from one sharding to another."""
        if source == target:
            return 0.0
        key = (array, source, target)
        if key not in self._moves:
            plan = redistribution(Reshard(Copy(0, source), target, array, self.mesh, 0, ""), self.clock.machine)
            self._moves[key] = plan.seconds if plan.bytes_received else 0.0  # a slice is part of what reads it
        return self._moves[key]

    def distances(self, array: Array, shardings: tuple[Sharding, ...]) -> np.ndarray[Any, Any]:
        """From each of ``shardings`` to each, the least that a chain of moves costs."""
        key = (array, shardings)
        if key not in self._distances:
            table = np.array([[self.move(array, one, other) for other in shardings] for one in shardings])
            for through in range(len(shardings)):
                np.minimum(table, table[:, through, None] + table[None, through, :], out=table)
            self._distances[key] = table
        return self._distances[key]

    def options(self, op: Op, program: Program) -> tuple[Option, ...]:
        """Every option of ``op`` that no other of its options makes needless."""
        types = [program.array(value) for value in op.operands]
        made = [program.array(value) for value in op.results]
        if op.kind is OpKind.WHOLE:
            if op.captured:
                raise Unsupported(f"{op.name} takes values from outside of its region")
            whole = [self.mesh.replicated(array.rank) for array in (*types, *made)]
            return (Option(0.0, tuple(whole[: len(types)]), tuple(whole[len(types) :])),)
        assert op.model is not None
        at = borders(program)[op.number]
        key = (op.model, at, *types, *made)  # equal ops of a program share their model
        if key not in self._options:
            self._options[key] = tuple(self._all_options(op.model, types, made, at))
        return self._options[key]

    def _all_options(
        self, model: OpModel[Any], types: Sequence[Array], made: Sequence[Array], at: Borders
    ) -> list[Option]:
        elements = [array.element for array in types], [array.element for array in made]
        held = [PlacedArray(0, array, self.mesh.replicated(array.rank), None, self.mesh) for array in types]
        rule = maskable(model.rule, held)
        if rule.independent and len(types) > 1:
            raise Unsupported("an op whose operands have nothing to do with one another")
        shapes = tuple(array.shape for array in types), tuple(array.shape for array in made)
        cheapest: dict[tuple[Any, Any], Option] = {}
        for factors in self._splits_of(rule, types, made):
            split = Split.of(rule, self.mesh, factors, *shapes, self.clock.machine)
            local: LocalPlan = model.plan(split)
            cost = sum(self.clock.collective(one.kind, one.bytes, one.axes, self.mesh) for one in local.collectives)
            cost += self.clock.work(rule, split, elements, at)
            operands = tuple(
                None if index in local.ignored else self.mesh.sharding(dims)
                for index, dims in enumerate(split.operands)
            )
            for results, more in self._completed(rule, split, made):
                option = Option(cost + more, operands, results)
                key = (operands, results)
                if key not in cheapest or option.cost < cheapest[key].cost:
                    cheapest[key] = option
        return list(cheapest.values())

    def _splits_of(self, rule: Rule, types: Sequence[Array], made: Sequence[Array]) -> tuple[dict[int, Axes], ...]:
        """Every split that all values can say exactly."""
        key = (rule, tuple(array.shape for array in (*types, *made)))
        if key not in self._splits:
            sides = [Side(a.shape, m, None, a.element) for a, m in zip(types, rule.operands, strict=True)]
            sides += [Side(a.shape, m, None, a.element) for a, m in zip(made, rule.results, strict=True)]
            places = [number for number, factor in enumerate(rule.factors) if factor.kind is not Kind.REPLICATED]
            found = []
            for lists in distributions(self.domains.units, len(places)):
                factors = {place: axes for place, axes in zip(places, lists, strict=True) if axes}
                fits = all(self.mesh.count(axes) <= rule.factors[f].size for f, axes in factors.items())
                if fits and settle(rule, sides, factors, self.mesh.sizes) == factors:
                    found.append(factors)
            self._splits[key] = tuple(found)
        return self._splits[key]

    def _completed(self, rule: Rule, split: Split, made: Sequence[Array]) -> list[tuple[tuple[Sharding, ...], float]]:
        """The shardings in which results can come out, and what completing them costs."""
        partial = () if rule.self_completing else partial_axes(rule, split.factors)
        if not partial:
            return [(tuple(map(self.mesh.sharding, split.results)), 0.0)]
        if len(made) > 1:
            raise Unsupported("an op with several partial results")
        (array,), (dims,) = made, split.results
        found: dict[Sharding, float] = {}
        for wanted in self.domains.of(array.shape, False):
            side = Side(array.shape, rule.results[0], self.mesh.dims(wanted, array.rank), array.element)
            reached, steps = complete(side, dims, partial, rule.combiner, self.mesh)
            cost = sum(self.clock.collective(step.kind, step.bytes, step.axes, self.mesh) for step in steps)
            sharding = self.mesh.sharding(reached)
            found[sharding] = min(cost, found.get(sharding, cost))
        return [((sharding,), cost) for sharding, cost in found.items()]
