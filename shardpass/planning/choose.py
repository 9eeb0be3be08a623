"""Which split an op takes: the cheapest of the candidates (``splits.assign``), priced by what would be listed for each.

The price of a split is what a device receives to bring the operands to it from their nearest copies, for the
collectives of the op's own (``OpModel.plan``), to complete partial results and to bring the results to what they must
be; with a latency for each of these and the op's work on one device.

State: decisions by (model, what is at hand of each operand, what is wanted of each result), so that the layers of a
program are decided once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shardpass.element_types import ElementType
from shardpass.ops.model import LocalPlan, OpModel, Shapes, Split
from shardpass.ops.splits.assign import Assignment, Side, assign
from shardpass.ops.splits.factors import Axes, Kind, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.copies import Copies, Held
from shardpass.planning.prices import Prices
from shardpass.program.program import Array
from shardpass.sharding import Sharding


class Choice:
    """A chosen split with its local plan. ``rule`` is the model's, less what could not be masked."""

    __slots__ = ("assignment", "local", "outputs", "rule")

    def __init__(self, assignment: Assignment, local: LocalPlan, outputs: tuple[Side, ...], rule: Rule) -> None:
        self.assignment = assignment
        self.local = local
        self.outputs = outputs
        self.rule = rule


class Choices:
    """The decisions so far."""

    def __init__(self, prices: Prices, copies: Copies) -> None:
        self.prices = prices
        self.copies = copies
        self._known: dict[Any, Choice] = {}

    def of(
        self,
        model: OpModel[Any],
        mesh: PrimeMesh,
        held: Sequence[Held],
        types: Sequence[Array],
        wanted: Sequence[Sharding],
    ) -> Choice:
        """The split of an op with ``model``: operands ``held``, results of ``types`` that must be as ``wanted``."""
        at_hand = self.copies.of
        key = (model, mesh.manual, *[(h.type, at_hand(h)) for h in held], *types, *wanted)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._choose(model, mesh, held, types, wanted)
        return known

    def _choose(
        self,
        model: OpModel[Any],
        mesh: PrimeMesh,
        held: Sequence[Held],
        types: Sequence[Array],
        wanted: Sequence[Sharding],
    ) -> Choice:
        rule = maskable(model.rule, held)
        inputs = [Side(h.shape, m, h.dims, h.type.element) for h, m in zip(held, rule.operands, strict=True)]
        outputs = tuple(
            Side(t.shape, m, mesh.dims(s, t.rank), t.element)
            for t, m, s in zip(types, rule.results, wanted, strict=True)
        )
        shapes: tuple[Shapes, Shapes] = tuple(h.shape for h in held), tuple(t.shape for t in types)
        plans: dict[tuple[tuple[int, Axes], ...], LocalPlan] = {}

        def local(factors: dict[int, Axes]) -> LocalPlan:
            key = tuple(sorted(factors.items()))
            found = plans.get(key)
            if found is None:
                found = plans[key] = model.plan(Split.of(rule, mesh, factors, *shapes))
            return found

        def deliver(i: int, dims: tuple[Axes, ...]) -> int:
            if outputs[i].dims == dims:
                return 0
            return self.prices.move(types[i], mesh.sharding(dims), wanted[i], mesh)

        chosen = assign(
            rule,
            inputs,
            outputs,
            mesh,
            lambda i, dims: self.copies.price(held[i], mesh.sharding(dims)),
            deliver,
            lambda factors: [c.bytes for c in local(factors).collectives],
        )
        return Choice(chosen, local(chosen.factors), outputs, rule)


# Of the floating-point types, those whose infinities can be written: the identities of minimum and maximum.
WITH_INFINITIES = frozenset({"f64", "f32", "f16", "bf16"})


def has_identity(combiner: str, element: ElementType) -> bool:
    """Whether the padding of arrays of ``element`` can be overwritten by the identity of ``combiner``."""
    if combiner not in ("maximum", "minimum"):
        return True
    return element.mlir in WITH_INFINITIES or element.mlir.lstrip("u").startswith("i")


def maskable(rule: Rule, operands: Sequence[Held]) -> Rule:
    """``rule``; without split reductions where padding could not be masked."""
    if not rule.combiner or rule.masks:
        return rule
    if all(has_identity(rule.combiner, h.type.element) for h in operands):
        return rule
    factors = tuple(replace(f, kind=Kind.REPLICATED) if f.kind is Kind.REDUCTION else f for f in rule.factors)
    return replace(rule, factors=factors)
