"""What can be partitioned at all: what the rest relies on not to meet is refused here.

* Before anything changes (``admit``): types of unknown size (a dynamic dimension, no rank), ops that take a shape or a
  bound as an operand, types that XLA runs no program with, and arguments and results of ``main`` that are no arrays.
  (Inside of ``main``, tokens order effects and tuples hold results together.)
* Once manual regions are known (``admit_ops``): ops that mean something on one device alone, and ops of dialects that
  XLA does not know.

Each is named with its op and its place; all are reported at once. O(ops).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import Code, Diagnostic, ShardpassError
from shardpass.diagnostics.table_passes import (
    DYNAMIC_OP,
    DYNAMIC_SHAPE,
    FOREIGN_OP,
    NOT_AN_ARRAY,
    OUTSIDE_REGIONS,
    STRANGE_TYPE,
    TRANSFER,
)
from shardpass.element_types import element_type
from shardpass.ir.collectives import OPS
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import operation, walk_blocks
from shardpass.ops.families.replicated import DYNAMIC
from shardpass.ops.registry import find
from shardpass.program.manual_regions import marked_scope

DYNAMIC_OPS = frozenset(f"stablehlo.{name}" for name in DYNAMIC)
TOKENS = ("!stablehlo.token", "!mhlo.token")


def admit(module: Any, main: Any) -> None:
    """Refuses the types and ops of ``module`` that cannot be partitioned.

    Raises ShardpassError: SP211 shapes that are not static, SP223 ops of dynamic shapes, SP224 types that XLA does not
    run, SP225 arguments and results of ``main`` that are no arrays.
    """
    problems = list(_Types().problems(module))
    problems += _borders(main)
    if problems:
        raise ShardpassError(*problems)


class _Types:
    """Types that were looked at before: a program has few."""

    def __init__(self) -> None:
        self.known: dict[Any, Code | None] = {}

    def problems(self, module: Any) -> Iterator[Diagnostic]:
        for block in walk_blocks(module.operation):
            for op in map(operation, block.operations):
                if op.name in DYNAMIC_OPS:
                    yield DYNAMIC_OP.at(place_of(op.location), op=op.name)
                    continue
                yield from self._of(op.results, op.name)
            yield from self._of(block.arguments, "an argument")

    def _of(self, values: Any, name: str) -> Iterator[Diagnostic]:
        for value in values:
            kind = value.type
            if kind not in self.known:
                self.known[kind] = fault(kind)
            code = self.known[kind]
            if code is not None:
                yield code.at(place_of(value.location), op=name, type=kind)


def fault(kind: Any) -> Code | None:
    """Why a value of type ``kind`` cannot be in a program; None where it can."""
    if isinstance(kind, ir.TupleType):
        return next(filter(None, (fault(kind.get_type(i)) for i in range(kind.num_types))), None)
    if isinstance(kind, ir.UnrankedTensorType):
        return DYNAMIC_SHAPE
    if isinstance(kind, ir.RankedTensorType):
        if not kind.has_static_shape:
            return DYNAMIC_SHAPE
        return None if _is_known(kind.element_type) else STRANGE_TYPE
    return None if str(kind) in TOKENS else STRANGE_TYPE


def _is_known(element: Any) -> bool:
    try:
        element_type(str(element))
    except KeyError:
        return False
    return True


def _borders(main: Any) -> Iterator[Diagnostic]:
    """Arguments and results of ``main`` that are no arrays, though its ops may have such values."""
    kind = ir.TypeAttr(main.attributes["function_type"]).value
    for role, types in (("argument", kind.inputs), ("result", kind.results)):
        for index, of in enumerate(types):
            if not isinstance(of, ir.RankedTensorType) and fault(of) is None:
                yield NOT_AN_ARRAY.at(place_of(main.location), where=f"{role} {index}", type=of)


# With a channel a collective is over partitions, and a program of whole arrays has none; without, over replicas.
OF_ONE_DEVICE = OPS | {"stablehlo.partition_id"}
TRANSFERS = ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")


# Dialects whose ops XLA takes; of SDY nothing is left that import knows.
DIALECTS = frozenset(("stablehlo", "chlo", "mhlo", "func", "arith", "tensor"))


def admit_ops(main: Any, devices: int) -> None:
    """Refuses ops of ``main`` that XLA does not take, or that have no meaning on whole arrays.

    Raises ShardpassError: SP228 ops of other dialects, and where there is more than one device SP226 device ids and
    collectives outside of manual regions, SP227 transfers to the host.
    """
    problems = []
    for block in walk_blocks(operation(main)):
        for op in map(operation, block.operations):
            if op.name.partition(".")[0] not in DIALECTS and find(op.name) is None:
                problems.append(FOREIGN_OP.at(place_of(op.location), op=op.name))
            elif devices == 1:
                continue
            elif op.name in TRANSFERS:
                problems.append(TRANSFER.at(place_of(op.location), op=op.name))
            elif op.name in OF_ONE_DEVICE and marked_scope(op) is None and _over_partitions(op):
                problems.append(OUTSIDE_REGIONS.at(place_of(op.location), op=op.name))
    if problems:
        raise ShardpassError(*problems)


def _over_partitions(op: Any) -> bool:
    """Whether ``op`` tells devices apart; an id that nothing uses does not."""
    if op.name == "stablehlo.partition_id":
        return next(iter(op.results[0].uses), None) is not None
    return "channel_handle" in op.attributes
