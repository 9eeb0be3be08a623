"""Explain in one sentence why a collective exists: which value needs which sharding, and which annotation caused it.

Cases, by the origin of the collective (``watch.Origin``):

1. An operand is resharded for its op. Another dimension of the op, which another value has split over the same axes,
uses these axes; or the dimension cannot be split at all.
2. Partial results are summed: the op sums over a dimension that is split in an operand.
3. A result is resharded to its required sharding.
4. A constraint or a result of the program has another sharding; a loop carries another one.
5. Collectives of the op itself, such as halo exchanges of windows or keys of a sort: the op's own description.

Each reason ends with the annotation that the axis comes from: ``(argument x)``, ``(constraint at train.py:41)``,
``(sharding of shard_map at train.py:50)``, ``(result 0)``; or ``(as the search chose)`` if no annotation reaches it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from shardpass.ops.splits.factors import Axes, DimAxes, DimMap, Kind
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.splits.specs import axes_text, spec
from shardpass.planning.price.steps import (
    BlockPlan,
    ConstraintPlan,
    ControlFlowPlan,
    OpPlan,
    SplitPlan,
    WholePlan,
)
from shardpass.program.program import Op
from shardpass.report.naming import Names
from shardpass.report.provenance import ARGUMENT, RESULT, Annotated, Provenance
from shardpass.report.watch import Origin

OPERAND_SIDE, RESULT_SIDE = "operand", "result"


class Reasons:
    """Explain the collectives of one plan. ``results``: JAX's names of main's results. ``annotated``: the positions of
    annotated results.
    """

    def __init__(
        self, body: BlockPlan, names: Names, provenance: Provenance, results: Sequence[str], annotated: Collection[int]
    ) -> None:
        self.names, self.provenance, self.results, self.annotated = names, provenance, results, annotated
        self.searched = False
        self.plans: dict[int, OpPlan] = {}
        self._number(body)
        self.program = names.program

    def _number(self, block: BlockPlan) -> None:
        for plan in block.ops:
            self.plans[plan.op.number] = plan
            if isinstance(plan, ControlFlowPlan):
                for inner in plan.blocks:
                    self._number(inner)

    def of(self, origin: Origin, kind: str, axes: str, cause: str, dims: tuple[DimAxes, DimAxes] | None) -> str:
        """Return the reason for a collective as a sentence. ``dims``: the splits before and after a redistribution;
        ``cause``: the op's own attribute.
        """
        if origin.op == self.program.count and dims is not None:
            return self._returned(origin.index, dims)
        plan = self.plans.get(origin.op)
        if plan is None:
            return _plain(cause)
        if dims is not None:
            return self._moved(plan, origin, dims, cause)
        if cause.startswith("partial results"):
            return self._summed(plan, kind, axes)
        who = self._called(plan.op)
        return f"{who}: {_plain(cause)}" if cause else f"{who}, as the program says"

    # ---------------------------------------------------------------- redistributions

    def _moved(self, plan: OpPlan, origin: Origin, dims: tuple[DimAxes, DimAxes], cause: str) -> str:
        mesh, op = plan.op.mesh, plan.op
        source, target = dims
        shown = spec(target, mesh)
        if isinstance(plan, ConstraintPlan):
            return f"the {self._constraint(plan.op)} here says {shown}"
        if origin.side == RESULT_SIDE or cause.startswith("result of"):
            whose = self._from(self._value(op, origin), _lost(target, source), mesh)
            return f"{self._called(op)} makes it as {spec(source, mesh)}, and {shown} is wanted{whose}"
        if isinstance(plan, SplitPlan):
            return self._operand_resharded(plan, origin.index, source, target)
        if isinstance(plan, WholePlan):
            return f"every device computes {self._called(op)} whole: {op.why_whole}"
        if isinstance(plan, ControlFlowPlan):
            what = "the loop carries" if op.is_loop else "the branches take"
            value = op.results[origin.index] if op.is_loop and origin.index < len(op.results) else None
            whose = "" if value is None else self._from(value, [a for axes in target for a in axes], mesh)
            return f"{what} it as {shown}{whose}"
        return f"{_plain(cause)} must be {shown}"

    def _operand_resharded(self, plan: SplitPlan, index: int, source: DimAxes, target: DimAxes) -> str:
        """Explain why an operand is resharded for its op, case 1 of the module's list."""
        op, mesh = plan.op, plan.op.mesh
        who, shown = self._called(op), spec(target, mesh)
        lost = _lost(source, target)
        for axes, (value, dim) in self._users_of(plan, index, lost):
            whose = self._whose(self.provenance.at(value, dim, axes[0]))
            name = self.names.of(value) or "another value"
            return f"{who} splits {name} over {axes_text(mesh, axes)}{whose}, so it takes this as {shown}"
        if op.model is not None:
            rule = op.model.rule
            for dim, axes in enumerate(source):
                whole = any(rule.factors[f].kind is Kind.REPLICATED for f in rule.operands[index][dim])
                if axes and whole:
                    return f"{who} cannot be split along dimension {dim}, which {axes_text(mesh, axes)} splits"
        for axes, (value, dim) in self._users_of(plan, index, _lost(target, source)):
            whose = self._whose(self.provenance.at(value, dim, axes[0]))
            name = self.names.of(value) or "another value"
            return f"{who} is split over {axes_text(mesh, axes)} as {name} is{whose}"
        used = {axis for axes in plan.local.split.factors for axis in axes}
        idle = tuple(axis for axis in lost if axis not in used)
        if idle:
            return f"{who} takes it as {shown}: no other value here is split over {axes_text(mesh, idle)}"
        return f"{who} takes it as {shown}"

    def _users_of(self, plan: SplitPlan, index: int, axes: Sequence[int]) -> list[tuple[Axes, tuple[int, int]]]:
        """Group the axes in ``axes`` that split another value of the op, by that value and its dimension."""
        result: dict[tuple[int, int], list[int]] = {}
        for axis in axes:
            node = self._user_of(plan, index, axis)
            if node is not None:
                result.setdefault(node, []).append(axis)
        return [(tuple(axes), node) for node, axes in result.items()]

    def _user_of(self, plan: SplitPlan, index: int, axis: int) -> tuple[int, int] | None:
        """Return another operand or result of the op that is split over ``axis``, and the split dimension."""
        op = plan.op
        if op.model is None:
            return None
        rule, factors = op.model.rule, plan.local.split.factors
        used = [f for f, axes in enumerate(factors) if axis in axes]
        results = [op.results[place] for place in range(len(rule.results))]
        sides: list[tuple[int, DimMap]] = [
            *((op.operands[place], dims) for place, dims in enumerate(rule.operands) if place != index),
            *zip(results, rule.results, strict=True),
        ]
        result = [(value, dim) for value, dims in sides for dim, fs in enumerate(dims) if any(f in fs for f in used)]
        return min(result, key=lambda node: self.provenance.at(node[0], node[1], axis) is None, default=None)

    # ---------------------------------------------------------------- partial results

    def _summed(self, plan: OpPlan, kind: str, axes: str) -> str:
        """Explain why partial results are joined, case 2 of the module's list."""
        who = self._called(plan.op)
        if isinstance(plan, ControlFlowPlan):
            return f"each device adds up its own parts in {who}, and nothing in it reads the sum"
        if not isinstance(plan, SplitPlan) or plan.op.model is None:
            return f"{who}: each device has a part of the result"
        rule, mesh = plan.op.model.rule, plan.op.mesh
        for factor, split in enumerate(plan.local.split.factors):
            if not split or rule.factors[factor].kind is not Kind.REDUCTION:
                continue
            for place, dims in enumerate(rule.operands):
                for dim, factors in enumerate(dims):
                    if factor in factors:
                        value = plan.op.operands[place]
                        name = self.names.of(value) or "its operand"
                        whose = self._whose(self.provenance.at(value, dim, split[0]))
                        splits = f"{axes_text(mesh, split)} split{'s' if len(mesh.refs(split)) == 1 else ''}"
                        return f"{who} sums over a dimension that {splits} in {name}{whose}"
        return f"{who}: each device has a part of the result"

    # ---------------------------------------------------------------- whose annotation

    def _from(self, value: int | None, axes: Iterable[int], mesh: PrimeMesh) -> str:
        for axis in axes:
            source = None if value is None else self.provenance.of(value, axis)
            if source is not None:
                return self._whose(source)
        return ""

    def _whose(self, source: Annotated | None) -> str:
        if source is None:
            return " (as the search chose)" if self.searched else " (no annotation)"
        if source.kind == ARGUMENT:
            return f" (argument {self.names.of(source.value).removeprefix('argument ')})"
        if source.kind == RESULT:
            return f" ({self.result_name(source.place)})"
        op = self.names.makers[source.value]
        return f" ({self._constraint(op)} at {self.names.where(op)})"

    def _constraint(self, op: Op) -> str:
        """Name a constraint by the JAX call that made it: ``jit``, ``shard_map`` and others constrain values, too."""
        name = self.names.stack(op).rsplit("/", 1)[-1]
        return f"sharding of {name}" if name and name != "sharding_constraint" else "constraint"

    def result_name(self, place: int) -> str:
        """Name a result of main by JAX's path, or by its number."""
        name = self.results[place] if place < len(self.results) else ""
        return f"result {name.removeprefix('result') or place}"

    def _returned(self, place: int, dims: tuple[DimAxes, DimAxes]) -> str:
        """Explain why a result of main is resharded, case 4 of the module's list."""
        mesh = self.program.mesh
        who = "as annotated" if place in self.annotated else "as no annotation splits it"
        return f"{self.result_name(place)} is given back as {spec(dims[1], mesh)}, {who}"

    def _value(self, op: Op, origin: Origin) -> int | None:
        return op.results[origin.index] if origin.index < len(op.results) else None

    def _called(self, op: Op) -> str:
        """Name the op by JAX's primitive."""
        name = self.names.stack(op).rsplit("/", 1)[-1]
        return name if name.replace("_", "").replace("-", "").isalnum() else op.called.removeprefix("stablehlo.")


def _plain(cause: str) -> str:
    return cause.replace("stablehlo.", "")


def _lost(source: DimAxes, target: DimAxes) -> list[int]:
    """Return axes that split a dimension in ``source`` and not in ``target``."""
    return [a for before, after in zip(source, target, strict=True) for a in before if a not in after]
