"""Recognize the combiner of a reducer's body, if it is a single op that collectives support.

XLA's CPU client runs the collectives of ``and`` and ``or`` on i1 alone.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import operation, splat_text
from shardpass.ops.tiles.masking import identity_text

COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or")


def combiner_of(op: Any, region: int = 0) -> str:
    """Return the name of the only op that the reducer applies to its two arguments; "" for any other body."""
    block = op.regions[region].blocks[0]
    name, operands = _only_op(block)
    return name if name in COMBINERS and set(operands) == set(block.arguments) else ""


def _only_op(block: Any) -> tuple[str, list[Any]]:
    """Return the name and operands of the op whose result a reducer's block returns; "" for several ops or none."""
    body = [operation(inner) for inner in block.operations]
    if len(body) != 2 or len(block.arguments) != 2 or list(body[1].operands) != list(body[0].results):
        return "", []
    return body[0].name.removeprefix("stablehlo."), list(body[0].operands)


def is_identity(value: Any, combiner: str) -> bool:
    """Return whether ``value`` is a constant scalar and the identity of ``combiner``."""
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
    """Return the reduction that joins partial results of a scatter; "" if its computation has no such reduction."""
    if len(op.results) != 1:
        return ""
    element = op.results[0].type.element_type
    name = "add" if _subtracts(op) else combiner_of(op)
    if not can_combine(name, str(element)) or identity_text(name, element) is None:
        return ""
    return name


def _subtracts(op: Any) -> bool:
    """Return whether the computation is ``old - update``: partial results that start from 0 can be added."""
    block = op.regions[0].blocks[0]
    return _only_op(block) == ("subtract", list(block.arguments))
