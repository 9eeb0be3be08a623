"""Read and check every sharding of ``main``.

A program repeats few shardings many times. Each is checked once for each type and scope that it occurs with, and the
place of an annotation, which is slow to read, is read for diagnostics alone. All errors are reported at once.
O(ops), two look-ups of an attribute for an op without a sharding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Diagnostic, Place, Severity, ShardpassError
from shardpass.diagnostics.table_passes import GROUP_SHAPES, STRAY_MANUAL
from shardpass.ir.annotations import (
    CONSTRAINT,
    MANUAL,
    PINNED,
    REPLICATED,
    SCOPE,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    Signature,
    custom_call_target,
    get_text,
    notes_of,
    text,
)
from shardpass.ir.locations import place_of
from shardpass.ir.walk import CONTROL_FLOW, OpLists, operation
from shardpass.program.validate import check, read_for
from shardpass.sharding import Sharding, TupleSharding, parse_sharding


@dataclass(frozen=True, slots=True)
class Annotation:
    """A sharding annotation of the module: its op or dict, its text and its shardings."""

    holder: Any  # a dict of attributes, or an op
    text: str  # as it stands in the module
    types: tuple[Any, ...]
    shardings: tuple[Sharding, ...]
    location: Any
    where: str  # for people
    scope: str | None = None  # of the manual region that the value is in

    @property
    def place(self) -> Place:
        """The source line of the annotation, computed at first use, as printing a location is slow."""
        return place_of(self.location)

    def write(self) -> None:
        """Write the shardings back in canonical text, and propagation's attributes for a single value."""
        texts = [str(s) for s in self.shardings]
        attributes = self.holder if isinstance(self.holder, dict) else self.holder.attributes
        joined = texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
        if joined != self.text:
            attributes[SHARDING] = ir.StringAttr.get(joined)
        if len(texts) == 1:
            notes = notes_of(self.shardings[0], len(self.shardings[0].dims))
            for name in [name for name in notes if name not in attributes]:
                attributes[name] = notes[name]


def read_annotations(main: Any, signature: Signature, lists: OpLists) -> tuple[list[Annotation], list[Sharding]]:
    """Read all shardings in ``main``, in order, and those whose axes propagation must not change.

    Raises ShardpassError with all that cannot be read.
    """
    kind = ir.TypeAttr(main.attributes["function_type"]).value
    block = main.regions[0].blocks[0]
    reader = _Reader()
    for index, (row, of, argument) in enumerate(zip(signature.arguments, kind.inputs, block.arguments, strict=True)):
        reader.row(row, of, argument.location, f"argument {index}")
    for inside in lists.blocks:
        for op, name in zip(inside.ops, inside.names, strict=True):
            attributes = op.attributes
            if SHARDING in attributes or REPLICATED in attributes:
                reader.op(op, attributes, name)
    for index, (row, of) in enumerate(zip(signature.results, kind.results, strict=True)):
        reader.row(row, of, main.location, f"result {index}")
    if reader.manual:
        reader.problems += _strays(reader.manual)
    if reader.problems:
        raise ShardpassError(*reader.problems)
    return reader.annotations, [sharding for sharding in reader.replicated_along if isinstance(sharding, Sharding)]


def _strays(marked: list[Any]) -> Iterator[Diagnostic]:
    """Yield an error for the first op marked {manual} that takes or returns a whole (unsplit) array.

    An op inside a marked loop or branch belongs to the same manual region as that loop or branch.
    """
    tiles = {value for op in marked for value in op.results}
    known = set(marked)
    inside = {op for op in marked if operation(op.parent) not in known}
    for op in marked:
        if op in inside and custom_call_target(op) not in (TO_SHARD, TO_FULL):
            fault = _whole_operand(op, tiles) or _whole_use(op, inside)
            if fault:
                yield STRAY_MANUAL.at(place_of(op.location), op=op.name, value=fault)
                return


def _whole_operand(op: Any, tiles: set[Any]) -> str:
    arrays = (i for i, v in enumerate(op.operands) if isinstance(v.type, ir.RankedTensorType) and v not in tiles)
    index = next((i for i in arrays if not _is_source(op.operands[i])), None)
    return "" if index is None else f"its operand {index}"


def _is_source(value: Any) -> bool:
    """Return whether an op without operands (a constant, an iota) defines ``value``; such ops have no mark."""
    return not isinstance(value.owner, ir.Block) and not len(operation(value.owner).operands)


