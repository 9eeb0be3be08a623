"""Control flow, made local: while, if, case.

What crosses a region's border has one sharding, that of the op's result: a loop's operands, its regions' arguments and
what its body returns; what the branches of an ``if`` or ``case`` return. Predicates and indices are replicated, so
every device takes the same way, and collectives inside a region meet.

A value that a region takes from outside is brought to its sharding inside, once in each region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardpass.ir.tensors import retype
from shardpass.program.program import Block, Node
from shardpass.sharding import Sharding

if TYPE_CHECKING:
    from shardpass.partition.partitioner import Partitioner


def partition_control_flow(work: Partitioner, node: Node, wanted: list[Sharding]) -> None:
    """Makes ``node.op`` and its regions local; its results are held as ``wanted``."""
    op = node.op
    kinds = [r.type for r in op.results]
    loop = node.kind == "while"
    for index, value in enumerate(list(op.operands)):
        target = wanted[index] if loop else node.mesh.replicated(value.type.rank)
        op.operands[index] = work.bring(value, target, op, f"operand {index} of {op.name}")
    for index, block in enumerate(node.blocks):
        for argument, sharding in zip(block.arguments, wanted if loop else [], strict=True):
            work.enter(argument, sharding, node.mesh)
        is_condition = loop and index == 0
        _region(work, block, [node.mesh.replicated(0)] if is_condition else wanted, op.name)
    for result, kind, sharding in zip(op.results, kinds, wanted, strict=True):
        result.set_type(retype(kind, work.tile_type(kind, sharding).shape))
        work.hold(result, result, kind, sharding, node.mesh)


def _region(work: Partitioner, block: Block, targets: list[Sharding], name: str) -> None:
    """The ops of ``block``, and its terminator's operands brought to ``targets``."""
    work.copies = work.copies.new_child()
    work.block(block)
    end = block.end
    for index, (value, target) in enumerate(zip(list(end.operands), targets, strict=True)):
        end.operands[index] = work.bring(value, target, end, f"value {index} that a region of {name} returns")
    work.copies = work.copies.parents
