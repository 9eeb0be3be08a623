"""Which ops are inside manual regions, where values are tiles already.

A region starts at ``custom_call @SPMDFullToShardShape`` and ends at ``@SPMDShardToFullShape``. After inlining nothing
else marks its ops, so they are found by data flow: forward from the entries; then backward, for what only feeds ops of
the region (its constants and what is made of them). An op that feeds both sides is copied. Every op found gets
``mhlo.sharding = "{manual}"``. O(ops of the function).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import operation, walk_blocks
from shardpass.passes.annotations import MANUAL, SHARDING, TO_FULL, TO_SHARD, custom_call_target, get_text


def inputs_of(op: Any) -> list[Any]:
    """Operands of ``op`` and the values that its regions take from outside."""
    found = list(op.operands)
    if not len(op.regions):
        return found
    inside: set[Any] = set()
    for block in walk_blocks(op):
        inside.update(block.arguments)
        for inner in block.operations:
            inside.update(operation(inner).results)
    for block in walk_blocks(op):
        for inner in block.operations:
            found += [v for v in operation(inner).operands if v not in inside]
    return found


def mark_manual(function: Any) -> None:
    """Marks the ops of every manual region in ``function``'s body."""
    ops = [operation(op) for op in function.regions[0].blocks[0].operations]
    targets = [custom_call_target(op) for op in ops]
    if TO_SHARD not in targets:
        return
    inputs = [inputs_of(op) for op in ops]
    inside = _forward(ops, targets, inputs)
    users: dict[Any, list[int]] = {}
    for index, values in enumerate(inputs):
        for value in values:
            users.setdefault(value, []).append(index)
    marked = ir.StringAttr.get(MANUAL)
    for index in range(len(ops) - 1, -1, -1):
        op = ops[index]
        if index not in inside and targets[index] not in (TO_SHARD, TO_FULL):
            using = [u for result in op.results for u in users.get(result, ())]
            within = [u for u in using if u in inside and targets[u] != TO_SHARD]  # an entry takes whole arrays
            if not within:
                continue
            if len(within) < len(using):
                _copy_for(op, [ops[u] for u in within])
                continue
            inside.add(index)
        if index in inside:
            op.attributes[SHARDING] = marked


def _forward(ops: list[Any], targets: list[str], inputs: list[list[Any]]) -> set[int]:
    """Indices of the ops that depend on a region's entry; the exits are left out."""
    manual: set[Any] = set()
    inside: set[int] = set()
    for index, op in enumerate(ops):
        enters = targets[index] == TO_SHARD
        if enters or get_text(op, SHARDING) == MANUAL or any(v in manual for v in inputs[index]):
            if targets[index] == TO_FULL:
                continue
            inside.add(index)
            manual.update(op.results)
    return inside


def _copy_for(op: Any, users: list[Any]) -> None:
    """A copy of ``op`` for ``users``, which are inside; the original stays for the others."""
    with ir.InsertionPoint(op):
        copy = op.clone()
    copy.attributes[SHARDING] = ir.StringAttr.get(MANUAL)
    replacement = dict(zip(op.results, copy.results, strict=True))
    for user in users:
        for nested in [user, *(operation(o) for b in walk_blocks(user) for o in b.operations)]:
            for position, value in enumerate(nested.operands):
                if value in replacement:
                    nested.operands[position] = replacement[value]
