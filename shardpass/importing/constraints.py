"""Constraints (``custom_call @Sharding``) that say nothing, or say it in a form that propagation does not read."""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import BAD_UNSPECIFIED
from shardpass.ir.annotations import (
    CONSTRAINT,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    UNSPECIFIED,
    custom_call_target,
    get_text,
    text,
)
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import i64_array
from shardpass.ir.walk import CONTROL_FLOW, OpLists, named
from shardpass.sharding import Sharding, parse_sharding

CUSTOM_CALL = "stablehlo.custom_call"
HOLDS_OPS = CONTROL_FLOW | {"func.func"}  # ops whose regions hold a program, not a reducer


def drop_constraints_in_reducers(lists: OpLists) -> None:
    """JAX constrains the scalars of a reducer inside a shard_map, which says nothing."""
    if CUSTOM_CALL not in lists.names:
        return
    reducers = [inside for inside in lists.blocks if inside.owner_name not in HOLDS_OPS]
    found = [op for op in named(reducers, (CUSTOM_CALL,)) if custom_call_target(op) == CONSTRAINT]
    for op in found:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    if found:
        lists.changed()


def read_unspecified_dims(lists: OpLists) -> None:
    """``backend_config = "unspecified_dims=[1]"`` on a constraint becomes the attribute that propagation reads."""
    for op in named(lists.blocks, (CUSTOM_CALL,)):
        if custom_call_target(op) in (CONSTRAINT, TO_SHARD, TO_FULL) and "backend_config" in op.attributes:
            said = text(op.attributes["backend_config"])
            if not said.strip().startswith("unspecified_dims"):
                continue
            op.attributes[UNSPECIFIED] = i64_array(_unspecified(said, op))
            op.attributes["backend_config"] = ir.StringAttr.get("")


def open_unreduced_constraints(lists: OpLists) -> None:
    """A constraint that leaves partial sums over some axes becomes one whose dimensions are open.

    Example: ``P("x", None, unreduced={"y"})`` says of a product that its sum over y may wait. Partitioning completes a
    sum where that is cheapest, and scatters it where a later sharding splits the array over y: open dimensions let that
    sharding through. The array is the same.
    """
    for op in named(lists.blocks, (CUSTOM_CALL,)):
        if custom_call_target(op) != CONSTRAINT or "unreduced" not in (said := get_text(op, SHARDING) or ""):
            continue
        sharding = parse_sharding(said)
        if isinstance(sharding, Sharding) and (sharding.unreduced or sharding.is_unreduced):
            mesh, dims, manual = sharding.mesh, sharding.dims, sharding.manual
            reduced = Sharding.replicated() if mesh is None else Sharding.tiled(mesh, dims, manual=manual)
            op.attributes[SHARDING] = ir.StringAttr.get(str(reduced))
            op.attributes[UNSPECIFIED] = i64_array(range(op.results[0].type.rank))


def _unspecified(said: str, op: Any) -> list[int]:
    kind = op.results[0].type
    found = re.fullmatch(r"unspecified_dims=\[((\d+(,\d+)*)?)\]", "".join(said.split()))
    dims = [int(d) for d in found[1].split(",") if d] if found else None
    if dims is None or any(d >= kind.rank for d in dims):
        raise BAD_UNSPECIFIED.error(place_of(op.location), text=said, type=kind, last=kind.rank - 1)
    return dims
