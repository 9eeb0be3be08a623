"""Replace tokens, which order effects, by integers, which control flow can carry like any array.

Problem. An ordered ``io_callback`` takes a token and gives one, loops and branches carry it, and the program takes and
returns it. A token has no tile, so nothing that holds one could be partitioned.

Here a token is a ``tensor<i32>``. JAX's callback returns the token operand unchanged, so the number is 0 everywhere,
and each call waits for the previous call, whose result is its operand. ``shardpass.order`` names these results of a
call: a device that does not make the call knows them all the same.

| before | after |
|---|---|
| token argument of main | 0 |
| token result of main | none; ``shardpass.tokens`` on the module lists the places of tokens in the signature |
| ``create_token`` | 0 |
| ``after_all`` | the sum of its operands |
| callback, control flow, call, barrier, manual computation | the same, of the number |

``shardpass.jax.manual_region``, which returns the program to JAX, adds the tokens again: a token result is the token
argument, which the runtime sets when the whole program is done.

Where a token goes into another op (``send``, ``infeed``, a custom call of somebody's own), all tokens are left, and the
program is refused (SP225, SP227). O(ops).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import ORDER, TOKENS, Signature, custom_call_target
from shardpass.ir.tensors import i64_array, splat
from shardpass.ir.walk import CONTROL_FLOW, OpLists

_CARRIES = """
    stablehlo.optimization_barrier stablehlo.return func.call func.return sdy.manual_computation
    sdy.named_computation sdy.data_flow_edge sdy.func_data_flow_edge sdy.return
"""
CARRIES = CONTROL_FLOW.union(_CARRIES.split())
MADE = ("stablehlo.create_token", "stablehlo.after_all")
CALLBACKS = ("xla_ffi_python_cpu_callback", "xla_ffi_python_gpu_callback")


def number_tokens(module: Any, main: Any, lists: OpLists) -> None:
    """Rewrite the tokens of ``module`` in place. ``lists``: the ops of the module."""
    types = {value.type for inside in lists.blocks for op in inside.ops for value in op.results}
    types |= {value.type for inside in lists.blocks for value in inside.block.arguments}
    if not any(map(is_token, types)):
        return
    values = [value for inside in lists.blocks for value in inside.block.arguments if is_token(value.type)]
    holders = []
    for inside in lists.blocks:
        for op in inside.ops:
            made = [value for value in op.results if is_token(value.type)]
            values += made
            if made or any(is_token(value.type) for value in op.operands):
                holders.append(op)
    if not all(map(_is_known, holders)):
        return
    number = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    for op in holders:
        if custom_call_target(op) in CALLBACKS:
            op.attributes[ORDER] = i64_array([i for i, result in enumerate(op.results) if is_token(result.type)])
    for value in values:
        value.set_type(number)
    for op in holders:
        if op.name in MADE:
            _made(op, number)
    functions = [op for op in lists.blocks[0].ops if op.name == "func.func" and op.regions[0].blocks]
    places = _without_tokens(main, number)
    for function in functions:
        kind = ir.TypeAttr(function.attributes["function_type"]).value
        kinds = [[number if is_token(of) else of for of in side] for side in (kind.inputs, kind.results)]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
    module.operation.attributes[TOKENS] = ir.ArrayAttr.get([i64_array(side) for side in places])
    lists.changed()


def is_token(kind: Any) -> bool:
    return not isinstance(kind, ir.RankedTensorType) and str(kind) in ("!stablehlo.token", "!mhlo.token")


def _is_known(op: Any) -> bool:
    return op.name in CARRIES or op.name in MADE or custom_call_target(op) in CALLBACKS


def _made(op: Any, number: Any) -> None:
    with ir.InsertionPoint(op), op.location:
        first, *rest = list(op.operands) or [splat(number, 0)]
        for other in rest:
            first = hlo.add(first, other)
    op.results[0].replace_all_uses_with(first)
    op.erase()


def _without_tokens(main: Any, number: Any) -> tuple[list[int], list[int]]:
    """Remove the tokens from main's signature; return the indices of the removed arguments and results."""
    kind = ir.TypeAttr(main.attributes["function_type"]).value
    arguments, results = (
        [place for place, of in enumerate(side) if is_token(of)] for side in (kind.inputs, kind.results)
    )
    block = main.regions[0].blocks[0]
    signature = Signature(main)
    if arguments:
        with ir.InsertionPoint.at_block_begin(block), main.location:
            zero = splat(number, 0)
        for place in reversed(arguments):
            block.arguments[place].replace_all_uses_with(zero)
            block.erase_argument(place)
    end = list(block.operations)[-1].operation
    if results:
        with ir.InsertionPoint(end), end.location:
            ir.Operation.create("func.return", operands=_others(end.operands, results))
        end.erase()
    signature.arguments, signature.results = (
        _others(signature.arguments, arguments),
        _others(signature.results, results),
    )
    kinds = ir.FunctionType.get(_others(kind.inputs, arguments), _others(kind.results, results))
    main.attributes["function_type"] = ir.TypeAttr.get(kinds)
    signature.write()
    return arguments, results


def _others(items: Iterable[Any], places: list[int]) -> list[Any]:
    return [item for place, item in enumerate(items) if place not in places]
