"""custom_call: how each target may be split; targets without a rule are computed whole.

A target's rule is, in this order:

1. the model that a family (or a third party) registered with ``define_target``, which ``ops.register_custom_call``
   calls for rules written as text;
2. the count of leading batch dimensions that JAX writes on its linear algebra (``num_batch_dims``);
3. the user's own ``sdy.sharding_rule``: a factor is parallel if an operand and every result have it and the rule does
   not list it as special; all other factors are replicated. Along a factor of ``blocked_propagation`` the call stays
   local where operands and results are split alike, but propagation does not pass.

Calls with side effects are never split by 2 or 3: a callback would run once for each tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from shardpass.ir.tensors import shape_of
from shardpass.ops.border import checked_model
from shardpass.ops.model import LocalPlan, OpModel, Pointwise, Read, Site
from shardpass.ops.owners import FAMILY_OF_TARGET
from shardpass.ops.registry import define, load
from shardpass.ops.splits.factors import DimMap, Factor, Kind, Rule, RuleBuilder

FRONTEND, BATCH_DIMS = "mhlo.frontend_attributes", "num_batch_dims"
SHARDING_RULE = "sdy.sharding_rule"

_targets: dict[str, Read] = {}
_of_others: set[str] = set()


def define_target(name: str, read: Read) -> None:
    """Register how calls of ``name`` may be split: ``read`` returns the model, None for calls computed whole.

    ``LocalCall(rule)`` leaves the call as it is on tiles: its attributes must not depend on split dimensions. A later
    definition of a name replaces the earlier one.
    """
    load(FAMILY_OF_TARGET.get(name))  # a definition of ours is the earlier one, whenever another comes
    if name in _targets or name not in FAMILY_OF_TARGET:
        _of_others.add(name)
    _targets[name] = read


def targets_of_others() -> frozenset[str]:
    """List the targets that a third party, or the user, registered."""
    return frozenset(_of_others)


def is_defined(name: str) -> bool:
    """Return whether calls of ``name`` have a registered model, whatever their side effects."""
    return name in _targets or name in FAMILY_OF_TARGET


def leading(op: Any, count: int) -> Rule | None:
    """Make the first ``count`` dimensions of all operands and results a batch; the others are replicated.

    None where they are not the same dimensions everywhere.
    """
    batch = shape_of(op.results[0])[:count]
    if len(batch) < count or any(shape_of(v)[:count] != batch for v in (*op.operands, *op.results)):
        return None
    return shared_rule(op, dict(enumerate(batch)))


def shared_rule(
    op: Any, sizes: Mapping[int, int], shares: Callable[[int, int], bool] = lambda value, dim: True
) -> Rule:
    """Build a rule with one parallel factor for each dimension number in ``sizes``, shared by operands and results.

    ``sizes``: the size of each such dimension, by its number. ``shares(value, dim)``: whether dimension ``dim`` of a
    value belongs to its factor; values are numbered from 0, operands first. All other dimensions are replicated.
    """
    operands, results = ([shape_of(v) for v in side] for side in (op.operands, op.results))
    build = RuleBuilder([len(s) for s in operands], [len(s) for s in results])
    factors = {dim: build.factor(size) for dim, size in sizes.items()}
    for number, shape in enumerate((*operands, *results)):
        for dim, size in enumerate(shape):
            shared = dim in factors and shares(number, dim)
            factor = factors[dim] if shared else build.factor(size, Kind.REPLICATED)
            if number < len(operands):
                build.operand(number, dim, factor)
            else:
                build.result(number - len(operands), dim, factor)
    return build.build()


def local_call(rule: Rule | None) -> OpModel[Any] | None:
    """Return the model of a call that is the same call on tiles; None without a rule."""
    return None if rule is None else LocalCall(rule)


def _batch_dims(op: Any) -> int | None:
    """Read JAX's count of batch dimensions; None where the call has no such attribute."""
    if FRONTEND not in op.attributes:
        return None
    attributes = ir.DictAttr(op.attributes[FRONTEND])
    text = ir.StringAttr(attributes[BATCH_DIMS]).value if BATCH_DIMS in attributes else ""
    return int(text) if text.isdecimal() else None


def _has_side_effect(op: Any) -> bool:
    return "has_side_effect" in op.attributes and bool(ir.BoolAttr(op.attributes["has_side_effect"]).value)


def factors_of(rule: Any) -> tuple[list[DimMap], list[DimMap]]:
    """Read the factors of each dimension of the operands and the results off an ``sdy.sharding_rule``."""
    operands, results = (
        [
            tuple(tuple(sdy.DimMappingAttr(dim).factor_indices) for dim in sdy.TensorMappingAttr(tensor).dim_mappings)
            for tensor in side
        ]
        for side in (rule.operand_mappings, rule.result_mappings)
    )
    return operands, results


def written_rule(op: Any) -> Rule:
    """Build the rule from the call's ``sdy.sharding_rule``."""
    rule = sdy.OpShardingRuleAttr(op.attributes[SHARDING_RULE])
    operands, results = factors_of(rule)
    special = {*rule.reduction_factors, *rule.need_replication_factors, *rule.permutation_factors}
    blocked, factors = set(rule.blocked_propagation_factors), []
    for number, size in enumerate(rule.factor_sizes):
        in_operands = any(number in dim for m in operands for dim in m)
        through = in_operands and number not in special and all(any(number in dim for dim in m) for m in results)
        factors.append(Factor(size, Kind.PARALLEL if through else Kind.REPLICATED, blocked=number in blocked))
    return Rule(tuple(factors), tuple(operands), tuple(results))


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
        return local_call(leading(op, count))
    return local_call(written_rule(op) if SHARDING_RULE in op.attributes else None)


@dataclass(frozen=True, eq=False)
class LocalCall(Pointwise):
    """The model of a call that is made unchanged on tiles. Its layouts list dimensions, so they stay valid.

    Its ``sdy.sharding_rule`` is dropped as the call is split, because that rule states the sizes of whole arrays.
    """

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