def _whole_use(op: Any, inside: set[Any]) -> str:
    """Describe a use of ``op``'s result as a whole array outside of the region, other than by its exit."""
    for result in op.results:
        for use in result.uses:
            user = operation(use.owner)
            if user.block == op.block and user not in inside and custom_call_target(user) != TO_FULL:
                return f"its result, which {user.name} takes,"
    return ""


def pin(annotations: Sequence[Annotation]) -> None:
    """Mark the ops that the user annotated, except constraints, region borders and control flow."""
    for one in annotations:
        if isinstance(one.holder, dict) or one.where in CONTROL_FLOW:
            continue
        plain = all(sharding.is_tiled or sharding.is_replicated for sharding in one.shardings)
        if plain and custom_call_target(one.holder) not in (CONSTRAINT, TO_SHARD, TO_FULL):
            one.holder.attributes[PINNED] = ir.UnitAttr.get(one.holder.context)


def is_propagated(lists: OpLists) -> bool:
    """Return whether every op of main has an annotation, as after propagation; then mark the user's annotations."""
    arrays = (op for op in lists.blocks[0].ops if any(isinstance(one.type, ir.RankedTensorType) for one in op.results))
    return all(SHARDING in op.attributes for op in arrays)


class _Reader:
    def __init__(self) -> None:
        self.annotations: list[Annotation] = []
        self.replicated_along: list[Sharding | TupleSharding] = []
        self.problems: list[Diagnostic] = []
        self.manual: list[Any] = []  # ops that are marked {manual}

    def row(self, row: dict[str, Any], kind: Any, location: Any, where: str) -> None:
        """Read the attributes of an argument or a result."""
        if SHARDING in row:
            self._read(row, text(row[SHARDING]), (kind,), location, where, None)
        if REPLICATED in row:
            self.replicated_along.append(parse_sharding(text(row[REPLICATED])))

    def op(self, op: Any, attributes: Any, name: str) -> None:
        if SHARDING in attributes:
            annotation = text(attributes[SHARDING])
            if annotation != MANUAL:
                types = tuple(result.type for result in op.results)
                self._read(op, annotation, types, op.location, name, get_text(op, SCOPE))
            else:
                self.manual.append(op)
        if REPLICATED in attributes:
            self.replicated_along.append(parse_sharding(text(attributes[REPLICATED])))

    def _read(
        self, holder: Any, annotation: str, types: tuple[Any, ...], location: Any, where: str, scope: str | None
    ) -> None:
        try:
            shardings = tuple(read_for(annotation, list(types)))
        except ShardpassError as error:
            place = place_of(location)
            self.problems += [dataclasses.replace(problem, place=place) for problem in error.diagnostics]
        else:
            self.annotations.append(Annotation(holder, annotation, types, shardings, location, where, scope))


def refuse_wrong_shardings(annotations: list[Annotation], count: int, source: str) -> None:
    """Report the errors of shardings, checking each combination of sharding, type and scope once."""
    fine: set[tuple[Any, ...]] = set()
    errors: list[Diagnostic] = []
    for annotation in annotations:
        ranks = tuple([len(sharding.dims) for sharding in annotation.shardings])  # equal shardings may differ in them
        key = (annotation.shardings, ranks, annotation.types, annotation.scope)
        if key in fine:
            continue
        problems = [
            problem
            for sharding, kind in zip(annotation.shardings, annotation.types, strict=True)
            for problem in check(
                sharding, kind, count, NOWHERE, where=annotation.where, source=source, scope=annotation.scope
            )
            if problem.severity is Severity.ERROR
        ]
        if problems:
            errors += [dataclasses.replace(problem, place=annotation.place) for problem in problems]
        else:
            fine.add(key)
    errors += _torn_groups(annotations)
    if errors:
        raise ShardpassError(*errors)


def _torn_groups(annotations: list[Annotation]) -> Iterator[Diagnostic]:
    """Report sharding groups whose members cannot share a sharding, because of their shapes or regions."""
    first: dict[int, tuple[Any, str | None]] = {}
    for annotation in annotations:
        for sharding, kind in zip(annotation.shardings, annotation.types, strict=True):
            if sharding.notes.group is None or not isinstance(kind, ir.RankedTensorType):
                continue
            number = sharding.notes.group[1]
            shape, scope = first.setdefault(number, (kind, annotation.scope))
            if list(shape.shape) != list(kind.shape) or scope != annotation.scope:
                yield GROUP_SHAPES.at(
                    annotation.place,
                    text=annotation.where,
                    group=number,
                    type=kind,
                    where=_region(annotation.scope),
                    first_type=shape,
                    first_where=_region(scope),
                )


def _region(scope: str | None) -> str:
    return "outside of manual regions" if scope is None else f"in the region that is manual over {scope}"
