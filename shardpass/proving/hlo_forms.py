"""Rewrite leftovers of XLA's translation from HLO to ops that StableHLO's reference interpreter runs.

A bitcast becomes a transpose to the order of its operand's layout, a reshape, and a transpose from the order of its
result's layout. A fusion becomes its body, a call that returns a tuple becomes a call of several results,
``stablehlo.dot`` becomes ``stablehlo.dot_general``, and a copy, which HLO has for its layout, becomes its operand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.doors import BITCAST
from shardpass.ir.walk import every_op, operation

LAYOUTS = ("result_layout", "xla_shape")  # notes of the translation
_DOT = "#stablehlo.dot<lhs_contracting_dimensions = [{last}], rhs_contracting_dimensions = [0]>"


def in_stablehlo(module: Any) -> None:
    """Rewrite ``module`` in place; its context must be current."""
    for op in [op for op in every_op(module.operation) if op.name == "mhlo.fusion"]:
        _without_fusion(op)
    for op in [op for op in every_op(module.operation) if op.name == BITCAST]:
        _without_bitcast(op)
    for op in list(every_op(module.operation)):
        if op.name == "mhlo.copy":
            op.results[0].replace_all_uses_with(op.operands[0])
            op.operation.erase()
    for op in [op for op in every_op(module.operation) if op.name == "stablehlo.dot"]:
        numbers = ir.Attribute.parse(_DOT.format(last=len(op.operands[0].type.shape) - 1))
        made = _remade(op, "stablehlo.dot_general", [op.results[0].type], {"dot_dimension_numbers": numbers})
        op.results[0].replace_all_uses_with(made.results[0])
        op.operation.erase()
    calls = [op for op in every_op(module.operation) if op.name == "stablehlo.custom_call" and len(op.results) == 1]
    for op in [call for call in calls if isinstance(call.results[0].type, ir.TupleType)]:
        _without_tuple(op)


def _without_bitcast(op: Any) -> None:
    """Rewrite a bitcast that keeps the type of the elements; layouts list the dimensions from the innermost one."""
    (value,), kind = op.operands, op.results[0].type
    named = ("source_layout", "result_layout")
    if str(value.type.element_type) != str(kind.element_type) or any(name not in op.attributes for name in named):
        return
    inner, outer = ([int(d) for d in np.array(op.attributes[name])][::-1] for name in named)
    with ir.InsertionPoint(op.operation), op.location:
        in_order = hlo.transpose(value, ir.DenseI64ArrayAttr.get(inner)) if inner != sorted(inner) else value
        sizes = ir.RankedTensorType.get([kind.shape[d] for d in outer], kind.element_type)
        made = hlo.reshape(sizes, in_order)
        if outer != sorted(outer):
            made = hlo.transpose(made, ir.DenseI64ArrayAttr.get([outer.index(d) for d in range(len(outer))]))
    op.results[0].replace_all_uses_with(made)
    op.operation.erase()


def _without_fusion(op: Any) -> None:
    """Move the body of a fusion to its place."""
    block = op.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = [operation(inner) for inner in block.operations]
    for inner in body:
        inner.move_before(op)
    for result, value in zip(op.results, list(end.operands), strict=True):
        result.replace_all_uses_with(value)
    op.operation.erase()


def _without_tuple(op: Any) -> None:
    """The call ``op`` with a result for each element of the tuple, unless the tuple is used as a whole."""
    users = [operation(use.owner) for use in op.results[0].uses]
    if any(user.name != "stablehlo.get_tuple_element" for user in users):
        return
    kind = op.results[0].type
    made = _remade(op, op.name, [kind.get_type(k) for k in range(kind.num_types)], {})
    for user in users:
        user.results[0].replace_all_uses_with(made.results[user.attributes["index"].value])
        user.operation.erase()
    op.operation.erase()


def _remade(op: Any, name: str, types: list[Any], more: dict[str, Any]) -> Any:
    """Build an op before ``op`` with its operands and attributes."""
    named = (one if isinstance(one, str) else one.name for one in op.attributes)
    kept = {key: op.attributes[key] for key in named if key not in LAYOUTS}
    with ir.InsertionPoint(op.operation):
        return ir.Operation.create(name, types, list(op.operands), {**kept, **more}, loc=op.location)
