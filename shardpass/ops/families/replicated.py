"""Ops without a rule, each with the reason.

Three sorts: structure, which other parts of shardpass deal with; ops that are computed whole on every device, operands
gathered and results sliced, with a remark (SP301); and ops that cannot be in a program of whole arrays, whose passes
or verifiers require it. A family that is loaded later may replace an entry by a rule.
"""

from __future__ import annotations

from typing import Any

from shardpass.ops.model import OpModel
from shardpass.ops.registry import define

STRUCTURE = {
    "while": "control flow: its regions are partitioned, and each carried value has one sharding throughout the loop",
    "if": "control flow: its branches are partitioned, and all of them return a result in the same sharding",
    "case": "control flow: its branches are partitioned, and all of them return a result in the same sharding",
    "return": "ends a region",
    "composite": "its decomposition replaces it before propagation",
    "tuple": "unpacked before propagation: its elements are separate values",
    "get_tuple_element": "the element takes its place before propagation",
    "after_all": "orders effects; holds no array",
    "create_token": "orders effects; holds no array",
    "async_start": "wraps a collective in the program of one device",
    "async_done": "wraps a collective in the program of one device",
}

EFFECTS = dict.fromkeys(
    ("infeed", "outfeed", "send", "recv"), "refused (SP227): it does not say which part of an array a device transfers"
)

DEVICES = {
    "collective_reduce": "a collective in the program of one device, without a meaning on whole arrays",
    "partition_id": "refused outside of manual regions (SP226): its value differs between devices",
    "replica_id": "0 on every device, because there is one replica",
}

_SHAPES = """
    dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape
    real_dynamic_slice set_dimension_size
"""
DYNAMIC = dict.fromkeys(_SHAPES.split(), "refused (SP223): its shape or its bounds are operands")

LEGACY = {
    name: f"no longer in the specification: {instead}"
    for name, instead in {
        "cross-replica-sum": "all_reduce replaces it",
        "einsum": "dot_general replaces it",
        "unary_einsum": "dot_general and reduce replace it",
    }.items()
}

CHLO = {
    "scan": "shardpass does not split its body; JAX lowers scans to while",
}

REASONS: dict[str, str] = {
    **{f"stablehlo.{name}": why for name, why in {**STRUCTURE, **EFFECTS, **DEVICES, **DYNAMIC, **LEGACY}.items()},
    **{f"chlo.{name}": why for name, why in CHLO.items()},
}


def unsplit(op: Any) -> OpModel[Any] | None:
    """Return no model: the ``read`` of ops that no rule splits."""
    return None


for _name, _why in REASONS.items():
    define(_name, unsplit, note=_why, whole=True)
