"""A reduction that skips both its initial value and padding: see strategy 2 of ``families.reduce``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.blocks import copied_out
from shardpass.ops.tiles import positions as at


def flagged_reduce(op: Any, kinds: Sequence[Any], present: Any) -> list[Any]:
    """Build the reduce ``op`` of tiles, of result types ``kinds``, with the flag as last operand; returns no flag.

    ``present``: i1, whether an element counts. Built at the current insertion point and location.
    """
    count = len(kinds)
    inputs, inits = list(op.operands)[:count], list(op.operands)[count:]
    flag = at.i1()
    new = ir.Operation.create(
        "stablehlo.reduce",
        results=[*kinds, at.i1(kinds[0].shape)],
        operands=[*inputs, present, *inits, at.splat(flag, "false")],
        attributes={"dimensions": op.attributes["dimensions"]},
        regions=1,
    )
    old = op.regions[0].blocks[0]
    scalars = [a.type for a in old.arguments]
    block = new.regions[0].blocks.append(*scalars[:count], flag, *scalars[count:], flag)
    arguments = list(block.arguments)
    left, has_left, right, has_right = arguments[:count], arguments[count], arguments[count + 1 : -1], arguments[-1]
    with ir.InsertionPoint(block):
        joined = copied_out(old, [*left, *right])
        picked = [
            hlo.select(has_left, hlo.select(has_right, both, a), b)
            for both, a, b in zip(joined, left, right, strict=True)
        ]
        hlo.return_([*picked, hlo.or_(has_left, has_right)])
    return list(new.results)[:count]
