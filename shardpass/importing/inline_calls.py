"""Calls, and composites, become the body of the function that they name.

Each call gets a body of its own, so the callee may be split differently at each call site (XLA and Shardy do the same).
The ops keep the callee's source lines. A composite is what it is composed of: no backend knows it by name at the shapes
of tiles. A callee's argument or result that carries a sharding becomes a constraint.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import RECURSION, UNKNOWN_CALLEE
from shardpass.ir.annotations import CONSTRAINT, MANUAL, SAID, SHARDING, Signature, main_of, make_custom_call
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import operation, walk_blocks
from shardpass.program.manual_regions import marked_scope, set_scope

NAMES_CALLEE = {"func.call": "callee", "stablehlo.composite": "decomposition"}  # op -> its attribute


def inline_calls(module: Any) -> None:
    """Inlines every call and composite reached from ``main``, in regions too, and erases the functions left unused.

    Raises ShardpassError: SP205 where functions call one another in a circle, SP206 where a callee is missing.
    """
    functions = {
        op.attributes["sym_name"].value: op for op in module.body.operations if operation(op).name == "func.func"
    }
    done: set[str] = set()
    _inline_into(functions, "main", (), done, main_of(module))
    _erase_unused(module, functions)


def _calls(function: Any) -> list[Any]:
    return [
        operation(op)
        for block in walk_blocks(operation(function))
        for op in block.operations
        if operation(op).name in NAMES_CALLEE
    ]


def _inline_into(functions: dict[str, Any], name: str, path: tuple[str, ...], done: set[str], function: Any) -> None:
    """Callees first, so that each body is flat when it is copied."""
    path = (*path, name)
    for call in _calls(function):
        callee = ir.FlatSymbolRefAttr(call.attributes[NAMES_CALLEE[call.name]]).value
        if callee in path:
            circle = " -> ".join("@" + n for n in (*path[path.index(callee) :], callee))
            raise RECURSION.error(place_of(call.location), circle=circle)
        if callee not in functions or not functions[callee].regions[0].blocks:
            raise UNKNOWN_CALLEE.error(place_of(call.location), callee=callee)
        if callee not in done:
            _inline_into(functions, callee, path, done, functions[callee])
        _inline_call(call, functions[callee])
    done.add(name)


def _inline_call(call: Any, callee: Any) -> None:
    scope = marked_scope(call)  # of a call inside a manual region: so is the body
    outside = {} if scope == MANUAL else {name: call.attributes[name] for name in SAID if name in call.attributes}
    with ir.InsertionPoint(call):
        copy = operation(callee).clone()
        signature = Signature(copy)
        block = copy.regions[0].blocks[0]
        values = zip(block.arguments, call.operands, signature.arguments, strict=True)
        for argument, value, attributes in values:
            argument.replace_all_uses_with(_constrained(value, attributes, call.location))
        *body, terminator = [operation(op) for op in block.operations]
        for op in body:
            op.move_before(call)
            if scope is not None and marked_scope(op) is None:
                set_scope(op, scope)
        returned = list(terminator.operands)
        for result, value, attributes in zip(call.results, returned, signature.results, strict=True):
            value = _constrained(value, attributes, call.location)
            alone = outside if len(call.results) == 1 else {}
            result.replace_all_uses_with(_constrained(value, alone, call.location))
    copy.erase()
    call.erase()


def _constrained(value: Any, attributes: dict[str, Any], location: Any) -> Any:
    if SHARDING not in attributes:
        return value
    said = {name: attributes[name] for name in SAID if name in attributes}
    with location:
        return make_custom_call(CONSTRAINT, value, value.type, said)


def _erase_unused(module: Any, functions: dict[str, Any]) -> None:
    """Erases functions that nothing names any more (a custom call may name computations)."""
    main = operation(main_of(module))
    if len(functions) == 1:
        return
    kept: set[str] = set()
    todo = [main]
    while todo:
        for block in walk_blocks(todo.pop()):
            for op in block.operations:
                if operation(op).name == "stablehlo.constant":
                    continue  # names nothing, and the bindings cannot hand out every constant
                for attribute in operation(op).attributes.values():
                    for name in _symbols(attribute) & functions.keys() - kept:
                        kept.add(name)
                        todo.append(operation(functions[name]))
    for name, function in functions.items():
        if name != "main" and name not in kept:
            operation(function).erase()


def _symbols(attribute: Any) -> set[str]:
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return {attribute.value}
    if isinstance(attribute, ir.ArrayAttr):
        return {name for item in attribute for name in _symbols(item)}
    return set()
