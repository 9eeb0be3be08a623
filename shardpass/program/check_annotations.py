"""Check each ``mhlo.sharding`` of a module by itself, and report all errors at once.

Import stops at the first step with errors: one unreadable annotation keeps it from comparing the others with their
values. A checker reports all errors at once, so the annotations of a module that import refuses are checked one by one
here, with the same messages. O(ops).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shardpass.diagnostics import Diagnostic, Place, ShardpassError
from shardpass.ir.annotations import SHARDING, Signature, get_text, num_devices, text
from shardpass.ir.locations import place_of
from shardpass.ir.tuples import leaves
from shardpass.ir.walk import every_op, operation
from shardpass.program.validate import check, read_for
from shardpass.sharding import Sharding


@dataclass(frozen=True, slots=True)
class _Annotation:
    text: str
    types: tuple[Any, ...]
    place: Place
    where: str


def check_annotations(module: Any) -> Iterator[Diagnostic]:
    """List the errors of every ``mhlo.sharding`` in ``module``; for manual values only unreadable text."""
    readable: list[tuple[_Annotation, list[Sharding]]] = []
    for one in _annotations(module):
        try:
            readable.append((one, read_for(one.text, list(one.types), one.place)))
        except ShardpassError as error:
            yield from error.diagnostics
    devices, source = num_devices(module), "mhlo.num_partitions"
    if devices is None:
        counts = (s.num_devices for _, shardings in readable for s in shardings if s.num_devices)
        devices, source = next(counts, None), "as its first sharding says"
    if devices is None:
        return
    for one, shardings in readable:
        for sharding, kind in zip(shardings, one.types, strict=True):
            if not sharding.is_manual and not sharding.manual:
                yield from check(sharding, kind, devices, one.place, where=one.where, source=source)


def _annotations(module: Any) -> Iterator[_Annotation]:
    for op in map(operation, every_op(module.operation)):
        if op.name == "func.func":
            yield from _of_signature(op)
        elif (annotation := get_text(op, SHARDING)) is not None:
            yield _Annotation(annotation, tuple(leaves(v.type for v in op.results)), place_of(op.location), op.name)


def _of_signature(function: Any) -> Iterator[_Annotation]:
    signature = Signature(function)
    kind = function.attributes["function_type"].value
    blocks = function.regions[0].blocks
    places = [place_of(v.location) for v in blocks[0].arguments] if len(blocks) else []
    for index, (row, type_) in enumerate(zip(signature.arguments, kind.inputs, strict=True)):
        if SHARDING in row:
            place = places[index] if index < len(places) else place_of(function.location)
            yield _Annotation(text(row[SHARDING]), (type_,), place, f"argument {index}")
    for index, (row, type_) in enumerate(zip(signature.results, kind.results, strict=True)):
        if SHARDING in row:
            yield _Annotation(text(row[SHARDING]), (type_,), place_of(function.location), f"result {index}")
