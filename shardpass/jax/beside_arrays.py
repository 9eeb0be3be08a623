"""Restore the partial sums and tokens of JAX's main, which import replaced by arrays.

1. An argument or result that consists of summands (``importing.partial_sums``) becomes a partial sum for JAX again:
inside the region, its tile [1, ...] is reshaped. Only Shardy's annotations express partial sums.
2. A token (``importing.tokens``) becomes an argument or result again, at its original position. The returned token
is the argument: the runtime sets it when the program is done, and nothing inside depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir import annotations as names
from shardpass.ir.tensors import ints, operation, retype
from shardpass.runtime.partitioned_signature import Boundary, Signature

Rows = list[dict[str, Any]]


def without_summands(module: Any, signature: Signature) -> Signature:
    """Make main take and return partial sums instead of arrays of summands; return the new signature."""
    boundaries = (*signature.arguments, *signature.results)
    if all(boundary.partial is None for boundary in boundaries):
        return signature
    main = operation(names.main_of(module))
    (block,) = main.regions[0].blocks
    last = operation(block.operations[len(block.operations) - 1])
    with module.context, ir.Location.unknown():
        for argument, boundary in zip(block.arguments, signature.arguments, strict=True):
            if boundary.partial is not None:
                kind = argument.type
                argument.set_type(retype(kind, kind.shape[1:]))
                with ir.InsertionPoint.at_block_begin(block):
                    one = hlo.reshape(kind, argument)
                argument.replace_all_uses_except(one, [operation(one.owner)])
        for index, boundary in enumerate(signature.results):
            if boundary.partial is not None:
                value = last.operands[index]
                with ir.InsertionPoint(last):
                    last.operands[index] = hlo.reshape(retype(value.type, value.type.shape[1:]), value)
        types = [a.type for a in block.arguments], [value.type for value in last.operands]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    sides = [tuple(map(_summed, side)) for side in (signature.arguments, signature.results)]
    return replace(signature, arguments=sides[0], results=sides[1])


def _summed(boundary: Boundary) -> Boundary:
    """Return the boundary of the value whose summands have ``boundary``."""
    if boundary.partial is None:
        return boundary
    return replace(boundary, shape=boundary.shape[1:], sharding=boundary.partial, partial=None)


def tokens_of(module: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places at which main took and returned tokens before import."""
    attributes = module.operation.attributes
    if names.TOKENS not in attributes:
        return (), ()
    operands, given = attributes[names.TOKENS]
    return ints(operands), ints(given)


def with_tokens(module: Any, sides: Sequence[Rows], tokens: Sequence[Sequence[int]]) -> None:
    """Make main take and return tokens at the places ``tokens``; each returned token is an argument.

    ``sides``: all attributes of the arguments and results of the main that JAX lowered.
    """
    old = names.main_of(module)
    kind = old.attributes["function_type"].value
    annotated = names.Signature(old)
    token = ir.Type.parse("!stablehlo.token")
    types, rows = [], []
    for side, known, shardings, places in zip(
        (kind.inputs, kind.results), (annotated.arguments, annotated.results), sides, tokens, strict=True
    ):
        types.append(_inserted(list(side), places, [token] * len(places)))
        rows.append(_inserted(known, places, [shardings[place] for place in places]))
    operation(old).attributes["sym_name"] = ir.StringAttr.get("main_without_tokens")
    with ir.InsertionPoint(old):
        main = func.FuncOp("main", ir.FunctionType.get(*types), visibility="public")
    block = main.add_entry_block()
    arrays = [argument for place, argument in enumerate(block.arguments) if place not in tokens[0]]
    for before, after in zip(old.arguments, arrays, strict=True):
        before.replace_all_uses_with(after)
    *body, last = [operation(op) for op in operation(old).regions[0].blocks[0].operations]
    passed = [block.arguments[place] for place in tokens[0]][: len(tokens[1])]
    with ir.InsertionPoint(block):
        end = operation(func.ReturnOp(_inserted(list(last.operands), tokens[1], passed)))
    for op in body:
        op.move_before(end)
    operation(old).erase()
    annotated = names.Signature(main)
    annotated.arguments, annotated.results = rows
    annotated.write()


def _inserted(items: list[Any], places: Sequence[int], more: Sequence[Any]) -> list[Any]:
    """Insert ``more`` into a copy of ``items`` at ``places``, which ascend."""
    result = list(items)
    for place, item in zip(places, more, strict=True):
        result.insert(place, item)
    return result
