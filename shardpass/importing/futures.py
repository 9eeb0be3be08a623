"""Rewrite collectives with separate start and wait ops as plain collectives.

Problem. ``psum_start(x, "i").done()`` lowers to two ops, and between them stands a value of type
``!stablehlo.future<tensor<4xf32>>``, which calls may take and return. A future has no tile.

Here a future is replaced by its array: the collective runs where it was started.

| before | after |
|---|---|
| ``%f = async_start(%x) ({ all_reduce })`` | ``%f = all_reduce(%x)`` |
| ``%y = async_done(%f)`` | ``%f`` in place of ``%y`` |
| an argument or a result of a call that is a future | the array |

Only the place of the wait is lost: XLA itself starts collectives early and waits for them late.

A future of several arrays, and one that no ``async_start`` of the program has made, is left, and refused (SP224).
O(ops).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.blocks import moved_out, terminator
from shardpass.ir.walk import OpLists, named

START, DONE = "stablehlo.async_start", "stablehlo.async_done"


def begin_at_once(lists: OpLists) -> None:
    """Rewrite collectives with separate start and wait ops as plain ones, in place. ``lists``: the module's ops."""
    if START not in lists.names:
        return
    starts, dones = named(lists.blocks, (START,)), named(lists.blocks, (DONE,))
    arrays: dict[Any, Any] = {}
    for start in starts:
        given = terminator(start.regions[0].blocks[0]).operands
        if len(given) != 1:
            return
        arrays[start.results[0].type] = given[0].type
    for inside in lists.blocks:
        for value in (*inside.block.arguments, *(result for op in inside.ops for result in op.results)):
            if value.type in arrays:
                value.set_type(arrays[value.type])
    for op in lists.blocks[0].ops:
        if op.name == "func.func":
            kind = ir.TypeAttr(op.attributes["function_type"]).value
            kinds = [[arrays.get(of, of) for of in side] for side in (kind.inputs, kind.results)]
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
    for start in starts:
        (array,) = moved_out(start.regions[0].blocks[0], start, start.operands)
        start.results[0].replace_all_uses_with(array)
        start.erase()
    for done in dones:
        done.results[0].replace_all_uses_with(done.operands[0])
        done.erase()
    lists.changed()
