"""Small helpers over the bindings: shapes, tensor types, attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Place
from shardpass.diagnostics.table_passes import UNREADABLE_ATTRIBUTE
from shardpass.ir.integers import integer
from shardpass.ir.walk import every_op as every_op
from shardpass.ir.walk import inputs_of as inputs_of
from shardpass.ir.walk import operation as operation
from shardpass.ir.walk import walk_blocks as walk_blocks

SHOWN = 120  # characters of attributes


def is_ranked(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the static shape of a ranked tensor value; () for a token or another type without a shape."""
    kind = value.type
    return tuple(kind.shape) if isinstance(kind, ir.RankedTensorType) else ()


def retype(kind: Any, shape: Sequence[int]) -> Any:
    """Return ``kind`` with another shape; types other than ranked tensors are returned unchanged."""
    if not isinstance(kind, ir.RankedTensorType):
        return kind
    return ir.RankedTensorType.get(list(shape), kind.element_type)


def ints(attribute: Any) -> tuple[int, ...]:
    """Return the integers of a dense array or dense elements attribute."""
    return tuple(int(x) for x in attribute)


def ints_or(op: Any, name: str, count: int, default: int = 1) -> tuple[int, ...]:
    """Return the integers of an op's attribute; ``count`` times ``default`` where the op has no such attribute."""
    return ints(op.attributes[name]) if name in op.attributes else (default,) * count


def entries(dictionary: Any, place: Place = NOWHERE) -> dict[str, Any]:
    """Return the attributes of a dictionary attribute by name.

    ``NamedAttribute.attr`` ends the process where the bindings know no class for a value (jaxlib 0.10, 0.12), and a
    look-up by name raises a TypeError. Raises ShardpassError SP245 there.
    """
    known, attributes = ir.DictAttr(dictionary), {}
    for i in range(len(known)):
        name = known[i].name
        try:
            attributes[name] = known[name]
        except TypeError:
            row = str(known)
            row = row if len(row) <= SHOWN else f"{row[:SHOWN]}..."
            raise UNREADABLE_ATTRIBUTE.error(place, what=f"{name} in {row}") from None
    return attributes


def enum_word(attribute: Any) -> str:
    """Return the word in an enum attribute: LT in ``#stablehlo<comparison_direction LT>``; also for CHLO."""
    return str(attribute).rstrip(">").split()[-1]


def i64_array(values: Sequence[int]) -> Any:
    return ir.DenseI64ArrayAttr.get(list(values))


def dense_i64(rows: Any) -> Any:
    """Make ``tensor<..xi64>`` elements, for replica groups and the like."""
    return ir.DenseElementsAttr.get(np.ascontiguousarray(rows, dtype=np.int64))


def splat_text(op: Any) -> str | None:
    """Return the element of a splat ``stablehlo.constant`` as MLIR writes it; None for several elements.

    The bindings cannot hand out attributes of every element type (complex, jaxlib 0.10.2); those are read off the op.
    """
    try:
        value = op.attributes["value"]
    except TypeError:
        text = op.get_asm(large_elements_limit=4, use_local_scope=True)
    else:
        text = str(value) if getattr(value, "is_splat", False) else ""  # dense_resource<...> has no such attribute
    match = re.search(r"dense<([^\[\"<>]*)>", text)
    return match[1] if match and match[1] else None


def splat(kind: Any, element: str | int) -> Any:
    """Build a splat ``stablehlo.constant`` of type ``kind``; ``element``: an integer, or as MLIR writes it.

    Built at the current insertion point; elements other than integers from text, as the typed builder of jaxlib 0.10
    takes no complex elements. Raises OutOfRange where ``kind`` does not hold the integer.
    """
    if isinstance(element, int):
        return integer(kind, element)
    op = ir.Operation.parse(f'%0 = "stablehlo.constant"() {{value = dense<{element}> : {kind}}} : () -> {kind}')
    ir.InsertionPoint.current.insert(op)
    op.location = ir.Location.current
    return op.results[0]
