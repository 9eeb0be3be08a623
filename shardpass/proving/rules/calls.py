"""Calls of functions and of libraries, and annotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shardpass.ir.annotations import TO_FULL, TO_SHARD, custom_call_target
from shardpass.proving.relations.evaluate import Rule, Site, Unknown
from shardpass.proving.relations.pieces import Content
from shardpass.proving.rules.blocks import everything, leading_batch
from shardpass.proving.rules.manual import to_full, to_shard
from shardpass.proving.rules.movement import same

IDENTITIES = ("Sharding", "LayoutConstraint", "annotate_device_placement")
# calls of libraries that return the same for the same
PURE = (
    "lapack_",
    "cusolver_",
    "cublas_",
    "ducc_fft",
    "Qr",
    "Eigh",
    "TopK",
    "ProductOfElementaryHouseholderReflectors",
)


def called(site: Any) -> Any:
    """Return the one block of the function that a call or composite names, in either walk. Raises Unknown without
    one.
    """
    name = site.op.attributes["callee" if site.op.name == "func.call" else "decomposition"].value
    function = site.walk.functions.get(name)
    if function is None or len(function.regions[0].blocks) != 1:
        raise Unknown(f"the function @{name} is not there, or has no one block")
    return function.regions[0].blocks[0]


def call(site: Site) -> list[Content]:
    return site.walk.block(called(site), site.operands)


@dataclass(frozen=True, slots=True)
class CustomCalls:
    """The rules of a walk for custom calls, by the meaning of the calls."""

    same: Callable[[Any], Any]
    to_shard: Callable[[Any], Any]
    to_full: Callable[[Any], Any]
    batched: Callable[[Any], Any]
    whole: Callable[[Any], Any]


def custom_call_by(site: Any, rules: CustomCalls) -> Any:
    """Relate a custom call, in either walk. Raises Unknown for calls with effects and those without a rule."""
    target = custom_call_target(site.op) or ""
    if target in IDENTITIES:
        return rules.same(site)
    if target == TO_SHARD:
        return rules.to_shard(site)
    if target == TO_FULL:
        return rules.to_full(site)
    if has_effect(site.op):
        raise Unknown(f"the custom call @{target} has effects")
    if target.startswith("lapack_"):
        return rules.batched(site)
    if target.startswith(PURE):
        return rules.whole(site)
    raise Unknown(f"no rule knows the custom call @{target}")


def custom_call(site: Site) -> list[Content]:
    result: list[Content] = custom_call_by(site, CustomCalls(same, to_shard, to_full, leading_batch, everything))
    return result


def has_effect(op: Any) -> bool:
    return "has_side_effect" in op.attributes and str(op.attributes["has_side_effect"]) == "true"


RULES: dict[str, Rule] = {
    "func.call": call,
    "stablehlo.composite": call,
    "stablehlo.custom_call": custom_call,
    "sdy.sharding_constraint": same,
    "sdy.propagation_barrier": same,
    "sdy.reshard": same,
}
