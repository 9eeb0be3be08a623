"""Sums over devices after a loop, moved into it: each trip then has tiles of the values that the whole program carries.

A loop may add up a summand on each device, and the devices' sums are added once, after it. What is carried is then no
tile of anything in the whole program. As a sum over devices is linear, the program computes the same if the array that
enters is summed, each trip sums what it adds, and nothing is left to do after the loop:

    AR(a + g1 + g2) = (AR(a) + AR(g1)) + AR(g2)

Cases: the carried value is read by one addition or subtraction alone, whose result is returned in its place; the
condition does not read it; after the loop an all_reduce that adds is its only reader. That all devices run the same
trips is what the rule of loops with collectives asks for.

Sums are then added in another order, as verdicts say that they may be.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.context import copy_module
from shardpass.ir.walk import every_op, operation
from shardpass.proving.relations.laws import NEGATED_SUM, Laws

LOOP, SUM = "stablehlo.while", "stablehlo.all_reduce"
ADDING = ("stablehlo.add", "stablehlo.subtract")


def summed_inside(module: Any, laws: Laws | None = None) -> Any:
    """Return a copy of ``module`` with these sums moved into their loops, or ``module`` itself if it has none."""
    laws = laws or Laws()
    if not any(_sums(op, laws.strict) for op in every_op(module.operation) if op.name == LOOP):
        return module
    made = copy_module(module)
    with made.context:
        for loop in [op for op in every_op(made.operation) if op.name == LOOP]:
            for place, added, total in _sums(operation(loop), laws.strict):
                if _is_inexact(added):
                    laws.allows(NEGATED_SUM, added)
                _move(operation(loop), place, added, total)
    return made


def _is_inexact(added: Any) -> bool:
    """Return whether ``added`` subtracts floats, so that moving the sum may change the sign of a zero."""
    return added.name == "stablehlo.subtract" and isinstance(added.operands[0].type.element_type, ir.FloatType)


def _sums(loop: Any, strict: bool) -> list[tuple[int, Any, Any]]:
    """List the carried values of ``loop`` whose all_reduce can move into the loop.

    Each row is (the position of the carried value, the addition in the body, the all_reduce after the loop).
    ``strict``: leave out subtractions of floats.
    """
    condition, body = (region.blocks[0] for region in loop.regions)
    returned = operation(list(body.operations)[-1])
    out = []
    for place, result in enumerate(loop.results):
        total, added = _only_user(result), _only_user(body.arguments[place])
        if total is None or added is None or list(condition.arguments[place].uses):
            continue
        if total.name != SUM or not _adds(total) or total.block != loop.block or added.name not in ADDING:
            continue
        if strict and _is_inexact(added):
            continue
        if (
            added.block == body
            and _only_user(added.results[0]) == returned
            and returned.operands[place] == added.results[0]
        ):
            out.append((place, added, total))
    return out


def _only_user(value: Any) -> Any:
    """Return the only op that reads ``value``; None if there is none, or several."""
    users = [operation(use.owner) for use in value.uses]
    return users[0] if len(users) == 1 else None


def _adds(total: Any) -> bool:
    """Return whether an all_reduce of one array adds."""
    names = [operation(op).name for op in total.regions[0].blocks[0].operations]
    return len(total.operands) == 1 and names == ["stablehlo.add", "stablehlo.return"]


def _move(loop: Any, place: int, added: Any, total: Any) -> None:
    carried = loop.regions[1].blocks[0].arguments[place]
    side = next(index for index, value in enumerate(added.operands) if value != carried)
    for op, index in ((loop, place), (added, side)):
        with ir.InsertionPoint(op):
            inner = total.clone()
        inner.operands[0] = op.operands[index]
        op.operands[index] = inner.results[0]
    total.results[0].replace_all_uses_with(loop.results[place])
    total.erase()
