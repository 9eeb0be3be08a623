"""Calls and annotations."""

from __future__ import annotations

from shardpass.ir.annotations import custom_call_target
from shardpass.proving.relations.evaluate import Rule, Site, Unknown
from shardpass.proving.relations.pieces import Content
from shardpass.proving.rules.movement import same

_IDENTITIES = ("Sharding", "annotate_device_placement")


def call(site: Site) -> list[Content]:
    name = site.op.attributes["callee" if site.op.name == "func.call" else "decomposition"].value
    function = site.walk.functions.get(name)
    if function is None or len(function.regions[0].blocks) != 1:
        raise Unknown(f"the function @{name} is not there, or has no one block")
    return site.walk.block(function.regions[0].blocks[0], site.operands)


def custom_call(site: Site) -> list[Content]:
    target = custom_call_target(site.op)
    if target not in _IDENTITIES:
        raise Unknown(f"no rule knows the custom call @{target}")
    return same(site)


RULES: dict[str, Rule] = {
    "func.call": call,
    "stablehlo.composite": call,
    "stablehlo.custom_call": custom_call,
    "sdy.sharding_constraint": same,
    "sdy.propagation_barrier": same,
    "sdy.reshard": same,
}
