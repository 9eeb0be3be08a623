"""Explicit axes: JAX hands the sharding of each type to XLA as a constraint, which nobody wrote and nobody can drop.

Problem: an array that is placed elsewhere gets other types downstream when the program is traced again. Written into
the module, beside the old types, the edit would send the array back at once.

So edits are looked for in the program without the constraints of types, whose drafts show what the new types make of
it. A finding is the text, traced again and compiled; of arguments whose text is not known, that program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardpass.advise.find.verify import figures, saves
from shardpass.advise.place.marks import numbered_ops
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.bodies import ANNOTATIONS
from shardpass.ir.context import copy_module, parse_module
from shardpass.ir.doors import Given
from shardpass.ir.locations import named
from shardpass.ir.written import bytecode
from shardpass.report.explanation import Explanation

_CONSTRAINT = "sdy.sharding_constraint"
_WRITTEN = ("sharding_constraint", "reshard", "device_put", "shard_map", "")  # JAX's names of what users write
_COMPUTES = {"add", "convert_element_type", "div", "dot_general", "max", "mul", "neg", "reduce_sum", "sub", "transpose"}


def untyped(data: Given, draft: Callable[[bytes], Explanation | None]) -> bytes | None:
    """Return the program without the constraints that JAX made of types; None where it made none, or where these
    themselves cost. ``draft``: compiles a program.
    """
    module = parse_module(data, trusted=True)
    free = without_types(module)
    if free is None:
        return None
    with module.context:
        drafts = [draft(bytecode(module)), draft(free)]
    before, after = (None if one is None else figures(one) for one in drafts)
    return None if before is None or after is None or saves(before, after) else free


def without_types(module: Any) -> bytes | None:
    """Return a copy of ``module``, and of its results, without the shardings of types; None where it has no types."""
    copy = copy_module(module)
    with copy.context:
        names = [(op, _name(op)) for _, op in numbered_ops(copy) if op.name == _CONSTRAINT]
        if not any(name in _COMPUTES for _, name in names):
            return None
        for op, name in names:
            if name not in _WRITTEN and "(" not in name:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
        signature = Signature(main_of(copy))
        for row in signature.results:
            for name in ANNOTATIONS:
                row.pop(name, None)
        signature.write()
        return bytecode(copy)


def _name(op: Any) -> str:
    """Return JAX's name of an op: of a constraint that it made of a type, the name of what made the value."""
    return named(op.location)[0].rpartition("/")[2]
