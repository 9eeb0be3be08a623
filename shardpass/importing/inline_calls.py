"""Replace calls and composites by the body of the function that they name.

Problem. Each call gets a body of its own, so the callee may be split differently at each call site (XLA and Shardy do
the same). The ops keep the callee's names and source lines, joined with those of the call (``ir.locations.Within``). A
composite is replaced by its decomposition: no backend knows the composite by name at the shapes of tiles.

Method. Callers first: the calls of ``main`` become bodies, then the calls in these bodies, and so on. How often
each function is needed is counted before.

1. A function that is needed n times is copied n - 1 times; the last call takes the body itself:

       main: f(x); f(y)      ->  main: (copies of f's ops); (f's ops)

   So each op is moved or copied once for each time that it stands in the result.
2. A function that something else names too (a custom call may name computations) keeps its body, and is kept.
3. A sharding on a callee's argument or result, or on the call, becomes a ``custom_call @Sharding`` of that value.
4. In a manual region the ops of the body get the call's scope, unless they have a scope already. A call in that body
   passes on its own scope, if it has one, or else the outer call's.

State: the calls that are left to do, the next one last. Invariant: functions that are not reached yet are as they were
read, so that a copy of one is small; no op stands twice in the lists of calls.

Cost: linear in the ops that are copied. Where each function calls the next twice that is exponential in the size of the
module, so the count is computed first, and refused beyond ``most_ops``: real programs repeat a function for each layer,
and no op a thousand times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import RECURSION, TOO_MANY_OPS, UNKNOWN_CALLEE
from shardpass.ir.annotations import ANNOTATIONS, CONSTRAINT, MANUAL, SHARDING, Signature, main_of, make_custom_call
from shardpass.ir.bodies import CALLEE
from shardpass.ir.locations import Within, place_of
from shardpass.ir.walk import CONTROL_FLOW, OpLists, named, operation, read_blocks
from shardpass.program.manual_regions import marked_scope, set_scope

# Ops that inlining may make, with calls and returns: always allowed; allowed per op of the module; never exceeded.
FEW_OPS, TIMES, MOST_OPS = 2**16, 2**10, 2**21


@dataclass(slots=True)
class _Function:
    op: Any
    size: int = 0  # ops, those of regions too
    calls: list[Any] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)  # functions that ops other than calls name
    signature: Signature | None = None  # read when first called


@dataclass(slots=True)
class _Call:
    """A call to inline, with the annotations it had before the ops around it were marked."""

    op: Any
    scope: str | None  # its own mark
    around: str | None  # the scope of the body that contains the call
    annotations: dict[str, Any]  # the user's sharding of its result


def inline_calls(module: Any, lists: OpLists | None = None) -> None:
    """Inline every call and composite reached from ``main``, in regions too, and erase the functions left unused.

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
    needed = Counter(main=1)
    for name in reversed(order):
        for call in functions[name].calls:
            needed[_callee(call)] += needed[name]
    todo = [_call(op, None) for op in reversed(functions["main"].calls)]
    while todo:
        call = todo.pop()
        name = _callee(call.op)
        needed[name] -= 1
        inner = _inline_call(call, functions[name], copy=needed[name] > 0 or name in kept)
        todo += reversed(inner)
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
    if len(functions) == 1 and CALLEE.keys().isdisjoint(lists.names):
        return functions
    by_op = {id(function.op): function for function in functions.values()}
    current = next(iter(functions.values()))
    for inside in blocks:  # those of a function follow one another
        current = by_op.get(id(inside.owner), current)
        current.size += len(inside.ops)
        for op, name in zip(inside.ops, inside.names, strict=True):
            if name in CALLEE:
                current.calls.append(op)
            elif name == "stablehlo.custom_call" or not name.startswith(("stablehlo.", "chlo.", "func.return")):
                for attribute in op.attributes.values():
                    current.mentions |= _symbols(attribute)
    return functions


def _callee(call: Any) -> str:
    return str(ir.FlatSymbolRefAttr(call.attributes[CALLEE[call.name]]).value)


