"""Helpers over blocks: the op that computes a value, the end of a block, ops moved or copied out of a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.walk import operation


def maker(value: Any) -> Any:
    """Return the op that computes ``value``; None for an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else operation(owner)


def terminator(block: Any) -> Any:
    """Return the last op of ``block``."""
    return operation(block.operations[len(block.operations) - 1])


def moved_out(block: Any, before: Any, arguments: Sequence[Any]) -> list[Any]:
    """Move the ops of ``block`` before the op ``before``, with ``arguments`` in place of its arguments.

    Erases the terminator, and returns its operands.
    """
    for argument, value in zip(block.arguments, arguments, strict=True):
        argument.replace_all_uses_with(value)
    *body, end = map(operation, block.operations)
    for op in body:
        op.move_before(before)
    returned = list(end.operands)
    end.erase()
    return returned


def copied_out(block: Any, arguments: Sequence[Any]) -> list[Any]:
    """Copy the ops of ``block`` to the insertion point, with ``arguments`` in place of its arguments.

    Returns the operands of the terminator, which is not copied. For blocks whose ops have no regions, as in reducers.
    """
    values = dict(zip(block.arguments, arguments, strict=True))
    *body, end = map(operation, block.operations)
    for op in body:
        copy = operation(op.clone())
        for index, operand in enumerate(op.operands):
            copy.operands[index] = values.get(operand, operand)
        values.update(zip(op.results, copy.results, strict=True))
    return [values.get(operand, operand) for operand in end.operands]


def copied_block(source: Any, region: Any) -> None:
    """Append a copy of the block ``source`` of a StableHLO op to ``region``, at the current location."""
    target = region.blocks.append(*(argument.type for argument in source.arguments))
    with ir.InsertionPoint(target):
        hlo.return_(copied_out(source, target.arguments))
