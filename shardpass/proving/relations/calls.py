"""Find the functions that a module's functions call.

The walks of a proof enter a call each time that they meet it, so functions that call one another in a circle are
refused before. A question about what an op does, such as "does it meet other devices", is asked of the functions that
it calls, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from shardpass.diagnostics.table_passes import RECURSION
from shardpass.ir.collectives import OPS
from shardpass.ir.locations import place_of
from shardpass.ir.walk import every_op, operation

# ops that may wait for other devices, or run forever
WAITING = frozenset((*OPS, "stablehlo.while", "stablehlo.if", "stablehlo.case"))
CALLEE = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def callee(op: Any) -> str:
    """Return the name of the function that ``op`` calls; "" where it calls none."""
    name = CALLEE.get(op.name)
    return str(op.attributes[name].value) if name else ""


def functions_of(module: Any) -> dict[str, Any]:
    """Return the functions of ``module`` by name."""
    return {f.attributes["sym_name"].value: operation(f) for f in module.body.operations if "sym_name" in f.attributes}


def reached(op: Any, functions: Mapping[str, Any]) -> Iterator[Any]:
    """Yield ``op``, the ops in its regions, and those of each function that these call, once."""
    entered: set[str] = set()
    todo = [op]
    while todo:
        for inner in map(operation, every_op(todo.pop())):
            yield inner
            name = callee(inner)
            if name in functions and name not in entered:
                entered.add(name)
                todo.append(functions[name])


def waiting_in(op: Any, functions: Mapping[str, Any]) -> list[Any]:
    """Return the ops in ``op``, including those that it calls, that may wait for other devices or run forever."""
    if op.name not in CALLEE and op.name not in WAITING and not len(op.regions):
        return []
    return [inner for inner in reached(op, functions) if inner.name in WAITING]


def meets(op: Any, functions: Mapping[str, Any], names: Collection[str]) -> bool:
    """Return whether ``op``, or what it calls, has an op called one of ``names``."""
    return any(inner.name in names for inner in reached(op, functions))


def noted_in(functions: Mapping[str, Any], names: Collection[str]) -> dict[str, list[Any]]:
    """Return the ops of each function that call functions, or are called one of ``names``."""
    kept = {*names, *CALLEE}
    return {name: [op for op in every_op(function) if op.name in kept] for name, function in functions.items()}


def from_main(noted: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return the ops of ``noted`` that main reaches."""
    result: list[Any] = []
    names = ["main"]
    for name in names:
        result += noted.get(name, ())
        names += {called for op in noted.get(name, ()) if (called := callee(op)) and called not in names}
    return result


def refuse_circles(noted: Mapping[str, Sequence[Any]]) -> None:
    """Raise ShardpassError (SP205) where functions call one another in a circle."""
    calls = {name: {called: op for op in ops if (called := callee(op)) in noted} for name, ops in noted.items()}
    done: set[str] = set()
    for start in noted:
        path: list[str] = []
        todo = [(start, False)]
        while todo:
            name, leaving = todo.pop()
            if leaving:
                done.add(path.pop())
            elif name in path:
                circle = [*path[path.index(name) :], name]
                at = calls[path[-1]][name]
                raise RECURSION.error(place_of(at.location), circle=" -> ".join(f"@{one}" for one in circle))
            elif name not in done:
                path.append(name)
                todo += [(name, True), *((called, False) for called in calls[name])]
