"""Faults that a partitioner might make, seeded in a program of one device: one change each, and a valid module.

Each kind of fault is a generator of changes of one op. A change works in place on a copy of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.annotations import main_of
from shardpass.ir.context import copy_module, is_valid
from shardpass.ir.tensors import dense_i64, enum_word, every_op, i64_array, ints, operation

COLLECTIVES = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast")
REDUCERS = {"add": "maximum", "maximum": "minimum", "minimum": "add", "multiply": "add", "or": "and", "and": "or"}
NEIGHBOURS = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}

Change = Callable[[Any, Any], None]  # the op in the copy, and the copy


@dataclass(frozen=True, slots=True)
class Fault:
    """``index``: of the op in the order of the walk; ``what``: the kind of change, in words."""

    what: str
    op: str
    index: int
    change: Change

    def made(self, module: Any) -> Any | None:
        """A copy of ``module`` with the fault; None where that is no valid module."""
        copy = copy_module(module)
        with copy.context, ir.Location.unknown():
            op = ops_of(copy)[self.index]
            try:
                self.change(op, copy)
            except (ValueError, TypeError, KeyError, StopIteration, OverflowError, ir.MLIRError):
                return None
        return copy if is_valid(copy) else None


def ops_of(module: Any) -> list[Any]:
    return [op for op in every_op(operation(main_of(module))) if op.name not in ("func.func", "func.return")]


def faults(module: Any) -> Iterator[Fault]:
    """All faults of all kinds, in the order of the program."""
    with module.context:
        for index, op in enumerate(ops_of(module)):
            name = op.name.split(".")[-1]
            for what, change in _changes(op, name):
                yield Fault(what, op.name, index, change)


def _changes(op: Any, name: str) -> Iterator[tuple[str, Change]]:
    if name in COLLECTIVES:
        if len(op.results) == 1 and op.results[0].type == op.operands[0].type:
            yield "a collective dropped", _dropped
        if "replica_groups" in op.attributes and np.array(op.attributes["replica_groups"]).size > 2:
            yield "wrong groups", _other_groups
            yield "groups in another order", _other_order
        if name == "collective_permute" and len(np.array(op.attributes["source_target_pairs"])) > 1:
            yield "permute pairs swapped", _swapped_pairs
    if name in REDUCERS and op.operation.parent is not None and op.operation.parent.name in _REDUCTIONS:
        yield "wrong reducer", _renamed(REDUCERS[name])
    if name == "constant":
        yield from _constants(op)
    if name == "slice":
        yield "window off by one", _later_slice
    if name == "pad":
        yield "padding off by one", _other_padding
    if name == "select":
        yield "mask missing", _unmasked
    if name == "compare":
        yield "comparison off by one", _neighbour
    if name in ("subtract", "divide", "remainder", "power", "dot_general", "concatenate") and len(op.operands) > 1:
        yield "operands exchanged", _exchanged
    if name == "iota" and len(op.results[0].type.shape) > 1:
        yield "iota along another dimension", _other_iota
    if op.operands and name not in ("return", "constant"):
        yield "operand of another copy", _other_operand


_REDUCTIONS = ("stablehlo.reduce", "stablehlo.all_reduce", "stablehlo.reduce_scatter", "stablehlo.scatter",
               "stablehlo.reduce_window")  # fmt: skip


def _dropped(op: Any, module: Any) -> None:
    del module
    op.results[0].replace_all_uses_with(op.operands[0])
    op.operation.erase()


def _other_groups(op: Any, module: Any) -> None:
    """The first and the last device exchange their places, or, in one group, there are two groups."""
    del module
    groups = np.array(op.attributes["replica_groups"], np.int64)
    if len(groups) == 1:
        raise ValueError("one group")
    groups[0, 0], groups[-1, 0] = groups[-1, 0], groups[0, 0]
    if len(groups[0]) > 1:
        groups[0, -1], groups[-1, 0] = groups[-1, 0], groups[0, -1]
    op.attributes["replica_groups"] = dense_i64(groups)


def _other_order(op: Any, module: Any) -> None:
    del module
    groups = np.array(op.attributes["replica_groups"], np.int64)
    op.attributes["replica_groups"] = dense_i64(np.roll(groups, 1, axis=1))


def _swapped_pairs(op: Any, module: Any) -> None:
    del module
    pairs = np.array(op.attributes["source_target_pairs"], np.int64)
    pairs[0, 1], pairs[1, 1] = pairs[1, 1], pairs[0, 1]
    op.attributes["source_target_pairs"] = dense_i64(pairs)


def _renamed(name: str) -> Change:
    def change(op: Any, module: Any) -> None:
        del module
        with ir.InsertionPoint(op):
            other = ir.Operation.create(f"stablehlo.{name}", [r.type for r in op.results], list(op.operands))
        op.results[0].replace_all_uses_with(other.results[0])
        op.operation.erase()

    return change


def _constants(op: Any) -> Iterator[tuple[str, Change]]:
    kind = op.results[0].type
    try:
        value = op.attributes["value"]
    except TypeError:  # the bindings hand out no complex elements
        return
    integer = isinstance(kind.element_type, ir.IntegerType) and kind.element_type.width > 1
    if getattr(value, "is_splat", False):
        if integer:
            yield "offset or bound one more", _splat_plus(1)
            yield "offset or bound one less", _splat_plus(-1)
        elif isinstance(kind.element_type, ir.F32Type):
            yield "wrong identity or constant", _splat_plus(1)
    elif integer:
        yield "wrong shard of a constant", _rolled


def _splat_plus(by: int) -> Change:
    def change(op: Any, module: Any) -> None:
        del module
        array = np.array(op.attributes["value"])
        with np.errstate(all="ignore"):
            other = np.where(np.isfinite(array), array + by, by).astype(array.dtype)
        kind = op.results[0].type
        op.attributes["value"] = ir.DenseElementsAttr.get(
            np.ascontiguousarray(other), type=kind.element_type, shape=list(kind.shape)
        )

    return change


def _rolled(op: Any, module: Any) -> None:
    del module
    kind = op.results[0].type
    array = np.roll(np.array(op.attributes["value"]).ravel(), 1).reshape(kind.shape)
    op.attributes["value"] = ir.DenseElementsAttr.get(
        np.ascontiguousarray(array), type=kind.element_type, shape=list(kind.shape)
    )


def _later_slice(op: Any, module: Any) -> None:
    """One position later, or earlier, along the first dimension where there is room."""
    del module
    start, limit = (list(ints(op.attributes[n])) for n in ("start_indices", "limit_indices"))
    for dim, size in enumerate(op.operands[0].type.shape):
        for by in (1, -1):
            if start[dim] + by >= 0 and limit[dim] + by <= size:
                start[dim] += by
                limit[dim] += by
                op.attributes["start_indices"], op.attributes["limit_indices"] = i64_array(start), i64_array(limit)
                return
    raise ValueError("no room")


def _other_padding(op: Any, module: Any) -> None:
    del module
    low, high = (list(ints(op.attributes[n])) for n in ("edge_padding_low", "edge_padding_high"))
    dim = next(d for d in range(len(low)) if low[d] or high[d])
    low[dim], high[dim] = low[dim] + 1, high[dim] - 1
    op.attributes["edge_padding_low"], op.attributes["edge_padding_high"] = i64_array(low), i64_array(high)


def _unmasked(op: Any, module: Any) -> None:
    del module
    op.results[0].replace_all_uses_with(op.operands[1])
    op.operation.erase()


def _neighbour(op: Any, module: Any) -> None:
    del module
    other = NEIGHBOURS[enum_word(op.attributes["comparison_direction"])]
    op.attributes["comparison_direction"] = ir.Attribute.parse(f"#stablehlo<comparison_direction {other}>")


def _exchanged(op: Any, module: Any) -> None:
    del module
    first, second = op.operands[0], op.operands[1]
    if first == second or first.type != second.type:
        raise ValueError("nothing to exchange")
    op.operation.operands[0], op.operation.operands[1] = second, first


def _other_iota(op: Any, module: Any) -> None:
    del module
    rank = len(op.results[0].type.shape)
    dim = (ir.IntegerAttr(op.attributes["iota_dimension"]).value + 1) % rank
    op.attributes["iota_dimension"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)


def _other_operand(op: Any, module: Any) -> None:
    """The last value of the same type before it in its block, in the place of its first operand."""
    del module
    block = op.operation.block
    own = op.operands[0]
    candidates = [a for a in block.arguments if a.type == own.type and a != own]
    for other in map(operation, block.operations):
        if other == op.operation:
            break
        candidates += [r for r in other.results if r.type == own.type and r != own]
    if not candidates:
        raise ValueError("no other value")
    op.operation.operands[0] = candidates[-1]
