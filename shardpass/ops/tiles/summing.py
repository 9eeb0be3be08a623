"""A sum over dimensions, built at the current insertion point and location."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.reductions import write_reducer
from shardpass.ir.tensors import i64_array, retype, shape_of, splat


def zero_text(element: Any) -> str:
    """Return zero, as MLIR writes it in a constant of type ``element``."""
    if isinstance(element, ir.ComplexType):
        return "(0.0, 0.0)"
    if isinstance(element, ir.IntegerType):
        return "false" if element.width == 1 else "0"
    return "0.0"


def reduced_sum(value: Any, dims: Sequence[int]) -> Any:
    """Sum ``value`` over ``dims``: a reduce from zero."""
    return reduced(value, dims, splat(retype(value.type, ()), zero_text(value.type.element_type)), "add")


def reduced(value: Any, dims: Sequence[int], initial: Any, combiner: str) -> Any:
    """Reduce ``value`` over ``dims`` by the op ``combiner``, starting from the scalar ``initial``."""
    kept = [n for d, n in enumerate(shape_of(value)) if d not in dims]
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[retype(value.type, kept)],
        operands=[value, initial],
        attributes={"dimensions": i64_array(dims)},
        regions=1,
    )
    write_reducer(op.regions[0], initial.type, combiner)
    return op.results[0]
