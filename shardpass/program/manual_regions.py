"""Which ops are inside manual regions, where values are tiles already, over all axes of the mesh or over some.

A region starts at ``custom_call @SPMDFullToShardShape`` and ends at ``@SPMDShardToFullShape``. After inlining nothing
else marks its ops (the SDY import marks its own), so they are found by data flow: forward from the entries; then
backward, for what only feeds ops of the region (its constants and what is made of them). An op that feeds both sides is
copied. O(ops of the function).

The *scope* of an op is what its region is manual over. Over all axes it is ``{manual}``, written as the op's
``mhlo.sharding``: nobody looks inside. Over some axes it is the sharding of a scalar in the region, such as
``{devices=[4,2]<=[8] last_tile_dims={manual, replicated}}``, written as ``shardpass.manual``: ops of the region are
partitioned over the other axes.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import MANUAL, SCOPE, SHARDING, TO_FULL, TO_SHARD, custom_call_target, get_text
from shardpass.ir.walk import CONTROL_FLOW as CONTROL_FLOW
from shardpass.ir.walk import every_op, inputs_of, operation
from shardpass.sharding import Sharding, parse_sharding


def scope_of(sharding: Sharding) -> str | None:
    """The scope of values with ``sharding``: None outside of manual regions."""
    if sharding.is_manual:
        return MANUAL
    if not sharding.is_tiled or not sharding.manual or sharding.mesh is None:
        return None
    return str(Sharding.tiled(sharding.mesh, (), manual=sharding.manual))


def set_scope(op: Any, scope: str) -> None:
    """Marks ``op`` as inside a region, and the ops inside of it if it is control flow."""
    if marked_scope(op) is None:
        op.attributes[SHARDING if scope == MANUAL else SCOPE] = ir.StringAttr.get(scope)
    if op.name in CONTROL_FLOW:
        for region in op.regions:
            for block in region.blocks:
                for inner in list(block.operations)[:-1]:
                    set_scope(operation(inner), scope)


def marked_scope(op: Any) -> str | None:
    """The scope that ``op`` is marked with."""
    said = get_text(op, SHARDING)
    return MANUAL if said == MANUAL else get_text(op, SCOPE)


def mark_manual(function: Any) -> None:
    """Marks the ops of every manual region in ``function``'s body."""
    ops = [operation(op) for op in function.regions[0].blocks[0].operations]
    targets = [custom_call_target(op) for op in ops]
    if TO_SHARD not in targets and TO_FULL not in targets:
        return
    inputs = [inputs_of(op) for op in ops]
    scopes = _forward(ops, targets, inputs)
    users: dict[Any, list[int]] = {}
    for index, values in enumerate(inputs):
        for value in values:
            users.setdefault(value, []).append(index)
    for index in range(len(ops) - 1, -1, -1):
        op = ops[index]
        if scopes[index] is None and targets[index] not in (TO_SHARD, TO_FULL):
            using = [u for result in op.results for u in users.get(result, ())]
            # an entry takes values of the scope around it, which its own mark does not tell
            wanted = {u: scopes[u] for u in using if scopes[u] is not None and targets[u] != TO_SHARD}
            inside = set(wanted.values())
            if len(inside) == 1 and len(wanted) == len(using):
                scopes[index] = inside.pop()
            for scope in inside:
                _copy_for(op, [ops[u] for u, s in wanted.items() if s == scope], str(scope))
        scope = scopes[index]
        if scope is not None and not (targets[index] == TO_FULL and scope == MANUAL):
            set_scope(op, scope)


def _forward(ops: list[Any], targets: list[str], inputs: list[list[Any]]) -> list[str | None]:
    """The scope of each op's results, as far as it follows from entries, exits and marks."""
    of_value: dict[Any, str] = {}
    scopes: list[str | None] = []
    for index, op in enumerate(ops):
        scope = marked_scope(op) if targets[index] != TO_FULL else get_text(op, SCOPE)
        if scope is None and (targets[index] in (TO_SHARD, TO_FULL) or SHARDING in op.attributes):
            scope = _said_scope(op)
        if scope is None and targets[index] not in (TO_SHARD, TO_FULL):
            scope = next((of_value[v] for v in inputs[index] if v in of_value), None)
        scopes.append(scope)
        if scope is not None:
            of_value.update(dict.fromkeys(op.results, scope))
    return scopes


def _said_scope(op: Any) -> str | None:
    """The scope that the op's own sharding implies; what cannot be read is reported later, with all the others."""
    try:
        said = parse_sharding(get_text(op, SHARDING) or "{replicated}")
    except ShardpassError:
        return None
    return scope_of(said) if isinstance(said, Sharding) else None


def _copy_for(op: Any, users: list[Any], scope: str) -> None:
    """A copy of ``op`` for ``users``, which are inside; the original stays for the others."""
    with ir.InsertionPoint(op):
        copy = op.clone()
    set_scope(copy, scope)
    replacement = dict(zip(op.results, copy.results, strict=True))
    for user in users:
        for nested in every_op(user):
            for position, value in enumerate(nested.operands):
                if value in replacement:
                    nested.operands[position] = replacement[value]
