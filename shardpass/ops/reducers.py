"""What a reducer's body is: a plain combiner, which collectives know too, or one of the user's own.

XLA's CPU client runs and/or over devices on i1 alone.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.tensors import operation, splat_text
from shardpass.ops.tiles.masking import identity_text

COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or")


def combiner_of(op: Any) -> str:
    """The name of the one op that the reducer applies to its two arguments; "" for any other body."""
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
    """Whether ``value`` is a constant scalar that changes nothing under ``combiner``."""
    owner = value.owner
    if isinstance(owner, ir.Block) or operation(owner).name != "stablehlo.constant":
        return False
    element = value.type.element_type
    said, wanted = splat_text(operation(owner)), identity_text(combiner, element)
    if said is None or wanted is None:
        return False
    return _number(said) == _number(wanted)


def _number(text: str) -> object:
    """What a constant's text says: decimals by value (a complex number is a pair), bits and truth values as written."""
    parts = text.strip("()").split(",")
    try:
        return tuple(float(part) for part in parts)
    except ValueError:
        return text.lower()


def can_combine(combiner: str, element_type: str) -> bool:
    """Whether the collective runs: see the table of collectives and element types in the documents."""
    if combiner in ("and", "or"):
        return element_type == "i1"
    if element_type.startswith("complex"):
        return combiner in ("add", "multiply")
    return bool(combiner) and element_type != "i1"
