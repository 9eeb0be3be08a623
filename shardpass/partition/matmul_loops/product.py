"""Read a dot_general of the module for the cost model ``planning.price.loops``."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints, shape_of
from shardpass.planning.price.loops import Product


def product_of(op: Any) -> Product:
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = (shape_of(operand) for operand in op.operands)
    return Product(
        (left, right),
        shape_of(op.results[0]),
        (ints(numbers.lhs_batching_dimensions), ints(numbers.rhs_batching_dimensions)),
        (ints(numbers.lhs_contracting_dimensions), ints(numbers.rhs_contracting_dimensions)),
    )
