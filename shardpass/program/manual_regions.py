"""Determine which ops are inside manual regions, where values are tiles, over all axes of the mesh or some.

A region starts at ``custom_call @SPMDFullToShardShape`` and ends at ``@SPMDShardToFullShape``. After inlining nothing
else marks its ops (the SDY import marks its own), so data flow determines them: forward from the entries; then
backward, for ops that only feed ops of the region (its constants and what depends on them). An op that feeds both sides
is copied, and so is one outside of a loop or branch that feeds a region inside. A loop or branch in a region is all in
it. O(ops of the function).

The *scope* of an op describes the axes over which its region is manual. Over all axes it is ``{manual}``, written as
the op's ``mhlo.sharding``: no pass looks inside. Over some axes it is the sharding of a scalar in the region, such as
``{devices=[4,2]<=[8] last_tile_dims={manual, replicated}}``, written as ``shardpass.manual``: ops of the region are
partitioned over the other axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import MANUAL, SCOPE, SHARDING, TO_FULL, TO_SHARD, custom_call_target, get_text
from shardpass.ir.walk import CONTROL_FLOW as CONTROL_FLOW
from shardpass.ir.walk import every_op, inputs_of, operation
from shardpass.sharding import Sharding, parse_sharding

BORDERS = (TO_SHARD, TO_FULL)


def scope_of(sharding: Sharding) -> str | None:
    """Return the scope of values with ``sharding``: None outside of manual regions."""
    if sharding.is_manual:
        return MANUAL
    if not sharding.is_tiled or not sharding.manual or sharding.mesh is None:
        return None
    return str(Sharding.tiled(sharding.mesh, (), manual=sharding.manual))


def set_scope(op: Any, scope: str) -> None:
    """Mark ``op``, and for control flow the ops inside, as part of a manual region."""
    _mark(op, scope)
    if op.name in CONTROL_FLOW:
        for region in op.regions:
            for block in region.blocks:
                for inner in list(block.operations)[:-1]:
                    set_scope(operation(inner), scope)


def _mark(op: Any, scope: str) -> None:
    if marked_scope(op) is None:
        op.attributes[SHARDING if scope == MANUAL else SCOPE] = ir.StringAttr.get(scope)


def marked_scope(op: Any) -> str | None:
    """Return the scope that ``op`` is marked with."""
    annotation = get_text(op, SHARDING)
    return MANUAL if annotation == MANUAL else get_text(op, SCOPE)


def mark_manual(function: Any) -> None:
    """Mark the ops of every manual region in ``function``, including ops in loops and branches."""
    top, nodes = _read_nodes(function.regions[0].blocks[0])
    if all(node.target not in BORDERS for node in nodes):
        return
    _forward(nodes)
    users: dict[Any, list[_Node]] = {}
    for node in nodes:
        for value in node.op.operands if node.op.name in CONTROL_FLOW else inputs_of(node.op):
            users.setdefault(value, []).append(node)
    todo = top
    while todo:  # an op after those behind it, before those inside of it
        node = todo.pop()
        if node.ends:
            node.scope = node.around
            continue
        if node.scope is None and node.target not in BORDERS:
            _scope_by_users(node, users)
        if node.scope is not None and not (node.target == TO_FULL and node.scope == MANUAL):
            _mark(node.op, node.scope)
        todo += node.inner


@dataclass(eq=False, slots=True)
class _Node:
    """An op of the function. ``ends``: the op is the terminator of its block, which is never marked."""

    op: Any
    block: Any
    holder: _Node | None  # the loop or branch around
    target: str
    ends: bool = False
    scope: str | None = None
    inner: list[_Node] = field(default_factory=list)

    @property
    def around(self) -> str | None:
        return None if self.holder is None else self.holder.scope


def _read_nodes(body: Any) -> tuple[list[_Node], list[_Node]]:
    """Return the ops of ``body``, and all ops including those in loops and branches, outermost first."""
    top: list[_Node] = []
    every: list[_Node] = []
    todo: list[tuple[Any, _Node | None]] = [(body, None)]
    while todo:
        block, holder = todo.pop()
        ops = [operation(op) for op in block.operations]
        nodes = [_Node(op, block, holder, custom_call_target(op), op is ops[-1]) for op in ops]
        (top if holder is None else holder.inner).extend(nodes)
        every += nodes
        todo += [
            (inner, node)
            for node in nodes
            if node.op.name in CONTROL_FLOW
            for region in node.op.regions
            for inner in region.blocks
        ]
    return top, every


def _forward(nodes: list[_Node]) -> None:
    """Set the scope of each op from the region entries, region exits and marks before it, where these determine it.

    ``nodes`` lists a block after the block that contains it, so that the scopes of captured values are known.
    """
    of_value: dict[Any, str] = {}
    for node in nodes:
        op, border = node.op, node.target in BORDERS
        scope = get_text(op, SCOPE) if node.target == TO_FULL else marked_scope(op)
        if scope is None and (border or SHARDING in op.attributes):
            scope = _implied_scope(op)
        if scope is None and not border and not node.ends:
            scope = next((of_value[v] for v in inputs_of(op) if v in of_value), None)
        node.scope = scope
        if scope is not None:
            values = [*op.results]
            if op.name in CONTROL_FLOW:
                values += [v for region in op.regions for block in region.blocks for v in block.arguments]
            of_value.update(dict.fromkeys(values, scope))


def _scope_by_users(node: _Node, users: dict[Any, list[_Node]]) -> None:
    """Give an op that depends on no entry the scope of its users; users in other scopes get a copy of the op."""
    using = [user for result in node.op.results for user in users.get(result, ())]
    # an entry takes values of the scope around it, which its own mark does not tell
    wanted = [user for user in using if user.scope is not None and user.target != TO_SHARD]
    places = {user: _outermost_place(user, node) for user in wanted}
    inside = {user.scope for user in wanted}
    local = all(place.block == node.block for place in places.values())
    if len(inside) == 1 and len(wanted) == len(using) and local:
        node.scope = inside.pop()
        return
    node.scope = node.around
    while wanted:
        first = wanted[0]
        beside: list[_Node] = []
        rest: list[_Node] = []
        for user in wanted:
            same = user.scope == first.scope and places[user].block == places[first].block
            (beside if same else rest).append(user)
        wanted = rest
        if first.scope != node.scope or places[first].block != node.block:
            copy = _copy_for(node, beside, places[first])
            for value in inputs_of(copy.op):
                users.setdefault(value, []).append(copy)


def _outermost_place(user: _Node, node: _Node) -> _Node:
    """Return the outermost loop or branch around ``user`` that is in ``node``'s block and in ``user``'s scope."""
    place = user
    while place.block != node.block and place.holder is not None and place.holder.scope == user.scope:
        place = place.holder
    return place


def _copy_for(node: _Node, users: list[_Node], place: _Node) -> _Node:
    """Copy the op for ``users``, which are inside, into the block of ``place``; the original serves the others."""
    here = place.block == node.block
    with ir.InsertionPoint(node.op) if here else ir.InsertionPoint.at_block_begin(place.block):
        copy = node.op.clone()
    scope = users[0].scope
    assert scope is not None
    set_scope(copy, scope)
    replacement = dict(zip(node.op.results, copy.results, strict=True))
    for user in users:
        for nested in [user.op] if user.op.name in CONTROL_FLOW else every_op(user.op):
            for position, value in enumerate(nested.operands):
                if value in replacement:
                    nested.operands[position] = replacement[value]
    return _Node(copy, place.block, place.holder, node.target, scope=scope)


def _implied_scope(op: Any) -> str | None:
    """Return the scope in the op's own sharding; None for unreadable text, which is reported later."""
    try:
        sharding = parse_sharding(get_text(op, SHARDING) or "{replicated}")
    except ShardpassError:
        return None
    return scope_of(sharding) if isinstance(sharding, Sharding) else None
