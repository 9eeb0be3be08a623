"""Rewrite constraints (``custom_call @Sharding``) that have no effect, or a form that propagation does not read."""

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
    """Erase the constraints that JAX puts on the scalars of a reducer inside a shard_map; they have no effect."""
    if CUSTOM_CALL not in lists.names:
        return
    reducers = [inside for inside in lists.blocks if inside.owner_name not in HOLDS_OPS]
    constraints = [op for op in named(reducers, (CUSTOM_CALL,)) if custom_call_target(op) == CONSTRAINT]
    for op in constraints:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    if constraints:
        lists.changed()


def read_unspecified_dims(lists: OpLists) -> None:
    """Rewrite ``backend_config = "unspecified_dims=[1]"`` on a constraint as the attribute that propagation reads."""
    for op in named(lists.blocks, (CUSTOM_CALL,)):
        if custom_call_target(op) in (CONSTRAINT, TO_SHARD, TO_FULL) and "backend_config" in op.attributes:
            config = text(op.attributes["backend_config"])
            if not config.strip().startswith("unspecified_dims"):
                continue
            op.attributes[UNSPECIFIED] = i64_array(_unspecified(config, op))
            op.attributes["backend_config"] = ir.StringAttr.get("")


def open_unreduced_constraints(lists: OpLists) -> None:
    """Open all dimensions of a constraint that leaves partial sums over some axes.

    Example: ``P("x", None, unreduced={"y"})`` on a product allows its sum over y to wait. Partitioning completes a
    sum where that is cheapest, and scatters it where a later sharding splits the array over y: open dimensions let that
    sharding through. The array is the same.
    """
    for op in named(lists.blocks, (CUSTOM_CALL,)):
        if custom_call_target(op) != CONSTRAINT or "unreduced" not in (annotation := get_text(op, SHARDING) or ""):
            continue
        sharding = parse_sharding(annotation)
        if isinstance(sharding, Sharding) and (sharding.unreduced or sharding.is_unreduced):
            mesh, dims, manual = sharding.mesh, sharding.dims, sharding.manual
            reduced = Sharding.replicated() if mesh is None else Sharding.tiled(mesh, dims, manual=manual)
            op.attributes[SHARDING] = ir.StringAttr.get(str(reduced))
            op.attributes[UNSPECIFIED] = i64_array(range(op.results[0].type.rank))


def _unspecified(config: str, op: Any) -> list[int]:
    kind = op.results[0].type
    match = re.fullmatch(r"unspecified_dims=\[((\d+(,\d+)*)?)\]", "".join(config.split()))
    dims = [int(d) for d in match[1].split(",") if d] if match else None
    if dims is None or any(d >= kind.rank for d in dims):
        raise BAD_UNSPECIFIED.error(place_of(op.location), text=config, type=kind, last=kind.rank - 1)
    return dims
