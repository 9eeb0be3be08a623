"""Trace the split of a value to the user's annotation that caused it.

Problem: propagation carries shardings from op to op, a search changes some of them, and in the end a value is split
over an axis. The user wants to know which annotation caused this.

For each axis of the mesh there is a graph whose nodes are the dimensions that the axis splits. Two nodes are
connected if an op's rule ties them (one factor), if a constraint or the border of a region passes the split on, or
if a loop carries it. Annotated dimensions are the sources. A breadth-first search from all sources at once assigns
the nearest source to each node. A node that it does not reach was split by the search.

Example: ``x`` annotated P('data', None), ``y = x @ w``: the rows of y are split over 'data', one op away from x.

State: the graph of an axis, searched when the axis is first requested. Complexity: O(ops x rank) for each axis.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from shardpass.ops.splits.factors import DimAxes, DimMap
from shardpass.program.program import NO_ANNOTATION, Op, OpKind, Program
from shardpass.program.shardings import Shardings

ARGUMENT, CONSTRAINT, RESULT = "argument", "constraint", "result"

Node = tuple[int, int]  # a value, and one of its dimensions
_BORDERS = frozenset({OpKind.CONSTRAINT, OpKind.ENTER_REGION, OpKind.LEAVE_REGION})


@dataclass(frozen=True, slots=True)
class Annotated:
    """An annotation: of an argument or a result, which ``place`` numbers, or of the constraint ``place``, an op."""

    kind: str
    value: int
    place: int


class Provenance:
    """Trace shardings of a program back to annotations. ``arguments``, ``results``: the positions that the user
    annotated.
    """

    def __init__(
        self, program: Program, shardings: Shardings, arguments: Collection[int], results: Collection[int]
    ) -> None:
        self.program, self._arguments, self._results = program, arguments, results
        self._dims: dict[int, DimAxes] = {}
        for value, sharding in shardings.of.items():
            array = program.arrays[value]
            dims = None if array is None else program.mesh.dims(sharding, array.rank)
            if dims is not None:
                self._dims[value] = dims
        for op in program.body.every_op():
            for block in op.blocks if op.is_loop else ():  # what a loop carries is split as its results are
                for argument, result in zip(block.arguments, op.results, strict=True):
                    if result in self._dims:
                        self._dims.setdefault(argument, self._dims[result])
        self._reached: dict[int, dict[Node, Annotated]] = {}

    def dims(self, value: int) -> DimAxes:
        """Return the sub-axes that split each dimension of ``value``."""
        dims = self._dims.get(value)
        if dims is None:
            array = self.program.arrays[value]
            dims = ((),) * (0 if array is None else array.rank)
        return dims

    def of(self, value: int, axis: int) -> Annotated | None:
        """Return the annotation nearest to the split of ``value`` over ``axis``; None if no annotation reaches the
        split.
        """
        reached = self._nearest(axis)
        for dim, axes in enumerate(self.dims(value)):
            if axis in axes and (value, dim) in reached:
                return reached[value, dim]
        return None

    def at(self, value: int, dim: int, axis: int) -> Annotated | None:
        """Trace as ``of``, for a dimension that an op splits over ``axis``, whether or not ``value`` itself is split
        so.
        """
        reached, node = self._nearest(axis), (value, dim)
        return next((reached[each] for each in (node, *self._ties.get(node, ())) if each in reached), None)

    # ---------------------------------------------------------------- the search

    def _nearest(self, axis: int) -> dict[Node, Annotated]:
        reached = self._reached.get(axis)
        if reached is None:
            reached = self._reached[axis] = self._search(axis)
        return reached

    def _search(self, axis: int) -> dict[Node, Annotated]:
        reached: dict[Node, Annotated] = {}
        todo: deque[Node] = deque()
        for annotated in self._annotations:
            for dim, axes in enumerate(self.dims(annotated.value)):
                node = (annotated.value, dim)
                if axis in axes and node not in reached and self._says(annotated, dim, axis):
                    reached[node] = annotated
                    todo.append(node)
        while todo:
            node = todo.popleft()
            for other in self._ties.get(node, ()):
                dims = self._dims.get(other[0])
                if other not in reached and dims is not None and axis in dims[other[1]]:
                    reached[other] = reached[node]
                    todo.append(other)
        return reached

    def _says(self, annotated: Annotated, dim: int, axis: int) -> bool:
        """Return whether the annotation itself splits the dimension over ``axis``, rather than leave the dimension
        open.
        """
        program = self.program
        if annotated.kind == RESULT:
            annotation = program.result_annotations[annotated.place].sharding
        else:
            annotation = program.annotations.get(annotated.value, NO_ANNOTATION).sharding
        dims = None if annotation is None else program.mesh.dims(annotation, program.array(annotated.value).rank)
        return dims is not None and axis in dims[dim]

    @cached_property
    def _annotations(self) -> list[Annotated]:
        program = self.program
        body = program.body
        result = [Annotated(ARGUMENT, body.arguments[place], place) for place in self._arguments]
        constraints = (op for op in body.every_op() if op.kind is OpKind.CONSTRAINT)
        result += [Annotated(CONSTRAINT, op.results[0], op.number) for op in constraints]
        result += [Annotated(RESULT, body.returned[place], place) for place in self._results]
        return [one for one in result if program.arrays[one.value] is not None]

    @cached_property
    def _ties(self) -> dict[Node, list[Node]]:
        ties: dict[Node, list[Node]] = {}
        for op in self.program.body.every_op():
            for group in self._tied(op):
                for node in group:
                    ties.setdefault(node, []).extend(other for other in group if other != node)
        return ties

    def _tied(self, op: Op) -> Iterator[list[Node]]:
        """Group of dimensions that ``op`` ties together."""
        if op.kind is OpKind.SPLIT and op.model is not None:
            rule = op.model.rule
            if rule.independent:
                for operand, result, one, two in zip(op.operands, op.results, rule.operands, rule.results, strict=True):
                    yield from _by_factor([(operand, one), (result, two)])
            else:
                maps = (*rule.operands, *rule.results)
                yield from _by_factor(list(zip((*op.operands, *op.results), maps, strict=True)))
        elif op.kind in _BORDERS:
            yield from self._same(op.operands[0], op.results[0])
        elif op.kind is OpKind.CONTROL_FLOW:
            for block in op.blocks:
                for place, value in enumerate(op.results):
                    if place < len(block.returned) and not (op.is_loop and block is op.blocks[0]):
                        yield from self._same(value, block.returned[place])
                    if op.is_loop:
                        yield from self._same(value, block.arguments[place])
            if op.is_loop:
                for value, operand in zip(op.results, op.operands, strict=True):
                    yield from self._same(value, operand)

    def _same(self, one: int, other: int) -> Iterator[list[Node]]:
        first, second = self.program.arrays[one], self.program.arrays[other]
        if first is not None and second is not None and first.rank == second.rank:
            yield from ([(one, dim), (other, dim)] for dim in range(first.rank))


def _by_factor(tensors: list[tuple[int, DimMap]]) -> Iterator[list[Node]]:
    groups: dict[int, list[Node]] = {}
    for value, dims in tensors:
        for dim, factors in enumerate(dims):
            for factor in factors:
                groups.setdefault(factor, []).append((value, dim))
    yield from (nodes for nodes in groups.values() if len(nodes) > 1)
