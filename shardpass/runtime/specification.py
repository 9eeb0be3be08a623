"""Run the unpartitioned program on StableHLO's interpreter, as a reference.

XLA on one device is no judge where it breaks a program itself. The interpreter is asked where it can answer soon and
exactly. It is not asked where

1. the program has a manual region, which has no meaning on one device;
2. it has more than ``MOST`` steps of elements (``steps``), about a second, or a loop whose trips are unknown;
3. it calls code that the interpreter does not know (a custom call);
4. it has floats narrower than 32 bits: the interpreter rounds each partial sum to them, which no backend does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError, table_runtime
from shardpass.ir import annotations as names
from shardpass.ir.doors import LargeFile
from shardpass.ir.tensors import operation
from shardpass.ir.trip_counts import trip_count
from shardpass.ir.walk import BRANCHES
from shardpass.runtime.interpreter import own_copy, run_tiles
from shardpass.runtime.partitioned_signature import whole_signature
from shardpass.runtime.reference import strip
from shardpass.runtime.special import Reference
from shardpass.runtime.tiles import Array

NAME = "the unpartitioned program on one device, by StableHLO's interpreter"
MOST = 1_000_000
_LOOP, _CALL, _FOREIGN = "stablehlo.while", "func.call", "stablehlo.custom_call"


def specification_of(original: Any) -> Reference | None:
    """Return the reference; None in the cases 1 to 4, and for a large file.

    A run raises ShardpassError (SP540) where the interpreter stops.
    """
    if isinstance(original, LargeFile):
        return None
    copy = own_copy(original)
    with copy.context, ir.Location.unknown():
        try:
            strip(copy)
        except ShardpassError as error:
            if error.code != table_runtime.MANUAL_REGION.id:
                raise
            return None
        if steps(copy) > MOST:
            return None
        text = copy.operation.get_asm(binary=True)
    return Reference(NAME, lambda inputs: _interpreted(text, inputs))


def _interpreted(text: bytes, inputs: Sequence[Array]) -> list[Array]:
    module = own_copy(text)
    tiles = [[np.asarray(array)] for array in inputs]
    return [row[0] for row in run_tiles(module, whole_signature(module), tiles)]


def steps(module: Any) -> float:
    """Count the elements that the interpreter computes or reads, once for each op of a reducer; infinite in the cases
    2 to 4, and where a function calls itself.
    """
    functions = {op.attributes["sym_name"].value: operation(op) for op in module.body.operations}
    known: dict[str, float] = {}

    def of_function(name: str) -> float:
        if name not in known:
            known[name] = math.inf  # while it is counted: recursion
            known[name] = of_region(functions[name].regions[0])
        return known[name]

    def of_region(region: Any) -> float:
        return sum((of_op(operation(op)) for block in region.blocks for op in block.operations), 0.0)

    def of_op(op: Any) -> float:
        values = [*op.operands, *op.results]
        if op.name == _FOREIGN or any(_is_narrow(value.type) for value in values):
            return math.inf
        if op.name == _CALL:
            return of_function(op.attributes["callee"].value)
        inner = sum(of_region(region) for region in op.regions)
        if op.name == _LOOP:
            trips = trip_count(op)
            return math.inf if trips is None else inner * (trips + 1)
        if op.name in BRANCHES:
            return inner
        return _elements(op, values) * (1 + inner)

    return of_function(names.text(names.main_of(module).attributes["sym_name"]))


def _elements(op: Any, values: Sequence[Any]) -> float:
    sizes = [math.prod(value.type.shape) for value in values if isinstance(value.type, ir.RankedTensorType)]
    largest = max(sizes, default=0)
    if op.name == "stablehlo.dot_general":  # of sizes b*m*k, b*k*n and b*m*n
        return math.sqrt(math.prod(sizes))
    if op.name == "stablehlo.convolution":  # each element of the result reads the kernel of its feature, at the most
        return float(sizes[2] * sizes[1])
    if op.name in ("stablehlo.reduce_window", "stablehlo.select_and_scatter"):
        return float(largest * math.prod(map(int, op.attributes["window_dimensions"])))
    if op.name == "stablehlo.sort":
        return largest * math.log2(largest + 2)
    return float(largest)


def _is_narrow(kind: Any) -> bool:
    element = getattr(kind, "element_type", None)
    return isinstance(element, ir.FloatType) and element.width < 32