def _refuse_circle_of_main(functions: dict[str, _Function]) -> None:
    if any(function.calls for function in functions.values()):
        _callees_first(functions)


def _callees_first(functions: dict[str, _Function]) -> list[str]:
    """List the functions that ``main`` reaches by calls, callees first."""
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


def most_ops(size: int) -> int:
    """Return the maximum number of ops after inlining, for a module of ``size`` ops."""
    return min(MOST_OPS, max(FEW_OPS, TIMES * size))


def _refuse_too_many(functions: dict[str, _Function], order: list[str], main: Any) -> None:
    """Raise an error if inlining would copy more than ``most_ops`` ops; O(calls)."""
    sizes: dict[str, int] = {}
    for name in order:
        sizes[name] = functions[name].size + sum(sizes[_callee(call)] for call in functions[name].calls)
    size = sum(functions[name].size for name in order)
    most = most_ops(size)
    if sizes["main"] > most:
        calls = sum(len(functions[name].calls) for name in order)
        raise TOO_MANY_OPS.error(
            place_of(main.location), calls=calls, count=sizes["main"], times=sizes["main"] // size, size=size, most=most
        )


def _kept(functions: dict[str, _Function], order: list[str]) -> set[str]:
    """Return the functions that ops of the inlined program name, directly or through other such functions."""
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


def _call(op: Any, around: str | None) -> _Call:
    scope = marked_scope(op)
    annotations = (
        {} if scope == MANUAL else {name: op.attributes[name] for name in ANNOTATIONS if name in op.attributes}
    )
    return _Call(op, scope, around, annotations)


def _inline_call(call: _Call, function: _Function, *, copy: bool) -> list[_Call]:
    """Move the body of ``function``, or a copy, before ``call`` and erase the call; return the calls in the body."""
    op, scope = call.op, call.scope or call.around
    signature = function.signature = function.signature or Signature(function.op)
    with ir.InsertionPoint(op):
        source = function.op.clone() if copy else function.op
        block = source.regions[0].blocks[0]
        for argument, value, attributes in zip(block.arguments, op.operands, signature.arguments, strict=True):
            argument.replace_all_uses_with(_constrained(value, attributes, call))
        *body, terminator = [view.operation for view in block.operations]
        inner = _calls_in(body, scope) if function.calls else []
        within = Within(op.location)
        for moved in body:
            moved.move_before(op)
            within.move(moved)
            if scope is not None and marked_scope(moved) is None:
                set_scope(moved, scope)
        returned = list(terminator.operands)
        for result, value, attributes in zip(op.results, returned, signature.results, strict=True):
            value = _constrained(value, attributes, call)
            if len(returned) == 1:
                value = _constrained(value, call.annotations, call)
            result.replace_all_uses_with(value)
    if copy:
        source.erase()
    else:
        terminator.erase()  # the function is erased when all calls are inlined
    op.erase()
    return inner


def _calls_in(body: list[Any], scope: str | None) -> list[_Call]:
    """List the calls in ``body`` and its regions; calls without a scope get ``scope``."""
    calls = [_call(op, scope) for op in body if op.name in CALLEE]
    for op in body:
        if len(op.regions):
            around = scope if marked_scope(op) is None else None
            for inside in read_blocks(op):
                handed_on = around if inside.owner_name in CONTROL_FLOW else None
                calls += [_call(inner, handed_on) for inner in named([inside], CALLEE)]
    return calls


def _constrained(value: Any, attributes: dict[str, Any], call: _Call) -> Any:
    """Constrain ``value`` to the sharding in ``attributes``, if there is a sharding and the value is not a tile."""
    scope = call.scope or call.around
    if SHARDING not in attributes or scope == MANUAL:
        return value
    annotations = {name: attributes[name] for name in ANNOTATIONS if name in attributes}
    with call.op.location:
        result = make_custom_call(CONSTRAINT, value, value.type, annotations)
    if scope is not None:
        set_scope(operation(result.owner), scope)
    return result


def _symbols(attribute: Any) -> set[str]:
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return {attribute.value}
    if isinstance(attribute, ir.ArrayAttr):
        return {name for item in attribute for name in _symbols(item)}
    return set()
