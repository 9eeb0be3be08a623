"""Merges equal collectives, and ops on their results that are then equal.

Common subexpression elimination leaves them: each collective has a channel of its own, and one with a reducer counts as
an op with effects. Two collectives of one block are equal where kind, operands, groups, dimensions, result types and
reducer are; a reducer is compared where it is one op. All devices run both or neither, so one value serves for both.

Example: ``a = all_reduce(x)``, ``b = all_reduce(x)``, ``c = tanh(a)``, ``d = tanh(b)``, ``e = all_gather(c)``,
``f = all_gather(d)``: b is a, thereby d is c, and thereby f is e.

State: ``order``, the places of a block's ops by their results (the bindings hash a value by what it is, an op by the
object that looks at it); the earlier of two equal ops stays. Complexity: O(collectives), and the uses of each value
that replaces another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shardpass.ir.annotations import AXES, CAUSE
from shardpass.ir.collectives import OPS
from shardpass.ir.effects import may_be_erased, may_be_moved
from shardpass.ir.walk import OpList, named, operation
from shardpass.ops.reducers import combiner_of

OWN = frozenset({"channel_handle", CAUSE, AXES})  # attributes in which equal ops may differ


def merge_equal(inside: OpList) -> list[Any]:
    """Replace collectives of a block by equal earlier ones; returns the ops without uses, users first."""
    dead: dict[int, Any] = {}
    order: dict[Any, int] = {}
    todo = [named([inside], OPS)]
    while todo:
        for equal in _equal(todo.pop()):
            if not order:
                order = {value: place for place, op in enumerate(inside.ops) for value in op.results}
            places = {order[op.results[0]]: op for op in equal}
            first, *others = sorted(places)
            results = list(places[first].results)
            for other in others:
                for one, same in zip(results, places[other].results, strict=True):
                    same.replace_all_uses_with(one)
                dead[other] = places[other]
            users = [operation(use.owner) for result in results for use in result.uses]
            behind = {order.get(user.results[0]): user for user in users if len(user.results)}
            todo.append([user for place, user in behind.items() if place is not None and place not in dead])
    return [dead[place] for place in sorted(dead, reverse=True)]


def _equal(ops: Iterable[Any]) -> list[list[Any]]:
    """Group equal ops."""
    groups: dict[Any, list[Any]] = {}
    for op in ops:
        key = _key(op)
        if key is not None:
            groups.setdefault(key, []).append(op)
    return [group for group in groups.values() if len(group) > 1]


def _key(op: Any) -> Any:
    """Return a key that is equal for equal ops; None for an op that is never equal to another."""
    name, reducer = op.name, ""
    if len(op.regions):
        reducer = combiner_of(op) if name in OPS and len(op.operands) == 1 else ""
        if not reducer:
            return None
    elif name not in OPS and not (may_be_moved(op, name) and may_be_erased(name)):
        return None
    attributes = frozenset(
        [(attribute, op.attributes[attribute]) for attribute in map(str, op.attributes) if attribute not in OWN]
    )
    return name, reducer, tuple(op.operands), tuple([result.type for result in op.results]), attributes
