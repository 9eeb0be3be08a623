"""Reject programs that cannot be partitioned, before a later step meets an unsupported op or type.

Problem. The other passes rely on static shapes, on arrays at the borders of ``main``, and on ops that mean the same on
whole arrays as on tiles. Each op that breaks this is named with its place, and all are reported at once, so that a user
mends a module in one round.

There are two checks, since the second needs to know the manual regions, which earlier steps of import find:

1. ``refuse_types``, before anything changes: types of unknown size (``tensor<?xf32>``, ``tensor<*xf32>``), ops that
   take a shape or a bound as an operand (``dynamic_reshape``), types that XLA runs no program with (``tensor<4xi17>``),
   and arguments and results of ``main`` that are no arrays. Inside of ``main`` tokens order effects and tuples group
   results, and both are accepted.
2. ``refuse_ops``, once manual regions are marked: ops of dialects that XLA does not know (``math.sin``), notes of XLA's
   own partitioner (``@_SPMDInternalOp_RotateRight``), and, on more than one device and outside of manual regions, ops
   that mean something on one device alone (``partition_id``, a collective with a channel, ``infeed``). A collective
   without a channel works over replicas, of which there is one: groups that name others are refused everywhere.

Cost: O(ops). Types are judged once each, since a program has few; where all are fine, no place is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import Code, Diagnostic, ShardpassError
from shardpass.diagnostics.table_passes import (
    DYNAMIC_OP,
    DYNAMIC_SHAPE,
    FOREIGN_OP,
    NOT_AN_ARRAY,
    OF_PARTITIONER,
    OUTSIDE_REGIONS,
    REPLICA_GROUPS,
    STRANGE_TYPE,
    TRANSFER,
)
from shardpass.element_types import element_type
from shardpass.importing.constraints import CUSTOM_CALL
from shardpass.ir.annotations import custom_call_target
from shardpass.ir.collectives import OPS
from shardpass.ir.locations import place_of
from shardpass.ir.walk import OpLists, named
from shardpass.ops.families.replicated import DYNAMIC
from shardpass.ops.registry import find
from shardpass.program.manual_regions import marked_scope

DYNAMIC_OPS = frozenset(f"stablehlo.{name}" for name in DYNAMIC)
TOKENS = ("!stablehlo.token", "!mhlo.token")


def refuse_types(lists: OpLists, main: Any) -> None:
    """Raise an error for unsupported types and dynamic ops of a module. ``lists``: the ops of the module.

    Raises ShardpassError: SP211 shapes that are not static, SP223 ops of dynamic shapes, SP224 types that XLA does not
    run, SP225 arguments and results of ``main`` that are no arrays.
    """
    types = {value.type for inside in lists.blocks for op in inside.ops for value in op.results}
    types |= {value.type for inside in lists.blocks for value in inside.block.arguments}
    faults = {kind: code for kind in types if (code := fault(kind)) is not None}
    problems: list[Diagnostic] = []
    if faults or not DYNAMIC_OPS.isdisjoint(lists.names):
        problems += _faulty(lists, faults)
    problems += _borders(main)
    if problems:
        raise ShardpassError(*problems)


def _faulty(lists: OpLists, faults: Mapping[Any, Code]) -> Iterator[Diagnostic]:
    """List the dynamic ops and the values with a type in ``faults``, block by block."""
    for inside in lists.blocks:
        for op, name in zip(inside.ops, inside.names, strict=True):
            if name in DYNAMIC_OPS:
                yield DYNAMIC_OP.at(place_of(op.location), op=name)
            else:
                yield from _of_values(op.results, name, faults)
        yield from _of_values(inside.block.arguments, "an argument", faults)


def _of_values(values: Any, name: str, faults: Mapping[Any, Code]) -> Iterator[Diagnostic]:
    for value in values:
        code = faults.get(value.type)
        if code is not None:
            yield code.at(place_of(value.location), op=name, type=value.type)


def fault(kind: Any) -> Code | None:
    """Return the message code for an unsupported type; None for a supported type. Looks into tuples."""
    todo = [kind]
    while todo:
        kind = todo.pop()
        if isinstance(kind, ir.TupleType):
            todo += [kind.get_type(i) for i in reversed(range(kind.num_types))]
        elif (code := _fault_of_leaf(kind)) is not None:
            return code
    return None


def _fault_of_leaf(kind: Any) -> Code | None:
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
    """List the arguments and results of ``main`` that are not arrays; only values inside may have such types."""
    kind = ir.TypeAttr(main.attributes["function_type"]).value
    for role, types in (("argument", kind.inputs), ("result", kind.results)):
        for index, of in enumerate(types):
            if not isinstance(of, ir.RankedTensorType) and fault(of) is None:
                yield NOT_AN_ARRAY.at(place_of(main.location), where=f"{role} {index}", type=of)


# With a channel a collective is over partitions, and a program of whole arrays has none; without, over replicas.
OF_ONE_DEVICE = OPS | {"stablehlo.partition_id"}
TRANSFERS = ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")

NOTE_OF_XLA = "_SPMDInternalOp_"

# Dialects whose ops XLA takes; of SDY nothing is left that import knows.
DIALECTS = frozenset(("stablehlo", "chlo", "mhlo", "func", "arith", "tensor"))


def refuse_ops(lists: OpLists, devices: int) -> None:
    """Raise an error for ops of ``main`` that XLA does not accept or that are undefined on whole arrays.

    Raises ShardpassError: SP228 ops of other dialects, SP231 notes of XLA's partitioner, and where there is more than
    one device SP226 device ids and collectives outside of manual regions, SP227 transfers to the host, SP232 groups of
    replicas.
    """
    foreign = {name for name in lists.names if name.partition(".")[0] not in DIALECTS and find(name) is None}
    suspicious = foreign | (lists.names & OF_ONE_DEVICE.union(TRANSFERS) if devices > 1 else frozenset())
    problems = []
    for op in named(lists.blocks, suspicious) if suspicious else ():
        if op.name in foreign:
            problems.append(FOREIGN_OP.at(place_of(op.location), op=op.name))
        elif op.name in TRANSFERS:
            problems.append(TRANSFER.at(place_of(op.location), op=op.name))
        elif marked_scope(op) is None and _over_partitions(op):
            problems.append(OUTSIDE_REGIONS.at(place_of(op.location), op=op.name))
        elif (replica := _missing_replica(op)) is not None:
            problems.append(REPLICA_GROUPS.at(place_of(op.location), op=op.name, replica=replica))
    if CUSTOM_CALL in lists.names:
        problems += _notes_of_xla(named(lists.blocks, (CUSTOM_CALL,)))
    if problems:
        raise ShardpassError(*problems)


def _notes_of_xla(calls: Iterable[Any]) -> Iterator[Diagnostic]:
    for op in calls:
        if (target := custom_call_target(op)).startswith(NOTE_OF_XLA):
            yield OF_PARTITIONER.at(place_of(op.location), target=target)


def _missing_replica(op: Any) -> int | None:
    """Return the first replica other than 0 in the groups of a collective without a channel."""
    attributes = op.attributes
    if "channel_handle" in attributes:
        return None
    for name in ("replica_groups", "source_target_pairs"):
        if name in attributes and isinstance(attributes[name], ir.DenseIntElementsAttr):
            return next((replica for replica in map(int, attributes[name]) if replica > 0), None)
    return None


def _over_partitions(op: Any) -> bool:
    """Return whether a used result of ``op`` depends on the device."""
    if op.name == "stablehlo.partition_id":
        return next(iter(op.results[0].uses), None) is not None
    return "channel_handle" in op.attributes
