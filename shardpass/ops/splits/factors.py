"""Factors: the loop dimensions of an op, each with the dimensions of operands and results that it maps to.

A *factor* is an index of the loop nest that an op stands for, as in einsum: ``ij,jk->ik`` has three. A rule
maps each dimension of each operand and result to factors, major to minor (a reshape may map one dimension
to several). The mesh's prime sub-axes are written as integers (see ``prime_mesh.PrimeMesh``); a tensor's sharding is
then ``DimAxes``: for each dimension the sub-axes that split it, major to minor.

The two directions:

* ``project``: a tensor's DimAxes -> the sub-axes of each factor;
* ``unproject``: sub-axes of each factor -> a tensor's DimAxes.

Invariants: no sub-axis stands twice in one tensor. A dimension that is one whole factor may be split unevenly
(ceil tiles); a dimension of several factors, or of a factor that is only its major part, only evenly. The next
factor of a dimension may be split only when the one before it is split completely. An elastic factor that others follow
(``full``) may be split unevenly too, and is split completely by ``full`` parts exactly: a dimension of 12 that has 3
rows of 4 takes any sub-axes as tiles of its own, but (3, 2) as 3 rows and halves of rows.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

Axes = tuple[int, ...]  # prime sub-axes of the mesh, major to minor
DimAxes = tuple[Axes, ...]  # one entry for each tensor dimension


class Kind(enum.Enum):
    """The effect of splitting a factor over devices."""

    PARALLEL = "parallel"  # each device computes its part
    REDUCTION = "reduction"  # each device has a partial result; a reduction over devices completes it
    REPLICATED = "replicated"  # cannot be split: every device needs it whole


class Priority(enum.IntEnum):
    """The round of propagation in which a rule takes part."""

    PASS_THROUGH = 0
    CONTRACTION = 1
    EXPANSION = 2


@dataclass(frozen=True, slots=True)
class Factor:
    """An index of the loop nest. ``elastic``: the dimensions that map to it may differ in size (windows, pads):

    each is split into separate tiles, and the rewrite exchanges the elements between their borders.
    ``blocked``: propagation does not pass from one of the dimensions that map to the factor to the others.
    ``full``: the parts of a complete split of an elastic factor that others follow in a dimension; else 0.
    """

    size: int
    kind: Kind = Kind.PARALLEL
    elastic: bool = False
    blocked: bool = False
    full: int = 0

    def covers(self, size: int) -> bool:
        """Return whether a dimension of ``size`` is all of this factor, and so may be split unevenly."""
        return self.elastic or self.size == size


DimMap = tuple[tuple[int, ...], ...]  # for each dimension of a tensor, indices of factors, major to minor


@dataclass(frozen=True, slots=True)
class Rule:
    """The ways in which one op may be split. ``combiner`` names the reduction of REDUCTION factors ("add", "maximum",
    ...).

    ``self_completing``: the family's rewrite completes partial results itself; the partitioner adds no reduction.
    ``masks``: the rewrite deals with padding along REDUCTION factors itself.
    ``independent``: operand i and result i do not depend on the others, and may be split over the same axes.
    ``in_part``: operand 0 is read, or updated in place, only at indexed places, so its size is not work.
    """

    factors: tuple[Factor, ...]
    operands: tuple[DimMap, ...]
    results: tuple[DimMap, ...]
    priority: Priority = Priority.PASS_THROUGH
    combiner: str = ""
    self_completing: bool = False
    masks: bool = False
    independent: bool = False
    in_part: bool = False


class RuleBuilder:
    """Builds a rule: adds factors, and maps dimensions to them."""

    def __init__(self, operand_ranks: Sequence[int], result_ranks: Sequence[int]) -> None:
        self._factors: list[Factor] = []
        self._operands: list[list[tuple[int, ...]]] = [[()] * rank for rank in operand_ranks]
        self._results: list[list[tuple[int, ...]]] = [[()] * rank for rank in result_ranks]

    def factor(
        self, size: int, kind: Kind = Kind.PARALLEL, *, elastic: bool = False, blocked: bool = False, full: int = 0
    ) -> int:
        self._factors.append(Factor(size, kind, elastic, blocked, full))
        return len(self._factors) - 1

    def mapped(self, size: int, operand: tuple[int, int], result: tuple[int, int], kind: Kind = Kind.PARALLEL) -> int:
        """Add a factor that a dimension of an operand shares with one of a result; both are (index, dimension)."""
        factor = self.factor(size, kind)
        self.operand(*operand, factor)
        self.result(*result, factor)
        return factor

    def operand(self, index: int, dim: int, *factors: int) -> None:
        self._operands[index][dim] += factors

    def result(self, index: int, dim: int, *factors: int) -> None:
        self._results[index][dim] += factors

    def along(self, dim: int, factor: int, operands: int = 1, results: int = 1) -> None:
        """Map dimension ``dim`` of the first ``operands`` operands and the first ``results`` results to ``factor``."""
        for index in range(operands):
            self.operand(index, dim, factor)
        for index in range(results):
            self.result(index, dim, factor)

    def build(
        self,
        priority: Priority = Priority.PASS_THROUGH,
        combiner: str = "",
        *,
        self_completing: bool = False,
        masks: bool = False,
        independent: bool = False,
        in_part: bool = False,
    ) -> Rule:
        operands, results = tuple(map(tuple, self._operands)), tuple(map(tuple, self._results))
        factors = tuple(self._factors)
        flags = (self_completing, masks, independent, in_part)
        return Rule(factors, operands, results, priority, combiner, *flags)


@lru_cache(maxsize=1024)
def pair_rules(rule: Rule) -> tuple[tuple[Rule, tuple[int, ...]], ...]:
    """Split an independent rule into the rule of each operand with its result, with the original factors' numbers.

    An op of n operands is then decided as n ops of one operand: O(n), where all factors together would be O(n^2).
    """
    out = []
    for operand, result in zip(rule.operands, rule.results, strict=True):
        used = tuple(dict.fromkeys(f for dims in (operand, result) for factors in dims for f in factors))
        place = {f: i for i, f in enumerate(used)}
        sides = [tuple(tuple(place[f] for f in factors) for factors in dims) for dims in (operand, result)]
        factors = tuple(rule.factors[f] for f in used)
        one = replace(rule, factors=factors, operands=(sides[0],), results=(sides[1],), independent=False)
        out.append((one, used))
    return tuple(out)


def project(rule: Rule, dim_map: DimMap, shape: Sequence[int], dims: DimAxes, sizes: Sequence[int]) -> dict[int, Axes]:
    """Map each factor of ``rule`` to the sub-axes that split it in a tensor that is split as ``dims``.

    ``dim_map`` lists the factors of each dimension, ``sizes`` the size of each sub-axis of the mesh. A sub-axis that
    divides no factor is left out, and so are all sub-axes minor to it.
    """
    out: dict[int, Axes] = {}
    for factors, size, axes in zip(dim_map, shape, dims, strict=True):
        if not axes or not factors:
            continue
        if len(factors) == 1 and rule.factors[factors[0]].covers(size):
            out[factors[0]] = axes
            continue
        nested, rest = _nested(rule, factors, axes, sizes)
        if rest and rule.factors[factors[0]].full:
            out[factors[0]] = axes
        else:
            out.update(nested)
    return out


def _nested(rule: Rule, factors: Sequence[int], axes: Axes, sizes: Sequence[int]) -> tuple[dict[int, Axes], list[int]]:
    """Distribute ``axes`` over ``factors``, each filled evenly before the next; also return the axes that remain."""
    out: dict[int, Axes] = {}
    rest = list(axes)
    for factor in factors:
        filled, left = [], rule.factors[factor].full or rule.factors[factor].size
        while rest and left % sizes[rest[0]] == 0:
            left //= sizes[rest[0]]
            filled.append(rest.pop(0))
        if filled:
            out[factor] = tuple(filled)
        if left > 1:
            break
    return out, rest


def unproject(
    rule: Rule, dim_map: DimMap, shape: Sequence[int], assigned: dict[int, Axes], sizes: Sequence[int]
) -> DimAxes:
    """Return a tensor's dims for the sub-axes of each factor; sub-axes that dims cannot express are left out."""
    used: set[int] = set()
    out: list[Axes] = []
    for factors, size in zip(dim_map, shape, strict=True):
        whole = len(factors) == 1 and rule.factors[factors[0]].covers(size)
        if whole and used.isdisjoint(split := assigned.get(factors[0], ())):
            out.append(split)
            used.update(split)
            continue
        axes: list[int] = []
        for factor in factors:
            full = rule.factors[factor].full
            left, count = full or rule.factors[factor].size, 1
            stopped = False
            for axis in assigned.get(factor, ()):
                if axis in used or (not (whole or full) and left % sizes[axis]):
                    stopped = True
                    break
                left, count = left // sizes[axis], count * sizes[axis]
                used.add(axis)
                axes.append(axis)
            if stopped or (count != full if full else left > 1):
                break
        out.append(tuple(axes))
    return tuple(out)


def used_axes(dims: DimAxes) -> frozenset[int]:
    return frozenset(a for axes in dims for a in axes)
