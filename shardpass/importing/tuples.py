"""Unpack tuples, so that every value that later steps see is a single array.

Problem. HLO groups results in tuples, so programs converted from HLO contain ``tuple``, ``get_tuple_element`` and
custom calls with one tuple result. A tuple has no tile, so its elements must become separate values.

| before | after |
|---|---|
| ``tuple`` | its operands |
| ``get_tuple_element`` | the element |
| a ``mhlo.copy``, ``@Sharding`` or border of a manual region on a tuple | one such op for each leaf |
| a custom call | the same call on the flattened leaves, with ``shardpass.tuples`` where HLO distinguishes the two |
| a sharding of a tuple | a constraint on each leaf; a single sharding applies to all leaves, as in HLO |

Example:

    %t = custom_call @TopK(%x) {mhlo.sharding = "{{devices=[2,1]<=[2]}, {replicated}}"} : -> tuple<A, B>
    %v = get_tuple_element %t[0]
    =>
    %v:2 = custom_call @TopK(%x) {mhlo.sharding = "{{devices=[2,1]<=[2]}, {replicated}}"} : -> (A, B)

State: ``trees`` maps each value of tuple type to its contents, nested Python tuples of values. Invariant: ops are read
in textual order, outer blocks before inner ones, so that the tree of an operand is known before its users are read.

StableHLO control flow takes no tuples. Any other op with a tuple operand or result is refused (SP248), and so are tuple
arguments and results of ``main`` (SP225). O(ops).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import Diagnostic, ShardpassError
from shardpass.diagnostics.table_passes import TUPLE_COUNT, TUPLE_OP
from shardpass.ir.annotations import (
    CONSTRAINT,
    MANUAL,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    custom_call_target,
    get_text,
    make_custom_call,
)
from shardpass.ir.locations import place_of
from shardpass.ir.tuples import CUSTOM_CALL, ELEMENT, TUPLE, TUPLES, elements, is_tuple, leaves
from shardpass.ir.walk import OpLists, named, operation
from shardpass.program.manual_regions import marked_scope, set_scope
from shardpass.program.validate import read
from shardpass.sharding import TupleSharding

MADE, TAKEN = (TUPLE, "mhlo.tuple"), (ELEMENT, "mhlo.get_tuple_element")
COPY = "mhlo.copy"
EACH = (CONSTRAINT, TO_SHARD, TO_FULL)  # targets of calls that mean the same of each leaf

Tree = Any  # a value, or a tuple of trees


def take_apart_tuples(lists: OpLists) -> None:
    """Rewrite the tuples of a function in place. ``lists``: the ops of the function.

    Raises ShardpassError: SP248 for ops that shardpass does not know to handle tuples, SP202 and SP210 for their
    shardings.
    """
    makers = {name for name in lists.names if name in (TUPLE, CUSTOM_CALL) or name.startswith("mhlo.")}
    if not any(is_tuple(value.type) for op in named(lists.blocks, makers) for value in op.results):
        return
    every = [op for inside in lists.blocks for op in inside.ops]
    holders = [op for op in every if any(is_tuple(value.type) for value in (*op.operands, *op.results))]
    problems = list(_unknown(holders))
    if not problems:
        apart = _Apart()
        for op in holders:
            apart.op(op)
        problems = apart.problems
    if problems:
        raise ShardpassError(*problems)
    for op in reversed(holders):  # users first
        op.erase()
    lists.changed()


def _unknown(holders: list[Any]) -> Iterator[Diagnostic]:
    for op in holders:
        if op.name not in (*MADE, *TAKEN, COPY, CUSTOM_CALL):
            kind = next(value.type for value in (*op.operands, *op.results) if is_tuple(value.type))
            yield TUPLE_OP.at(place_of(op.location), op=op.name, type=kind)


class _Apart:
    def __init__(self) -> None:
        self.trees: dict[Any, Tree] = {}
        self.problems: list[Diagnostic] = []

    def op(self, op: Any) -> None:
        given = [self.trees.get(value, value) for value in op.operands]
        with ir.InsertionPoint(op), op.location:
            if op.name in MADE:
                results = [self._constrained(tuple(given), op)]
            elif op.name in TAKEN:
                index = ir.IntegerAttr(op.attributes["index"]).value
                results = [self._constrained(given[0][index], op)]
            elif op.name == COPY or (custom_call_target(op) in EACH and len(given) == 1):
                results = self._each(op, _leaves(given[0]))
            else:
                results = self._call(op, [leaf for tree in given for leaf in _leaves(tree)])
        for value, tree in zip(op.results, results, strict=True):
            if is_tuple(value.type):
                self.trees[value] = tree
            else:
                value.replace_all_uses_with(tree)

    def _shardings(self, op: Any, count: int) -> list[str] | None:
        """Return the sharding of each of ``count`` leaves; None if ``op`` has no valid sharding for whole arrays."""
        annotation = get_text(op, SHARDING)
        if annotation is None or annotation == MANUAL:
            return None
        try:
            sharding = read(annotation, place_of(op.location))
        except ShardpassError as error:
            self.problems += error.diagnostics
            return None
        leaves = [str(each) for each in sharding] if isinstance(sharding, TupleSharding) else [str(sharding)] * count
        if len(leaves) != count:
            self.problems.append(
                TUPLE_COUNT.at(place_of(op.location), text=annotation, found=len(leaves), expected=count)
            )
            return None
        return leaves

    def _constrained(self, tree: Tree, op: Any) -> Tree:
        """Constrain each array in ``tree`` to its sharding in the annotation of ``op``."""
        values = _leaves(tree)
        shardings = self._shardings(op, len(values))
        if shardings is None:
            return tree
        made = []
        for value, sharding in zip(values, shardings, strict=True):
            if sharding != MANUAL and isinstance(value.type, ir.RankedTensorType):
                value = make_custom_call(CONSTRAINT, value, value.type, {SHARDING: ir.StringAttr.get(sharding)})
                scope = marked_scope(op)
                if scope is not None:
                    set_scope(operation(value.owner), scope)
            made.append(value)
        return _shaped(tree, iter(made))

    def _each(self, op: Any, values: list[Any]) -> list[Tree]:
        """Apply ``op``, which has one tuple operand and result, to each leaf of the tuple."""
        types = leaves(value.type for value in op.results)
        shardings = self._shardings(op, len(types))
        made = []
        for index, (value, kind) in enumerate(zip(values, types, strict=True)):
            attributes = {name: op.attributes[name] for name in op.attributes}
            if shardings is not None:
                attributes[SHARDING] = ir.StringAttr.get(shardings[index])
            made.append(ir.Operation.create(op.name, [kind], [value], attributes).results[0])
        return [_of_type(op.results[0].type, iter(made))]

    def _call(self, op: Any, values: list[Any]) -> list[Tree]:
        types = leaves(value.type for value in op.results)
        attributes = {name: op.attributes[name] for name in op.attributes}
        shardings = self._shardings(op, len(types))
        if shardings is not None and types:
            same = shardings[0] if len(types) == 1 or set(shardings) == {MANUAL} else ""
            attributes[SHARDING] = ir.StringAttr.get(same or "{" + ", ".join(shardings) + "}")
        if _differs_in_hlo(op):
            kind = ir.FunctionType.get([v.type for v in op.operands], [v.type for v in op.results])
            attributes[TUPLES] = ir.TypeAttr.get(kind)
        made = iter(ir.Operation.create(op.name, types, values, attributes).results)
        return [_of_type(value.type, made) for value in op.results]


def _differs_in_hlo(op: Any) -> bool:
    """Return whether a call of ``op`` with its leaves as separate operands would be another call in HLO."""
    if any(is_tuple(value.type) for value in op.operands):
        return True
    kind = op.results[0].type
    return len(op.results) > 1 or kind.num_types == 1 or any(map(is_tuple, elements(kind)))


def _leaves(tree: Tree) -> list[Any]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [tree]


def _shaped(tree: Tree, values: Iterator[Any]) -> Tree:
    """Group the next values in the structure of ``tree``."""
    return tuple([_shaped(part, values) for part in tree]) if isinstance(tree, tuple) else next(values)


def _of_type(kind: Any, values: Iterator[Any]) -> Tree:
    """Group the next values in the structure of the type ``kind``."""
    return tuple([_of_type(of, values) for of in elements(kind)]) if is_tuple(kind) else next(values)
