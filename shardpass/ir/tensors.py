"""Small helpers over the bindings: shapes, tensor types, attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir


def is_ranked(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def shape_of(value: Any) -> tuple[int, ...]:
    """Static shape of a ranked tensor value; () for a token or another type without a shape."""
    kind = value.type
    return tuple(kind.shape) if isinstance(kind, ir.RankedTensorType) else ()


def retype(kind: Any, shape: Sequence[int]) -> Any:
    """``kind`` with another shape; types other than ranked tensors stay."""
    if not isinstance(kind, ir.RankedTensorType):
        return kind
    return ir.RankedTensorType.get(list(shape), kind.element_type)


def ints(attribute: Any) -> tuple[int, ...]:
    """The integers of a dense array or dense elements attribute."""
    return tuple(int(x) for x in attribute)


def i64_array(values: Sequence[int]) -> Any:
    return ir.DenseI64ArrayAttr.get(list(values))


def dense_i64(rows: Any) -> Any:
    """``tensor<..xi64>`` elements, for replica groups and the like."""
    return ir.DenseElementsAttr.get(np.ascontiguousarray(rows, dtype=np.int64))


def operation(op: Any) -> Any:
    """The ``ir.Operation`` behind an op view."""
    return getattr(op, "operation", op)


def walk_blocks(op: Any) -> Any:
    """All blocks below ``op``, outermost first."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                yield from walk_blocks(operation(inner))
