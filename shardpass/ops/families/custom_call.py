"""custom_call: how each target may be split; the targets that nobody knows are computed whole.

A target's rule is, in this order:

1. what a family (or a third party) said of it with ``define_target``, which ``ops.register_custom_call`` calls for
   rules that are text;
2. the count of leading batch dimensions that JAX writes on its linear algebra (``num_batch_dims``);
3. the user's own ``sdy.sharding_rule``: a factor that an operand and every result have and that is not said to be
   special passes through; every other one is taken whole. Along a factor of ``blocked_propagation`` the call stays
   local where operands and results are split alike, and no split is handed on.

Calls with side effects are never split by 2 or 3: a callback would run once for each tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from shardpass.ir.tensors import shape_of
from shardpass.ops.border import checked_model
from shardpass.ops.model import LocalPlan, OpModel, Read, Site, Split
from shardpass.ops.owners import FAMILY_OF_TARGET
from shardpass.ops.registry import define, load
from shardpass.ops.splits.factors import Kind, Rule, RuleBuilder

FRONTEND, BATCH_DIMS = "mhlo.frontend_attributes", "num_batch_dims"
SHARDING_RULE = "sdy.sharding_rule"

_targets: dict[str, Read] = {}
_of_others: set[str] = set()


def define_target(name: str, read: Read) -> None:
    """Says how calls of the target ``name`` may be split: ``read`` gives the model of a call, None for one taken whole.

    ``LocalCall(rule)`` leaves the call as it is on tiles: its attributes must not depend on split dimensions. A later
    definition of a name replaces the earlier one.
    """
    load(FAMILY_OF_TARGET.get(name))  # a definition of ours is the earlier one, whenever another comes
    if name in _targets or name not in FAMILY_OF_TARGET:
        _of_others.add(name)
    _targets[name] = read


def targets_of_others() -> frozenset[str]:
    """The targets of which a third party, or the user, said how they may be split."""
    return frozenset(_of_others)


def is_defined(name: str) -> bool:
    """Whether calls of ``name`` have a model of their own, side effects or not."""
    return name in _targets or name in FAMILY_OF_TARGET


def leading(op: Any, count: int) -> Rule | None:
    """The first ``count`` dimensions of every operand and result are a batch; the others are taken whole.

    None where they are not the same dimensions everywhere.
    """
    shapes = [shape_of(v) for v in (*op.operands, *op.results)]
    batch = shape_of(op.results[0])[:count]
    if len(batch) < count or any(s[:count] != batch for s in shapes):
        return None
    given = len(op.operands)
    build = RuleBuilder([len(s) for s in shapes[:given]], [len(s) for s in shapes[given:]])
    common = [build.factor(size) for size in batch]
    for index, shape in enumerate(shapes):
        for dim, size in enumerate(shape):
            factor = common[dim] if dim < count else build.factor(size, Kind.REPLICATED)
            (build.operand(index, dim, factor) if index < given else build.result(index - given, dim, factor))
    return build.build()


def _batch_dims(op: Any) -> int | None:
    """JAX's count of batch dimensions; None where the call says none."""
    if FRONTEND not in op.attributes:
        return None
    said = ir.DictAttr(op.attributes[FRONTEND])
    text = ir.StringAttr(said[BATCH_DIMS]).value if BATCH_DIMS in said else ""
    return int(text) if text.isdecimal() else None


def _has_side_effect(op: Any) -> bool:
    return "has_side_effect" in op.attributes and bool(ir.BoolAttr(op.attributes["has_side_effect"]).value)


def _mapping(tensor: Any) -> list[tuple[int, ...]]:
    said = sdy.TensorMappingAttr(tensor)
    return [tuple(sdy.DimMappingAttr(dim).factor_indices) for dim in said.dim_mappings]


def said_rule(op: Any) -> Rule | None:
    """The rule of the call's ``sdy.sharding_rule``."""
    said = sdy.OpShardingRuleAttr(op.attributes[SHARDING_RULE])
    operands, results = ([_mapping(t) for t in side] for side in (said.operand_mappings, said.result_mappings))
    special = {*said.reduction_factors, *said.need_replication_factors, *said.permutation_factors}
    blocked = set(said.blocked_propagation_factors)
    build = RuleBuilder([len(m) for m in operands], [len(m) for m in results])
    for number, size in enumerate(said.factor_sizes):
        taken = any(number in dim for m in operands for dim in m)
        through = taken and number not in special and all(any(number in dim for dim in m) for m in results)
        build.factor(size, Kind.PARALLEL if through else Kind.REPLICATED, blocked=number in blocked)
    _write(build.operand, operands)
    _write(build.result, results)
    return build.build()


def _write(add: Callable[..., None], maps: Sequence[Sequence[tuple[int, ...]]]) -> None:
    for index, dims in enumerate(maps):
        for dim, factors in enumerate(dims):
            add(index, dim, *factors)


def custom_call(op: Any) -> OpModel[Any] | None:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    load(FAMILY_OF_TARGET.get(target))
    known = _targets.get(target)
    if known is not None:
        return checked_model(known(op), known, op)
    if _has_side_effect(op) or not len(op.results):
        return None
    count = _batch_dims(op)
    if count is not None:
        rule = leading(op, count)
        return None if rule is None else LocalCall(rule)
    rule = said_rule(op) if SHARDING_RULE in op.attributes else None
    return None if rule is None else LocalCall(rule)


@dataclass(frozen=True, eq=False)
class LocalCall(OpModel[LocalPlan]):
    """A call that is the same call on tiles. Layouts are by dimension, and stay.

    An ``sdy.sharding_rule`` holds the sizes of whole arrays, and goes as the call is split.
    """

    rule: Rule

    def plan(self, split: Split) -> LocalPlan:
        return LocalPlan(split)

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        if SHARDING_RULE in site.op.attributes:
            del site.op.attributes[SHARDING_RULE]
        return site.keep()


define(
    "stablehlo.custom_call",
    custom_call,
    note="batch dimensions of JAX's linear algebra, the factors of an `sdy.sharding_rule`, and targets that have a "
    "rule of their own; calls of any other target are computed in full on every device",
)
