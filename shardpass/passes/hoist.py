"""``shardpass-hoist``: moves redistributions of loop-invariant values out of loops.

Problem. A redistribution in a loop's body is done in each trip. Where its operand is the same in each, one before the
loop is enough; but the result is then alive throughout the loop, and gathering weights one after the other inside of it
is how programs save memory.

Which values do not change, in ``while(%i = %n, %w = %w0) { ...; return %j, %w }``:

1. one from outside of the loop;
2. a carried one that the body returns as it got it: ``%w``, which is ``%w0`` outside;
3. one that pure ops make of such values alone. These ops, the *chain*, leave the loop with the redistribution; one that
   the loop needs too stays, and a copy leaves. A redistribution in a chain must have left before. Barriers stay, and
   what they take: ``jax.checkpoint`` wants that gone after the trip.

When one leaves: its result is no larger than its operand (the loop then needs less memory), or the most bytes alive at
once in the body grow by no more than ``most``, by default a sixteenth of them. Example: a body that needs 16 KiB at
most may grow by 1 KiB. A weight of 4 KiB that is gathered where the body needs most memory is counted there already,
and leaves. One that is gathered elsewhere would add its 4 KiB to the 16; it stays, and SP303 says what each trip
receives for it.

State: of each loop, ``Order`` (bytes alive at each op) and the bytes that have left so far, which the next candidate
adds to. Invariant: inner loops come first, so that what leaves one can leave the next.

Cost: one walk to find loops and redistributions. O(ops of the body) for a body that contains one, and again for each
whose operand does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import STAYS_IN_LOOP
from shardpass.ir.annotations import (
    FROM,
    GLOBAL_TYPE,
    REDISTRIBUTE,
    TO,
    custom_call_target,
    get_text,
    main_of,
    num_devices,
)
from shardpass.ir.blocks import terminator
from shardpass.ir.effects import may_be_moved
from shardpass.ir.locations import place_of
from shardpass.ir.order import Order, bytes_of
from shardpass.ir.walk import named, operation, read_blocks
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.redistribute import estimate_bytes

WHILE, CUSTOM_CALL = "stablehlo.while", "stablehlo.custom_call"
BARRIER = "stablehlo.optimization_barrier"


@register
@dataclass(frozen=True)
class Hoist(ModulePass):
    """Moves ``custom_call @shardpass.redistribute`` out of a ``while`` if its operand is the same in every iteration.

    The operand may be defined outside of the loop, be carried and returned unchanged, or be computed from such values
    by ops that move with it. A hoisted result is alive throughout the loop. The pass therefore hoists only if that
    needs little memory: the result is no larger than the operand, or the peak of the bytes alive in the loop's body
    rises by at most a sixteenth. Weights that a loop's body gathers one after the other to save memory are still
    gathered there; a remark (SP303) states the cost.

    Options:
        most: how many more bytes hoisting may keep alive during a loop; 0 stands for a sixteenth of the bytes that are
            alive in it

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
          func.func @main(%n: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> (tensor<i1>, tensor<4x8xf32>) {
            %0:2 = stablehlo.while(%i = %n, %z = %y) : tensor<i1>, tensor<4x8xf32>
              cond {
                stablehlo.return %i : tensor<i1>
              } do {
                %1 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
                %2 = stablehlo.add %z, %1 : tensor<4x8xf32>
                stablehlo.return %i, %2 : tensor<i1>, tensor<4x8xf32>
              }
            return %0#0, %0#1 : tensor<i1>, tensor<4x8xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
          func.func @main(%n: tensor<i1>, %x: tensor<8x4xf32>, %y: tensor<4x8xf32>) -> (tensor<i1>, tensor<4x8xf32>) {
            %1 = stablehlo.custom_call @shardpass.redistribute(%x) {shardpass.from = "{devices=[1,2]<=[2]}", shardpass.to = "{devices=[2,1]<=[2]}", shardpass.global_type = tensor<8x8xf32>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
            %0:2 = stablehlo.while(%i = %n, %z = %y) : tensor<i1>, tensor<4x8xf32>
              cond {
                stablehlo.return %i : tensor<i1>
              } do {
                %2 = stablehlo.add %z, %1 : tensor<4x8xf32>
                stablehlo.return %i, %2 : tensor<i1>, tensor<4x8xf32>
              }
            return %0#0, %0#1 : tensor<i1>, tensor<4x8xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-hoist"
    summary = "redistributions of what a loop does not change are done before it"

    most: int = 0

    def run(self, module: Any) -> bool:
        devices = num_devices(module)
        loops = _loops(main_of(module))
        with ir.Location.unknown(module.context):
            for loop in loops:
                for region in loop.regions:
                    _hoist_from(loop, region.blocks[0], self.most, devices)
        return bool(loops)


def _loops(main: Any) -> list[Any]:
    """Return the loops that contain a redistribution, also in inner loops; inner loops first."""
    blocks = read_blocks(main)
    if not any(WHILE in inside.names for inside in blocks):
        return []
    holders = {
        id(inside.owner)
        for inside in blocks
        if any(custom_call_target(op) == REDISTRIBUTE for op in named([inside], (CUSTOM_CALL,)))
    }
    for inside in reversed(blocks):  # an op stands before the blocks that it contains: here, after them
        if any(id(op) in holders for op in inside.ops):
            holders.add(id(inside.owner))
    nested: dict[int, list[Any]] = {}  # op -> the holders right inside of it
    for inside in blocks:
        nested.setdefault(id(inside.owner), []).extend(op for op in inside.ops if id(op) in holders)
    outer_first = []
    todo = [blocks[0].owner]
    while todo:
        op = todo.pop()
        outer_first.append(op)
        todo += nested.get(id(op), ())
    return [op for op in reversed(outer_first) if op.name == WHILE]


def _hoist_from(loop: Any, block: Any, most: int, devices: int | None) -> None:
    """Move redistributions of values that do not change out of ``loop``. O(ops of the block) for the block and for
    each redistribution.
    """
    redistributions = [op for op in map(operation, block.operations) if custom_call_target(op) == REDISTRIBUTE]
    if not redistributions:
        return
    body, order = _Body(loop, block), None
    outside = 0  # bytes of what has left
    for op in redistributions:
        chain = body.chain(op)
        if chain is None:
            continue
        order = order or Order(block)
        number, size = order.number[op.results[0]], bytes_of(op.results[0].type)
        growth = outside + size + order.peak_without(number) - order.peak
        if size > bytes_of(op.operands[0].type) and growth > (most or order.small_change):
            _remark_that_it_stays(op, growth, devices)
            continue
        outside += size
        order.forget(number)
        body.move([*chain, op])


class _Body:
    """The block of a loop, with the values that are the same in every iteration."""

    def __init__(self, loop: Any, block: Any) -> None:
        self.loop = loop
        self.made = {result: op for op in map(operation, block.operations) for result in op.results}
        body = loop.regions[1].blocks[0]
        returned = list(terminator(body).operands)
        arguments = list(enumerate(zip(body.arguments, returned, strict=True)))
        kept = [k for k, (argument, value) in arguments if argument == value]
        self.carried = {block.arguments[k]: loop.operands[k] for k in kept}
        self.changing = {a for k, a in enumerate(block.arguments) if k not in set(kept)}

    def chain(self, op: Any) -> list[Any] | None:
        """Return the ops of the block that ``op`` depends on, in order; None if an input changes between iterations.

        A redistribution in between leaves first, or both stay. What a barrier takes and passes is made in the loop.
        """
        if any(operation(use.owner).name == BARRIER for use in op.results[0].uses):
            return None
        needed: dict[Any, None] = {}
        todo = [op]
        while todo:
            for value in todo.pop().operands:
                if value in self.changing:
                    return None
                source = self.made.get(value)
                if source is None or source in needed:
                    continue
                stays = source.name == BARRIER or custom_call_target(source) == REDISTRIBUTE
                if stays or not may_be_moved(source) or len(source.regions):
                    return None
                needed[source] = None
                todo.append(source)
        return [made for made in dict.fromkeys(self.made.values()) if made in needed]

    def move(self, ops: list[Any]) -> None:
        """Move ``ops`` before the loop. An op that the loop also uses stays, and a copy is moved."""
        copies: dict[Any, Any] = dict(self.carried)
        going = set(ops)
        for op in ops:
            stays = op is not ops[-1] and any(use.owner.operation not in going for r in op.results for use in r.uses)
            moved = op.clone(ir.InsertionPoint(self.loop)) if stays else op
            if not stays:
                op.move_before(self.loop)
                for result in op.results:
                    del self.made[result]
            for index, value in enumerate(moved.operands):
                if value in copies:
                    moved.operands[index] = copies[value]
            copies.update(zip(op.results, moved.results, strict=True))


def _remark_that_it_stays(op: Any, growth: int, devices: int | None) -> None:
    """Report a redistribution that stays in a loop, with the bytes received in each iteration."""
    whole = ir.RankedTensorType(ir.TypeAttr(op.attributes[GLOBAL_TYPE]).value)
    source, target = (get_text(op, name) or "" for name in (FROM, TO))
    received = estimate_bytes(tuple(whole.shape), str(whole.element_type), source, target, num_devices=devices)
    if received:
        report(STAYS_IN_LOOP.at(place_of(op.location), bytes=received, growth=growth))
