"""Copy the body of another module's ``@main``: a user's per-device function becomes ops of this module.

Its calls are inlined first, each with a copy of the function it names. JAX lowers no function that calls itself.
Collectives get channels that the receiving module has not used, and annotations go: every value is a tile already.

O(ops that the result has).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import SHARDING, main_of
from shardpass.ir.blocks import moved_out
from shardpass.ir.reductions import WITH_CHANNELS
from shardpass.ir.replica_groups import list_devices_in
from shardpass.ir.tensors import every_op, operation

CALLEE = {"func.call": "callee", "stablehlo.composite": "decomposition"}
ANNOTATIONS = (SHARDING, "sdy.sharding")
DEVICE_TO_DEVICE = 1


def move_body(module: Any, before: Any, arguments: Sequence[Any], channels: Iterator[int]) -> list[Any]:
    """Move the ops of ``module``'s main before the op ``before``; returns the values that main returns.

    ``module`` is of the same context as ``before``, and unusable afterwards.
    """
    main = operation(main_of(module))
    list_devices_in(module)  # the meshes stay behind
    _inline(module, main)
    for op in every_op(main):
        for name in ANNOTATIONS:
            if name in op.attributes:
                del op.attributes[name]
        if op.name in WITH_CHANNELS and "channel_handle" in op.attributes:
            op.attributes["channel_handle"] = hlo.ChannelHandle.get(next(channels), DEVICE_TO_DEVICE)
    return moved_out(main.regions[0].blocks[0], before, arguments)


def _inline(module: Any, main: Any) -> None:
    functions = {
        op.attributes["sym_name"].value: operation(op) for op in module.body.operations if "sym_name" in op.attributes
    }
    todo = [op for op in every_op(main) if op.name in CALLEE]
    while todo:
        call = todo.pop()
        copy = functions[ir.FlatSymbolRefAttr(call.attributes[CALLEE[call.name]]).value].clone()
        todo += [op for op in every_op(copy) if op.name in CALLEE]
        values = moved_out(copy.regions[0].blocks[0], call, list(call.operands))
        for result, value in zip(call.results, values, strict=True):
            result.replace_all_uses_with(value)
        call.erase()
        copy.erase()
