"""Explicit axes: JAX hands the sharding of each type to XLA as a constraint, which nobody wrote and nobody can drop.

Problem: an array that is placed elsewhere gets other types downstream when the program is traced again. Written into
the module, beside the old types, the edit would send the array back at once.

So edits are looked for in the program without the constraints of types, whose drafts show what the new types make of
it. A finding is the text, traced again and compiled; of arguments whose text is not known, that program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from shardpass.advise.find.verify import figures, saves
from shardpass.advise.place.marks import numbered_ops
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.bodies import ANNOTATIONS
from shardpass.ir.context import copy_module, parse_module
from shardpass.ir.doors import Given
from shardpass.ir.locations import named
from shardpass.ir.walk import operation
from shardpass.ir.written import bytecode
from shardpass.report.explanation import Explanation

_CONSTRAINT = "sdy.sharding_constraint"


def untyped(data: Given, draft: Callable[[bytes], Explanation | None]) -> tuple[bytes | None, Explanation | None]:
    """Return the program without the constraints that JAX made of types, and its draft; None for the program where it
    made none, or where these themselves cost. ``draft``: compiles a program.
    """
    module = parse_module(data, trusted=True)
    free = without_types(module)
    if free is None:
        return None, None
    with module.context:
        typed, other = draft(bytecode(module)), draft(free)
    if typed is None or other is None or saves(figures(typed), figures(other)):
        return None, typed
    return free, other


def without_types(module: Any) -> bytes | None:
    """Return a copy of ``module``, and of its results, without the shardings of types; None where it has no types.

    JAX gives the constraint of a type the location of the op whose result it constrains; after a call, that of the
    call under the name of its primitive. What a user writes has a location of its own.
    """
    copy = copy_module(module)
    with copy.context:
        of_types = [op for _, op in numbered_ops(copy) if op.name == _CONSTRAINT and _is_of_a_type(op)]
        if not of_types:
            return None
        for op in of_types:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        signature = Signature(main_of(copy))
        for row in signature.results:
            for name in ANNOTATIONS:
                row.pop(name, None)
        signature.write()
        return bytecode(copy)


def _is_of_a_type(constraint: Any) -> bool:
    maker, (name, place) = constraint.operands[0].owner, named(constraint.location)
    if not name or isinstance(maker, ir.Block):
        return False
    if operation(maker).name == "func.call":  # its name is that of the primitive, with the function's: jit(relu)
        own, where = named(maker.location)
        return bool(where == place) and own.rpartition("(")[0] == name
    return bool(maker.location == constraint.location)
