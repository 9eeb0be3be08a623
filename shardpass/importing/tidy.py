"""Before propagation: slices are simplified, unused ops erased, and what costs nothing to make is made for each use.

* What is cut from an array that was only put together is cut from its parts (``recut``).
* A dead op would be partitioned, and its partial results summed, for nobody (the value that ``jax.grad`` drops).
* A constant, an iota or a spread scalar that serves several ops would be given one sharding for all of them, and tie
  values together that have nothing to do with each other. Copied, each takes the sharding of its user.

O(ops), and one copy for each further use of such an op.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.importing.fold_slices import Recut
from shardpass.ir.tensors import operation, shape_of, walk_blocks

# Ops of StableHLO whose only effect is not their result: they stay though nothing uses them.
EFFECTS = """
    after_all all_gather all_reduce all_to_all case collective_broadcast collective_permute composite create_token
    custom_call if infeed optimization_barrier outfeed partition_id recv reduce_scatter replica_id return rng send while
"""
_KEPT = frozenset(f"stablehlo.{name}" for name in EFFECTS.split())


def tidy(function: Any) -> None:
    """Cuts parts, erases what nothing uses in ``function`` and copies what is made of nothing, in every block of it."""
    for block in reversed(list(walk_blocks(operation(function)))):  # inner ones first: an op is erased with its blocks
        parent = operation(block.owner)
        if parent.name not in ("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case"):
            continue
        ops = [operation(op) for op in block.operations]
        cuts = Recut()
        for op in ops:
            if op.name == "stablehlo.slice":
                cuts.slice(op)
        _erase_unused([operation(op) for op in block.operations])
    for block in list(walk_blocks(operation(function))):
        for op in [operation(op) for op in block.operations][::-1]:
            if _is_made_of_nothing(op):
                _copy_for_each_use(op)


def is_pure(op: Any) -> bool:
    """Whether ``op`` has no effect but its results."""
    return op.name.startswith(("stablehlo.", "chlo.")) and op.name not in _KEPT


def _erase_unused(ops: list[Any]) -> None:
    for op in reversed(ops):
        if is_pure(op) and all(next(iter(result.uses), None) is None for result in op.results):
            op.erase()


def _is_made_of_nothing(op: Any) -> bool:
    if op.name in ("stablehlo.constant", "stablehlo.iota"):
        return bool(shape_of(op.results[0]))
    return bool(op.name == "stablehlo.broadcast_in_dim" and not shape_of(op.operands[0]) and shape_of(op.results[0]))


def _copy_for_each_use(op: Any) -> None:
    uses = [(use.owner, use.operand_number) for use in op.results[0].uses]
    for user, position in uses[1:]:
        with ir.InsertionPoint(op):
            copy = op.clone()
        operation(user).operands[position] = copy.results[0]
