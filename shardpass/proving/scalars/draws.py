"""Random numbers of ``stablehlo.rng``: the draws of device 0 represent those of the whole program.

Each draw is a number of its own that follows from nothing, so only distributions can be compared: the n-th draw of
device 0 is named as the n-th of the whole program, of the same bounds, and the draws of other devices are terms that
nothing else has. Devices that go on with numbers of their own, where the whole program has one array, are not proved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shardpass.ir.annotations import TO_FULL, TO_SHARD, custom_call_target
from shardpass.ir.walk import every_op, operation
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.rules.elementwise import key_of
from shardpass.proving.scalars.table import TERM
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value

# regions that a walk passes once for each time that the program does
_ONCE = ("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case", "builtin.module")


def draw(site: ScalarSite) -> list[Value]:
    owner = site.op.operation.parent
    if site.walk.in_region:
        raise Unknown("each device of a manual region draws numbers of its own")
    while owner is not None:
        if owner.name not in _ONCE:
            raise Unknown("it draws in a region that is walked once for many times that it runs")
        owner = owner.operation.parent
    if site.walk.is_whole and site.devices > 1 and _may_be_in_region(site):
        raise Unknown("it may lie in a manual region, where each device draws numbers of its own")
    number, shape = site.walk.next_draw(), site.shape()
    count = int(np.prod(shape, dtype=np.int64))
    low, high, _ = site.operands
    site.table.spend(TERM * count * site.devices)
    ids = np.empty((site.devices, count), np.int64)
    for device in range(1 if site.walk.is_whole else site.devices):
        bounds = int(low.ids.ravel()[device]), int(high.ids.ravel()[device])
        name = ("draw", number, key_of(site.op, site.element(), shape), device)
        ids[device] = [site.table.one((*name, place), bounds) for place in range(count)]
    if site.walk.is_whole:
        ids[1:] = ids[0]
    return [site.result(ids)]


def _may_be_in_region(site: ScalarSite) -> bool:
    """Return whether the op may lie in a manual region in GSPMD's form, whose ops are in no region of the module.

    A value of such a region leaves it by way of ``SPMDShardToFullShape``; one from outside enters only by the opposite.
    """
    functions = site.walk.functions.values()
    if not any(custom_call_target(op) == TO_SHARD for function in functions for op in every_op(function)):
        return False
    todo, seen = [operation(site.op)], set[Any]()
    while todo:
        op = todo.pop()
        if op in seen or custom_call_target(op) == TO_SHARD:
            continue
        seen.add(op)
        if op.name == "func.func":
            if op.attributes["sym_name"].value != "main":
                return True
            continue
        if custom_call_target(op) == TO_FULL:
            return True
        todo += [operation(use.owner) for result in op.results for use in result.uses]
        if len(op.results) == 0:  # the end of a region
            todo.append(operation(op.operation.parent))
    return False


RULES: dict[str, ScalarRule] = {"stablehlo.rng": draw}
