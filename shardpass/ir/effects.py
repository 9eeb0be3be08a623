"""Tell which ops have no side effects, so that a pass may move or erase them.

The two questions differ. A custom call may be moved unless it declares a side effect, but only XLA knows its function,
so it is not erased. A collective may be moved, on all devices alike, and is not erased where the user wrote it. Ops of
dialects other than StableHLO and CHLO are neither moved nor erased.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardpass.cost.collective import KINDS
from shardpass.ir.annotations import custom_call_target
from shardpass.ir.walk import CONTROL_FLOW

_NOT_MOVED = CONTROL_FLOW | {f"stablehlo.{name}" for name in ("infeed", "outfeed", "send", "recv", "rng", "return")}
_EFFECTS = """
    after_all composite create_token custom_call infeed optimization_barrier outfeed partition_id recv replica_id
    return rng send
"""
_NOT_ERASED = CONTROL_FLOW | {f"stablehlo.{name}" for name in (*KINDS, *_EFFECTS.split())}

# They declare a side effect only so that no pass erases them.
NO_CALLS = frozenset(("annotate_device_placement", "InspectSharding", "LayoutConstraint", "MoveToDevice", "MoveToHost"))


def may_be_moved(op: Any, name: str = "") -> bool:
    """Return whether ``op``, named ``name``, may be moved anywhere between its operands and its users."""
    name = name or op.name
    if name == "stablehlo.custom_call":
        attributes = op.attributes
        return "has_side_effect" not in attributes or not ir.BoolAttr(attributes["has_side_effect"]).value
    return _is_known(name) and name not in _NOT_MOVED


@lru_cache(maxsize=1024)
def may_be_erased(name: str) -> bool:
    """Return whether ops named ``name`` may be erased if their results are unused."""
    return _is_known(name) and name not in _NOT_ERASED


def calls_host(op: Any) -> bool:
    """Return whether a custom call must run on one device, exactly as often as the program calls it."""
    target = custom_call_target(op)
    if target in NO_CALLS:
        return False
    return "callback" in target or (
        "has_side_effect" in op.attributes and bool(ir.BoolAttr(op.attributes["has_side_effect"]).value)
    )


def _is_known(name: str) -> bool:
    return name.startswith(("stablehlo.", "chlo."))
