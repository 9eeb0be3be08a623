"""Families that are still three functions (rule, rewrite, extra), as ``OpModel``s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shardpass.ops.local import Local
from shardpass.ops.model import Collective, LocalPlan, OpModel, Read, Site, Split
from shardpass.ops.splits.factors import Axes, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh

RuleOf = Callable[[Any], Rule | None]
Rewrite = Callable[[Local], list[Any] | None]
Extra = Callable[[Any, Rule, dict[int, Axes], PrimeMesh], int]


@dataclass(frozen=True, eq=False)
class Adapted(OpModel[LocalPlan]):
    rule: Rule
    rewrite: Rewrite | None
    extra: Extra | None
    op: Any

    def plan(self, split: Split) -> LocalPlan:
        factors = {f: axes for f, axes in enumerate(split.factors) if axes}
        received = self.extra(self.op, self.rule, factors, split.mesh) if self.extra else 0
        ignored = (
            frozenset({0})
            if self.rewrite is not None and self.rewrite.__name__ == "localize_get_dimension_size"
            else frozenset()
        )
        return LocalPlan(split, (Collective("unknown", (), received, ""),) if received else (), ignored)

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        split = plan.split
        local = Local(
            site.op,
            split.mesh,
            self.rule,
            {f: axes for f, axes in enumerate(split.factors) if axes},
            split.operands,
            split.results,
            split.operand_shapes,
            split.result_shapes,
            site.next,
            site.channels,
        )
        replaced = self.rewrite(local) if self.rewrite else None
        if replaced is None:
            return site.keep()
        if plan.ignored:
            site.discard()
        if all(next(iter(result.uses), None) is None for result in site.op.results):
            made = [r for r in replaced if r in list(site.op.results)]
            if not made:
                site.discard()
        return replaced


def adapted(rule: RuleOf, rewrite: Rewrite | None, extra: Extra | None) -> Read:
    known: dict[Rule, Adapted] = {}

    def read(op: Any) -> OpModel[Any] | None:
        found = rule(op)
        if found is None:
            return None
        if extra is not None:
            return Adapted(found, rewrite, extra, op)
        return known.setdefault(found, Adapted(found, rewrite, None, None))

    return read
