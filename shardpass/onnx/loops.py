"""Describe a node as loops over labelled axes, in the same form for all groups of the formalism.

Problem. The documents define for each group which axes of the inputs meet, which become axes of the output, and which
are summed over. A ``Stage`` expresses this with labels: axes with one label meet, a label that the result lacks is
reduced, and an axis of size 1 whose label is longer is broadcast. So one set of rules (``rules``) serves all groups.

| group | stage |
|---|---|
| elementwise | [.., b, a] x [.., b, a] -> [.., b, a], aligned at the last axis |
| reduction over b, keepdims | [c, b, a] -> [c, (new), a] |
| MatMul | [.., M, K] x [.., K, N] -> [.., M, N] |
| Gemm | the same with A and B turned as its attributes say; then, with C, an elementwise stage |
| Einsum of two operands | by its equation |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardpass.onnx.groups import ARRAY_INPUTS, FACTORS, OpGroup
from shardpass.onnx.model import Dim, Model, Node

Labels = tuple[str, ...]
PREVIOUS = -1  # instead of the number of an input: the result of the stage before


class NoLoops(Exception):
    """Raised with the reason if the equation or axes of a node in a known group cannot be read."""


@dataclass(frozen=True, slots=True)
class Term:
    """An operand in a loop nest: the number of the node's input, and the loop label of each axis."""

    input: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Stage:
    terms: tuple[Term, ...]
    result: Labels
    rule: str  # by which the result's spec is inferred

    @property
    def contracted(self) -> frozenset[str]:
        return frozenset(label for term in self.terms for label in term.labels) - frozenset(self.result)


def array_inputs(node: Node, group: OpGroup) -> tuple[int, ...]:
    """Return the indices of the array inputs of a node; the sharding rules of its group apply to these inputs."""
    given = [index for index, name in enumerate(node.inputs) if name]
    if group is OpGroup.ELEMENTWISE:
        return tuple(given[: ARRAY_INPUTS.get(node.op, len(given))])
    if group is OpGroup.REDUCTION:
        return tuple(given[:1])
    if group is OpGroup.MATMUL:
        return FACTORS.get(node.op, (0, 1))
    return tuple(given)


def stages(model: Model, node: Node, group: OpGroup, shapes: Sequence[tuple[Dim, ...]]) -> tuple[Stage, ...]:
    """Return the stages of a node; ``shapes``: of its array inputs. Raises NoLoops."""
    inputs = array_inputs(node, group)
    if group is OpGroup.ELEMENTWISE:
        return (_elementwise(inputs, [len(shape) for shape in shapes]),)
    if group is OpGroup.REDUCTION:
        return (_reduction(model, node, len(shapes[0])),)
    if group is OpGroup.MATMUL:
        return (_matmul(inputs, len(shapes[0]), len(shapes[1])),)
    if group is OpGroup.GEMM:
        return _gemm(node, [len(shape) for shape in shapes])
    if group is OpGroup.EINSUM:
        return (_einsum(node, [len(shape) for shape in shapes]),)
    raise NoLoops(f"{node.op} has no rules")


def _aligned(rank: int, most: int) -> Labels:
    return tuple(f"axis {most - rank + k}" for k in range(rank))


def _elementwise(inputs: Sequence[int], ranks: Sequence[int]) -> Stage:
    most = max(ranks)
    terms = tuple(Term(index, _aligned(rank, most)) for index, rank in zip(inputs, ranks, strict=True))
    return Stage(terms, _aligned(most, most), "ONNX-U2" if len(terms) == 1 else "ONNX-B4")


def _reduction(model: Model, node: Node, rank: int) -> Stage:
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1]:
        if node.inputs[1] not in model.constants:
            raise NoLoops("its axes are not constant")
        axes = [int(axis) for axis in model.constants[node.inputs[1]].reshape(-1)]
    if not axes:
        axes = [] if node.attributes.get("noop_with_empty_axes") else range(rank)
    if not all(-rank <= axis < rank for axis in axes):
        raise NoLoops("its axes are out of range")
    reduced = {axis % rank for axis in axes}
    labels = _aligned(rank, rank)
    keep = bool(node.attributes.get("keepdims", 1))
    result = tuple(
        f"kept {axis}" if axis in reduced else label for axis, label in enumerate(labels) if keep or axis not in reduced
    )
    return Stage((Term(0, labels),), result, "ONNX-R2")


def _matmul(inputs: Sequence[int], left: int, right: int) -> Stage:
    if not left or not right:
        raise NoLoops("a factor is a scalar")
    batches = max(left, right) - 2
    one = (*_batch(left - 2, batches), "M", "K") if left > 1 else ("K",)
    other = (*_batch(right - 2, batches), "K", "N") if right > 1 else ("K",)
    result = (*_batch(batches, batches), *(("M",) if left > 1 else ()), *(("N",) if right > 1 else ()))
    return Stage((Term(inputs[0], one), Term(inputs[1], other)), result, "ONNX-M4")


def _batch(rank: int, most: int) -> Labels:
    return tuple(f"batch {most - rank + k}" for k in range(rank))


def _gemm(node: Node, ranks: Sequence[int]) -> tuple[Stage, ...]:
    if ranks[:2] != [2, 2]:
        raise NoLoops("A and B must be matrices")
    a = ("K", "M") if node.attributes.get("transA") else ("M", "K")
    b = ("N", "K") if node.attributes.get("transB") else ("K", "N")
    product = Stage((Term(0, a), Term(1, b)), ("M", "N"), "ONNX-M4")
    if len(ranks) < 3:
        return (product,)
    if ranks[2] > 2:
        raise NoLoops("C has more than two dimensions")
    c = ("M", "N")[2 - ranks[2] :]
    return product, Stage((Term(PREVIOUS, ("M", "N")), Term(2, c)), ("M", "N"), "ONNX-B4")


def _einsum(node: Node, ranks: Sequence[int]) -> Stage:
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if "." in equation or not arrow:
        raise NoLoops(f"the equation '{equation}' has no output, or an ellipsis")
    if [len(term) for term in terms] != list(ranks) or any(len(set(term)) < len(term) for term in (*terms, result)):
        raise NoLoops(f"the equation '{equation}' repeats an index, or does not fit the inputs")
    operands = tuple(Term(index, tuple(term)) for index, term in enumerate(terms))
    return Stage(operands, tuple(result), "ONNX-M4")


def label_sizes(stage: Stage, shapes: Sequence[tuple[Any, ...]]) -> dict[str, Dim]:
    """Return the size of each label: of an axis that is not broadcast; 1 where all are."""
    sizes: dict[str, Dim] = {}
    for term, shape in zip(stage.terms, shapes, strict=True):
        for label, size in zip(term.labels, shape, strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return sizes
