"""Constants whose elements stand at the end of the file become constants that hold them.

MLIR may keep the elements of a constant beside the module: ``dense_resource<blob>``, and ``blob: "0x0400..."`` under
``dialect_resources``. XLA compiles no such constant, and MLIR's bindings do not hand the elements out, so they are read
off the printed module: in hexadecimal, 4 bytes that say how the blob is aligned, then the elements in memory order.
``dense<"0x...">`` takes the elements in that form too.

Cost: nothing where no constant is such a one but a look at each; else O(printed size of the module).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import NO_RESOURCE
from shardpass.ir.locations import place_of

_BLOB = re.compile(r'^\s*([\w.$-]+|"(?:[^"\\]|\\.)*"): "0x[0-9A-Fa-f]{8}([0-9A-Fa-f]*)",?$', re.MULTILINE)
_NAME = re.compile(r"dense_resource<(.*)> : ", re.DOTALL)


def hold_resources(module: Any, constants: Iterable[Any]) -> None:
    """Gives each of ``constants`` its elements. Raises ShardpassError (SP234) where the module lacks them."""
    blobs: dict[str, str] | None = None
    for op in constants:
        value = _value(op)
        name = _NAME.match(str(value)) if value is not None else None
        if name is None:
            continue
        if blobs is None:
            blobs = dict(_BLOB.findall(module.operation.get_asm(large_elements_limit=1)))
        kind = op.results[0].type
        try:
            op.attributes["value"] = ir.Attribute.parse(f'dense<"0x{blobs[name[1]]}"> : {kind}')
        except (KeyError, ir.MLIRError):
            raise NO_RESOURCE.error(place_of(op.location), name=name[1], type=kind) from None


def _value(op: Any) -> Any:
    """The elements, if these are of no class that the bindings know; None of every other constant."""
    try:
        value = op.attributes["value"]
    except TypeError:  # complex elements
        return None
    return None if hasattr(value, "is_splat") else value
