"""Recognises the combiner of a reducer's body, if the body is a single op that collectives support too.

XLA's CPU client runs the collectives of ``and`` and ``or`` on i1 alone.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import operation, splat_text
from shardpass.ops.tiles.masking import identity_text

COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or")


def combiner_of(op: Any) -> str:
    """Return the name of the only op that the reducer applies to its two arguments; "" for any other body."""
    block = op.regions[0].blocks[0]
    body = [operation(inner) for inner in block.operations]
    if len(body) != 2 or len(block.arguments) != 2:
        return ""
    first, last = body
    name = first.name.removeprefix("stablehlo.")
    if name not in COMBINERS or list(last.operands) != list(first.results):
        return ""
    return name if set(first.operands) == set(block.arguments) else ""


def is_identity(value: Any, combiner: str) -> bool:
    """Return whether ``value`` is a constant scalar that changes nothing under ``combiner``."""
    owner = value.owner
    if isinstance(owner, ir.Block) or operation(owner).name != "stablehlo.constant":
        return False
    element = value.type.element_type
    text, wanted = splat_text(operation(owner)), identity_text(combiner, element)
    if text is None or wanted is None:
        return False
    return _number(text) == _number(wanted)


def _number(text: str) -> object:
    """Parse a constant's text: decimals by value (a complex number is a pair), others as text."""
    parts = text.strip("()").split(",")
    try:
        return tuple(float(part) for part in parts)
    except ValueError:
        return text.lower()


def can_combine(combiner: str, element_type: str) -> bool:
    """Return whether XLA runs the collective: see the table of collectives and element types in the documents."""
    if combiner in ("and", "or"):
        return element_type == "i1"
    if element_type.startswith("complex"):
        return combiner in ("add", "multiply")
    return bool(combiner) and element_type != "i1"


def partial_combiner(op: Any) -> str:
    """Return the reduction that joins partial results of a scatter's update computation; "" where there is none."""
    if len(op.results) != 1:
        return ""
    element = op.results[0].type.element_type
    name = "add" if _subtracts(op) else combiner_of(op)
    if not can_combine(name, str(element)) or identity_text(name, element) is None:
        return ""
    return name


def _subtracts(op: Any) -> bool:
    """Return whether the computation is old - update: on the identity it yields minus the update, and parts are
    added.
    """
    block = op.regions[0].blocks[0]
    body = [operation(inner) for inner in block.operations]
    return (
        len(body) == 2
        and body[0].name == "stablehlo.subtract"
        and list(body[0].operands) == list(block.arguments)
        and list(body[1].operands) == list(body[0].results)
    )
