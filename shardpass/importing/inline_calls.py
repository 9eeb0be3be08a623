"""Calls, and composites, become the body of the function that they name.

Problem. Each call gets a body of its own, so the callee may be split differently at each call site (XLA and Shardy do
the same). The ops keep the callee's source lines. A composite is replaced by its decomposition: no backend knows the
composite by name at the shapes of tiles.

Method. Callees first, so that each body is flat when it is inlined: the functions that ``main`` reaches are put into an
order in which each stands behind those that it calls, then the calls of each are inlined.

1. Of several calls of a function, all but the last get a copy of its body; the last takes the body itself:

       main: f(x); f(y)      ->  main: (copy of f's ops); (f's ops)

   So a chain of functions that are called once each is inlined without a copy, and the copies that are made are all in
   the result.
2. A function that something else names too (a custom call may name computations) keeps its body, and is kept.
3. A sharding on a callee's argument or result, or on the call, becomes a ``custom_call @Sharding`` of that value.
4. In a manual region the body gets the call's scope, unless an op has one.

Invariant: after a function was treated it holds no call; a function that lost its body is not called any more.

Cost: linear in the size of the result. That may be exponential in the size of the module, where each function calls the
next twice, so it is computed first, and more than ``MOST_OPS`` are refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import RECURSION, TOO_MANY_OPS, UNKNOWN_CALLEE
from shardpass.ir.annotations import CONSTRAINT, MANUAL, SAID, SHARDING, Signature, main_of, make_custom_call
from shardpass.ir.locations import place_of
from shardpass.ir.walk import OpLists
from shardpass.program.manual_regions import marked_scope, set_scope

NAMES_CALLEE = {"func.call": "callee", "stablehlo.composite": "decomposition"}  # op -> its attribute
MOST_OPS = 2**20  # that a program may have once its calls are inlined


@dataclass(slots=True)
class _Function:
    op: Any
    size: int = 0  # ops, those of regions too
    calls: list[Any] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)  # functions that ops other than calls name


def inline_calls(module: Any, lists: OpLists | None = None) -> None:
    """Inlines every call and composite reached from ``main``, in regions too, and erases the functions left unused.

    ``lists`` holds the ops of ``module``. Raises ShardpassError: SP205 where functions call one another in a circle,
    SP206 where a callee is missing, SP229 where the result would be too large.
    """
    functions = _functions(lists or OpLists(module.operation))
    if len(functions) == 1:
        _refuse_circle_of_main(functions)
        return
    order = _callees_first(functions)
    _refuse_too_many(functions, order, main_of(module))
    kept = _kept(functions, order)
    sites = Counter(_callee(call) for name in order for call in functions[name].calls)
    for name in order:
        for call in functions[name].calls:
            callee = _callee(call)
            sites[callee] -= 1
            _inline_call(call, functions[callee].op, copy=sites[callee] > 0 or callee in kept)
    for name, function in functions.items():
        if name != "main" and name not in kept:
            function.op.erase()
    if lists is not None:
        lists.changed()


def _functions(lists: OpLists) -> dict[str, _Function]:
    top, *blocks = lists.blocks
    functions = {
        op.attributes["sym_name"].value: _Function(op)
        for op, name in zip(top.ops, top.names, strict=True)
        if name == "func.func"
    }
    if len(functions) == 1 and NAMES_CALLEE.keys().isdisjoint(lists.names):
        return functions
    by_op = {id(function.op): function for function in functions.values()}
    current = next(iter(functions.values()))
    for inside in blocks:  # those of a function follow one another
        current = by_op.get(id(inside.owner), current)
        current.size += len(inside.ops)
        for op, name in zip(inside.ops, inside.names, strict=True):
            if name in NAMES_CALLEE:
                current.calls.append(op)
            elif name == "stablehlo.custom_call" or not name.startswith(("stablehlo.", "chlo.", "func.return")):
                for attribute in op.attributes.values():
                    current.mentions |= _symbols(attribute)
    return functions


def _callee(call: Any) -> str:
    return str(ir.FlatSymbolRefAttr(call.attributes[NAMES_CALLEE[call.name]]).value)


def _refuse_circle_of_main(functions: dict[str, _Function]) -> None:
    if any(function.calls for function in functions.values()):
        _callees_first(functions)


def _callees_first(functions: dict[str, _Function]) -> list[str]:
    """The functions that ``main`` reaches by calls, each behind those that it calls."""
    order: list[str] = []
    done: set[str] = set()
    path = ["main"]
    todo = [iter(functions["main"].calls)]  # of each function on the path, the calls that were not looked at
    on_path = {"main"}
    while todo:
        call = next(todo[-1], None)
        if call is None:
            todo.pop()
            name = path.pop()
            on_path.discard(name)
            done.add(name)
            order.append(name)
            continue
        callee = _callee(call)
        if callee in on_path:
            circle = " -> ".join("@" + name for name in (*path[path.index(callee) :], callee))
            raise RECURSION.error(place_of(call.location), circle=circle)
        if callee not in functions or not functions[callee].op.regions[0].blocks:
            raise UNKNOWN_CALLEE.error(place_of(call.location), callee=callee)
        if callee not in done:
            path.append(callee)
            on_path.add(callee)
            todo.append(iter(functions[callee].calls))
    return order


def _refuse_too_many(functions: dict[str, _Function], order: list[str], main: Any) -> None:
    """Refuses a program that would have more than ``MOST_OPS`` ops; O(calls)."""
    sizes: dict[str, int] = {}
    for name in order:
        function = functions[name]
        # a call gives way to the callee's ops without its terminator
        sizes[name] = function.size + sum(sizes[_callee(call)] - 2 for call in function.calls)
    if sizes["main"] > MOST_OPS:
        calls = sum(len(functions[name].calls) for name in order)
        raise TOO_MANY_OPS.error(place_of(main.location), calls=calls, count=sizes["main"], most=MOST_OPS)


def _kept(functions: dict[str, _Function], order: list[str]) -> set[str]:
    """The functions that must stay: ops of the inlined program name them, or ops of such functions."""
    kept: set[str] = set()
    todo = {name for reached in order for name in functions[reached].mentions}
    while todo:
        name = todo.pop()
        if name in functions and name != "main" and name not in kept:
            kept.add(name)
            function = functions[name]
            todo |= function.mentions
            if name not in order:
                todo |= {_callee(call) for call in function.calls}
    return kept


def _inline_call(call: Any, callee: Any, *, copy: bool) -> None:
    """Puts the body of ``callee``, or a copy of it, before ``call``, and erases the call."""
    scope = marked_scope(call)  # of a call inside a manual region: so is the body
    outside = {} if scope == MANUAL else {name: call.attributes[name] for name in SAID if name in call.attributes}
    signature = Signature(callee)
    with ir.InsertionPoint(call):
        source = callee.clone() if copy else callee
        block = source.regions[0].blocks[0]
        values = zip(block.arguments, call.operands, signature.arguments, strict=True)
        for argument, value, attributes in values:
            argument.replace_all_uses_with(_constrained(value, attributes, call.location))
        *body, terminator = [view.operation for view in block.operations]
        for op in body:
            op.move_before(call)
            if scope is not None and marked_scope(op) is None:
                set_scope(op, scope)
        returned = list(terminator.operands)
        for result, value, attributes in zip(call.results, returned, signature.results, strict=True):
            value = _constrained(value, attributes, call.location)
            alone = outside if len(returned) == 1 else {}
            result.replace_all_uses_with(_constrained(value, alone, call.location))
    if copy:
        source.erase()
    else:
        terminator.erase()  # the function is erased when all calls are inlined
    call.erase()


def _constrained(value: Any, attributes: dict[str, Any], location: Any) -> Any:
    if SHARDING not in attributes:
        return value
    said = {name: attributes[name] for name in SAID if name in attributes}
    with location:
        return make_custom_call(CONSTRAINT, value, value.type, said)


def _symbols(attribute: Any) -> set[str]:
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return {attribute.value}
    if isinstance(attribute, ir.ArrayAttr):
        return {name for item in attribute for name in _symbols(item)}
    return set()
