"""Restore Shardy's ops and attributes in modules read from HLO.

Problem. JAX hands XLA programs in Shardy's dialect. HLO has no word for it, so XLA writes it into custom calls and
``frontend_attributes`` on the way to HLO, and reads it again before it propagates. A dump of HLO has these:

| HLO | here |
|---|---|
| ``xla.sdy.meshes`` of the module | ``sdy.mesh``, where there is none yet |
| ``xla.sdy.sharding`` of an op, an argument | ``sdy.sharding``, in place of the list of devices beside it |
| ``@Sharding`` with ``xla.sdy.sharding``, ``@xla.sdy.FuncResultSharding`` | ``sdy.sharding_constraint`` |
| ``@xla.sdy.GlobalToLocalShape``, a call of ``@xla.sdy.manual_computation_body``, ``@xla.sdy.LocalToGlobalShape`` | \
``sdy.manual_computation`` |

Invariant: a program without ``xla.sdy.meshes`` is left as it is. Cost: O(ops).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.blocks import terminator
from shardpass.ir.tensors import entries
from shardpass.ir.walk import every_op, operation

FRONTEND, SHARDING = "mhlo.frontend_attributes", "mhlo.sharding"
PREFIX = "xla.sdy."
MESHES, TEXT = PREFIX + "meshes", PREFIX + "sharding"
CONSTRAINTS = ("Sharding", PREFIX + "FuncResultSharding")
BODY, ENTER, LEAVE = PREFIX + "manual_computation_body", PREFIX + "GlobalToLocalShape", PREFIX + "LocalToGlobalShape"


def restore(module: Any) -> None:
    """Restore Shardy's ops and attributes in a module that XLA's importer read from HLO.

    Leaves a module without ``xla.sdy.meshes`` unchanged. Raises MLIRError for a text that is no attribute of Shardy's.
    """
    meshes = _shardy_texts(module.operation.attributes).get(MESHES)
    if meshes is None:
        return
    functions = {operation(f).attributes["sym_name"].value: operation(f) for f in module.body.operations}
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
        for name, mesh in entries(ir.Attribute.parse(meshes)).items():
            if name in functions:  # replica groups name this mesh, and XLA of jaxlib 0.12 has made it for them
                continue
            ir.Operation.create("sdy.mesh", attributes={"sym_name": ir.StringAttr.get(name), "mesh": mesh})
    calls = []
    for op in list(every_op(module.operation)):
        texts = _shardy_texts(op.attributes)
        if op.name == "func.func":
            _arguments(op)
        elif op.name == "func.call":
            calls.append(op)
        elif TEXT in texts and op.name == "stablehlo.custom_call" and _target(op) in CONSTRAINTS:
            _constraint(op)
        elif TEXT in texts:
            _annotated(op.attributes, texts[TEXT])
    for call in calls:  # a computation stands before those that call it, so regions are made from the inside out
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        if callee.startswith(BODY):
            _region(call, functions[callee])
    for name, function in functions.items():
        if name.startswith(BODY):
            function.erase()


def _shardy_texts(attributes: Any) -> dict[str, str]:
    """Return Shardy's texts in the frontend attributes."""
    if FRONTEND not in attributes:
        return {}
    frontend = entries(attributes[FRONTEND])
    return {name: ir.StringAttr(text).value for name, text in frontend.items() if name.startswith(PREFIX)}


def _target(op: Any) -> str:
    return str(ir.StringAttr(op.attributes["call_target_name"]).value)


def _annotated(attributes: Any, text: str) -> None:
    attributes["sdy.sharding"] = ir.Attribute.parse(text)
    if SHARDING in attributes:
        del attributes[SHARDING]


def _arguments(function: Any) -> None:
    for side in ("arg_attrs", "res_attrs"):
        if side in function.attributes:
            rows = [entries(row) for row in function.attributes[side]]
            for row in rows:
                if (text := _shardy_texts(row).get(TEXT)) is not None:
                    _annotated(row, text)
            function.attributes[side] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])


def _constraint(op: Any) -> None:
    (sharding,) = _shardings(_shardy_texts(op.attributes)[TEXT])
    with ir.InsertionPoint(op), op.location:
        value = op.operands[0]
        made = ir.Operation.create("sdy.sharding_constraint", [value.type], [value], {"sharding": sharding})
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _shardings(text: str) -> list[Any]:
    """Return the shardings in ``text``, one for each result of a call."""
    from jaxlib.mlir.dialects import sdy

    return list(sdy.TensorShardingPerValueAttr(ir.Attribute.parse(text)).shardings)


def _region(call: Any, function: Any) -> None:
    """Replace the call of a body, between its conversions, by a region with the body's block."""
    from jaxlib.mlir.dialects import sdy

    entered = [_source(value) for value in call.operands]
    left = next((operation(use.owner) for result in call.results for use in result.uses), None)
    attributes = [_shardy_texts(op.attributes) for op in (*[op for op, _ in entered[:1]], *([left] if left else []))]
    into = _shardings(attributes[0][PREFIX + "in_shardings"]) if entered else []
    outof = attributes[-1].get(PREFIX + "out_shardings", "#sdy.sharding_per_value<[]>")
    wholes = list(_values(left)) if left is not None else []
    body = operation(function.clone(ip=ir.InsertionPoint(function)))
    with ir.InsertionPoint(call), call.location:
        made = ir.Operation.create(
            "sdy.manual_computation",
            [value.type for value in wholes],
            [op.operands[index] for op, index in entered],
            {
                "in_shardings": sdy.TensorShardingPerValueAttr.get([into[index] for _, index in entered]),
                "out_shardings": ir.Attribute.parse(outof),
                "manual_axes": ir.Attribute.parse(attributes[0][PREFIX + "manual_axes"]),
            },
            regions=1,
        )
    body.regions[0].blocks[0].append_to(made.regions[0])
    body.erase()
    block = made.regions[0].blocks[0]
    give = terminator(block)
    with ir.InsertionPoint(give), give.location:
        ir.Operation.create("sdy.return", [], list(give.operands))
    give.erase()
    for value, result in zip(wholes, made.results, strict=True):
        value.replace_all_uses_with(result)
    _erase_unused([left] if left is not None else [])
    call.erase()
    _erase_unused([op for op, _ in entered[:1]])  # one conversion makes all tiles


def _source(tile: Any) -> tuple[Any, int]:
    """Return the conversion that yields ``tile`` for a region, and the index of the tile."""
    owner = operation(tile.owner)
    if owner.name == "stablehlo.get_tuple_element":
        return operation(owner.operands[0].owner), ir.IntegerAttr(owner.attributes["index"]).value
    return owner, 0


def _values(left: Any) -> Iterator[Any]:
    """Yield the whole values of a conversion: its result, or the used elements of its tuple."""
    if not str(left.results[0].type).startswith("tuple<"):
        yield left.results[0]
        return
    elements = {}
    for use in left.results[0].uses:
        element = operation(use.owner)
        elements[ir.IntegerAttr(element.attributes["index"]).value] = element.results[0]
    yield from (elements[index] for index in sorted(elements))


def _erase_unused(ops: list[Any]) -> None:
    """Erase ``ops`` and the elements of their tuples."""
    for op in ops:
        for use in [use for result in op.results for use in result.uses]:
            operation(use.owner).erase()
        op.erase()
