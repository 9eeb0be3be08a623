"""Replace constants whose elements are at the end of the file by constants that contain them.

MLIR may keep the elements of a constant beside the module: ``dense_resource<blob>``, and ``blob: "0x0400..."`` under
``dialect_resources``. XLA compiles no such constant, and MLIR's bindings do not hand the elements out. A constant is
therefore written by itself, and its elements are extracted from the output:

1. many elements of whole bytes: as bytecode, which has them in one piece, the only one of that many bytes. One copy of
   the elements is alive beside MLIR's own two.
2. others: as text, in hexadecimal, 4 bytes that say how the blob is aligned, then the elements in memory order.
   ``dense<"0x...">`` takes the elements in that form too.

Cost: O(constants), and O(bytes of the elements) where there are such constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import NO_RESOURCE
from shardpass.ir.locations import place_of

_BLOB = re.compile(r'"0x[0-9A-Fa-f]{8}([0-9A-Fa-f]*)",?$', re.MULTILINE)
_NAME = re.compile(r"dense_resource<(.*)> : ", re.DOTALL)
_WIDTHS = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2} | {f"{sign}i{8 * n}": n for sign in ("", "u") for n in (1, 2, 4, 8)}
_MANY = 65536  # bytes: more than all else that the bytecode of one constant has


def hold_resources(module: Any, constants: Iterable[Any]) -> None:
    """Put the elements of resources into ``constants``. Raises ShardpassError (SP234) for a missing resource."""
    values: dict[Any, Any] = {}  # several constants may name one blob
    for op in constants:
        value = _value(op)
        name = _NAME.match(str(value)) if value is not None else None
        if name is None:
            continue
        if value not in values:
            values[value] = _with_elements(value, op.results[0].type)
        if values[value] is None:
            raise NO_RESOURCE.error(place_of(op.location), name=name[1], type=op.results[0].type)
        op.attributes["value"] = values[value]


def _with_elements(value: Any, kind: Any) -> Any:
    """Return the resource ``value`` of type ``kind`` with its elements; None if they are absent or miscounted."""
    alone = ir.Module.create(ir.Location.unknown())
    alone.operation.attributes["value"] = value
    shape = tuple(kind.shape)
    count = _WIDTHS.get(str(kind.element_type), 0) * prod(shape)
    if count > _MANY and kind.encoding is None:
        pieces = _Pieces(count)
        alone.operation.write_bytecode(pieces)
        if pieces.piece is None:
            return None
        raw = np.frombuffer(pieces.piece, np.uint8)
        return ir.DenseElementsAttr.get(raw, type=kind.element_type, shape=shape)
    match = _BLOB.search(alone.operation.get_asm())
    try:
        return None if match is None else ir.Attribute.parse(f'dense<"0x{match[1]}"> : {kind}')
    except ir.MLIRError:
        return None


class _Pieces:
    """A file that keeps the written piece of ``count`` bytes, and drops all others."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.piece: bytes | None = None

    def write(self, piece: bytes) -> None:
        if len(piece) == self.count:
            self.piece = piece


def _value(op: Any) -> Any:
    """Return the resource attribute of a constant; None for constants that contain their elements."""
    try:
        value = op.attributes["value"]
    except TypeError:  # complex elements
        return None
    return None if hasattr(value, "is_splat") else value
