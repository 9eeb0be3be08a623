"""Pack and unpack tuple values, and build custom calls with tuple operands or results.

A program that shardpass partitions has no tuples: import takes them apart. How a custom call takes its buffers depends
on its tuples, so a call that HLO would read as another one without them keeps its type in ``shardpass.tuples``, and
gets its tuples back when all else is done:

    %r:2 = custom_call @f(%x, %y) {shardpass.tuples = (tuple<tensor<8xf32>, tensor<f32>>) -> (tensor<8xf32>, tuple<..>)}

Results side by side, and one flat tuple of two elements or more, are the same in HLO.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.walk import OpLists, named

TUPLES = "shardpass.tuples"  # on a custom call without tuples: its type with them, of whole arrays
CUSTOM_CALL, TUPLE, ELEMENT = "stablehlo.custom_call", "stablehlo.tuple", "stablehlo.get_tuple_element"


def is_tuple(kind: Any) -> bool:
    return isinstance(kind, ir.TupleType)


def elements(kind: Any) -> list[Any]:
    """Return the types of the elements of a tuple type."""
    return [kind.get_type(index) for index in range(kind.num_types)]


def leaves(types: Iterable[Any]) -> list[Any]:
    """List the types in ``types`` that are not tuples, depth first, as HLO numbers the leaves of a shape."""
    out = []
    todo = list(types)[::-1]
    while todo:
        kind = todo.pop()
        if is_tuple(kind):
            todo += reversed(elements(kind))
        else:
            out.append(kind)
    return out


def restore_tuples(lists: OpLists) -> bool:
    """Restore the tuples of marked custom calls among ``lists``; returns whether the module changed."""
    calls = [op for op in named(lists.blocks, (CUSTOM_CALL,)) if TUPLES in op.attributes]
    for op in calls:
        _restore(op)
    if calls:
        lists.changed()
    return bool(calls)


def _restore(op: Any) -> None:
    kind = ir.TypeAttr(op.attributes[TUPLES]).value
    attributes = {name: op.attributes[name] for name in op.attributes if name != TUPLES}
    tiles = iter([value.type for value in op.results])
    results = [_retyped(of, tiles) for of in kind.results]
    with ir.InsertionPoint(op), op.location:
        given = iter(op.operands)
        operands = [_packed(of, given) for of in kind.inputs]
        made = ir.Operation.create(op.name, results, operands, attributes)
        parts = [part for value in made.results for part in _unpacked(value)]
    for before, after in zip(op.results, parts, strict=True):
        before.replace_all_uses_with(after)
    op.erase()


def _retyped(kind: Any, tiles: Iterator[Any]) -> Any:
    """Replace the leaves of ``kind`` by the next types in ``tiles``."""
    return ir.TupleType.get_tuple([_retyped(of, tiles) for of in elements(kind)]) if is_tuple(kind) else next(tiles)


def _packed(kind: Any, values: Iterator[Any]) -> Any:
    """Return the next value; for a tuple type, the next values packed in a tuple."""
    if not is_tuple(kind):
        return next(values)
    inner = [_packed(of, values) for of in elements(kind)]
    packed = ir.TupleType.get_tuple([value.type for value in inner])
    return ir.Operation.create(TUPLE, [packed], inner).results[0]


def _unpacked(value: Any) -> list[Any]:
    """Return the leaves of ``value``: ``value`` itself, or one ``get_tuple_element`` for each leaf of a tuple."""
    if not is_tuple(value.type):
        return [value]
    i32 = ir.IntegerType.get_signless(32)
    out = []
    for index, of in enumerate(elements(value.type)):
        number = {"index": ir.IntegerAttr.get(i32, index)}
        out += _unpacked(ir.Operation.create(ELEMENT, [of], [value], number).results[0])
    return out
