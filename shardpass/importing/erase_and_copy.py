"""Fold slices, erase unused ops, and copy constants for each use, before propagation.

Problem. Propagation gives each value one sharding. Three habits of programs mislead it:

1. A slice of an array that was only assembled, ``slice(pad(x))``: the array in between divides into other tiles than
   ``x`` and the result, so most of it would cross devices there and back. ``fold_slices`` cuts from the parts.
2. An op that nothing uses, such as the value that ``jax.grad`` drops: it would be partitioned, and its partial results
   summed, without a use. It is erased, with the ops that only it uses.
3. A constant that serves several ops: ``%c`` in ``x + %c`` (split by rows) and ``y * %c`` (split by columns) would tie
   ``x`` and ``y`` together, which have nothing to do with each other. ``%c`` becomes two ops. So do an iota
   and a scalar that is spread by ``broadcast_in_dim``; a scalar itself has no dimension and is left. So is a
   constant of a sharding group (``jax.experimental.shard_alike``): all that uses it shall see what the group decides.

Invariants. The function computes the same. The order of the ops that stay is as it was; copies stand before the op that
they copy. Inner blocks are treated before outer ones, since an op is erased together with its blocks.

Cost: O(ops), and one copy for each further use of a constant.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.importing.fold_slices import SliceFolding
from shardpass.ir.annotations import CONSTRAINT, SHARDING, custom_call_target, get_text
from shardpass.ir.effects import may_be_erased
from shardpass.ir.walk import CONTROL_FLOW, OpList, OpLists, operation

_HOLDS_PROGRAM = CONTROL_FLOW | {"func.func"}
_CONSTANT = frozenset({"stablehlo.constant", "stablehlo.iota"})
_SPREAD = "stablehlo.broadcast_in_dim"


def erase_unused_and_copy_constants(lists: OpLists) -> None:
    """Fold slices, erase unused ops and copy constants in a function. ``lists``: the ops of the function."""
    stale = False
    for inside in reversed(lists.blocks):
        if inside.owner_name in _HOLDS_PROGRAM:
            stale |= _fold_slices(inside)
            stale |= _erase_unused(inside)
    if stale:
        lists.changed()
    for inside in lists.blocks:
        _copy_constants(inside)


def _fold_slices(inside: OpList) -> bool:
    """Fold the slices of a block; return whether the block changed."""
    slices = [op for op, name in zip(inside.ops, inside.names, strict=True) if name == "stablehlo.slice"]
    if not slices:
        return False
    folding = SliceFolding()
    for op in slices:
        folding.fold(op)
    inside.ops = [view.operation for view in inside.block.operations]
    inside.names = [op.name for op in inside.ops]
    return True


def _erase_unused(inside: OpList) -> bool:
    """Erase unused ops of a block, users first; return whether an op with blocks was erased."""
    erased: set[int] = set()
    held_blocks = False
    for index in range(len(inside.ops) - 1, -1, -1):
        op = inside.ops[index]
        if may_be_erased(inside.names[index]) and all(next(iter(value.uses), None) is None for value in op.results):
            held_blocks |= len(op.regions) > 0
            op.erase()
            erased.add(index)
    if erased:
        kept = [index for index in range(len(inside.ops)) if index not in erased]
        inside.ops = [inside.ops[index] for index in kept]
        inside.names = [inside.names[index] for index in kept]
    return held_blocks


def _copy_constants(inside: OpList) -> None:
    ops: list[Any] = []
    names: list[str] = []
    for op, name in zip(inside.ops, inside.names, strict=True):
        if (name in _CONSTANT and _has_dims(op.results[0])) or (
            name == _SPREAD and _has_dims(op.results[0]) and not _has_dims(op.operands[0])
        ):
            copies = _copies(op)
            ops += copies
            names += [name] * len(copies)
        ops.append(op)
        names.append(name)
    inside.ops, inside.names = ops, names


def _has_dims(value: Any) -> bool:
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and kind.rank > 0


def _copies(op: Any) -> list[Any]:
    """Copy ``op`` before it for each use of its result except the first that MLIR lists."""
    uses = [(operation(use.owner), use.operand_number) for use in op.results[0].uses]
    if len(uses) < 2 or any(_is_in_group(user) for user, _ in uses):
        return []
    copies = []
    with ir.InsertionPoint(op):
        for user, position in uses[1:]:
            copy = operation(op.clone())
            user.operands[position] = copy.results[0]
            copies.append(copy)
    return copies


def _is_in_group(user: Any) -> bool:
    """Return whether the op ties its operand to the sharding of other values."""
    return custom_call_target(user) == CONSTRAINT and " shard_" in (get_text(user, SHARDING) or "")
