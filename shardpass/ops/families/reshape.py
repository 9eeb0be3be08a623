"""reshape: runs of dimensions with the same elements on both sides, each split by itself.

State: ``DimGroup``, a run of operand dimensions and the run of result dimensions with the same product. A group is

1. nested: its cut points nest, so parts of dimensions are factors (8 -> 2x4 has the factors 2 and 4), and every split
   of a leading part is the same elements on both sides: nothing moves;
2. exchanged: the leading dimensions have little in common (6x4 -> 8x3, or an odd number of rows): each side is split
   over its leading dimension in tiles of its own, and rows change places as one flat dimension (``transfers``). Where
   the tiles happen to have the same elements nothing moves either. 6x4 -> 8x3 on 2 devices: 3 rows of 4 are 4 rows of
   3, and nothing moves; on 4 devices the tiles have 2 rows of 4 (8, 8, 8 and no elements) and become 2 rows of 3:
   devices 1, 2 and 3 get 2, 4 and 6 elements from the device before, in one round;
3. both: exchanged, but one leading dimension is an odd multiple of the other (12 -> 3x4). Split over as many parts as
   the smaller has rows, 3, the rows stay, and what follows them nests: on 3x2 devices 12 in six tiles is 3x4 in 3 rows
   of two halves. Over any other number of devices it is exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import retype, shape_of
from shardpass.ops.families.broadcast_transpose import reshape_factors
from shardpass.ops.halo.plans import Line, Rounds, plan_rounds
from shardpass.ops.halo.reach import windowed_factor
from shardpass.ops.halo.rounds import exchange_rounds
from shardpass.ops.halo.transfers import Exchange, Owned, Window, plan_exchange, tile_of
from shardpass.ops.model import LocalPlan, OpModel, Shape, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Kind, Priority, Rule, RuleBuilder


@dataclass(frozen=True, slots=True)
class DimGroup:
    """Dimensions ``source`` of the operand and ``target`` of the result, by index, that have the same elements."""

    source: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """An exchanged group: ``source`` rows of ``total // source`` elements become ``target`` rows."""

    group: int
    factor: int
    source: int
    target: int
    total: int

    def exchange(self, count: int) -> Exchange:
        """Plan the exchange from the rows of the operand's tiles to those of the result's, in one flat dimension."""
        have = tile_of(self.source, count) * (self.total // self.source)
        start = [min(p * have, self.total) for p in range(count)]
        stop = [min((p + 1) * have, self.total) for p in range(count)]
        owned = Owned(tuple(p * have for p in range(count)), tuple(start), tuple(stop))
        want = self.width(count)
        ends = tuple(min((p + 1) * want, self.total) for p in range(count))
        return plan_exchange((owned,), Window(tuple(p * want for p in range(count)), ends, want))

    def width(self, count: int) -> int:
        """Count the elements of a result's tile."""
        return tile_of(self.target, count) * (self.total // self.target)


@dataclass(frozen=True, kw_only=True)
class ReshapePlan(LocalPlan):
    """The plan of a reshape.

    Attributes:
        rounds: the exchanges of rows, on one flat dimension for each group; empty where each device reshapes its own
            tile.
        flat: the shape of the operand's tile with one dimension for each group.
    """

    rounds: tuple[Rounds, ...]
    flat: Shape


@dataclass(frozen=True, eq=False)
class ReshapeOp(OpModel[ReshapePlan]):
    rule: Rule
    groups: tuple[DimGroup, ...]
    rows: tuple[Rows, ...]
    element: str

    def plan(self, split: Split) -> ReshapePlan:
        tile, rounds = split.operand_tile(0), []
        shape = flat = [prod(tile[d] for d in group.source) for group in self.groups]
        for rows in self.rows:
            axes = split.factors[rows.factor]
            if axes and split.mesh.count(axes) != self.rule.factors[rows.factor].full:
                line = Line.of(split, rows.group, axes, "a reshape across tiles")
                width = rows.width(line.count)
                rounds.append(plan_rounds(line, shape, element_type(self.element), rows.exchange(line.count), width))
                shape = [width if d == rows.group else n for d, n in enumerate(shape)]
        collectives = tuple(c for one in rounds for c in one.collectives)
        return ReshapePlan(split, collectives, rounds=tuple(rounds), flat=tuple(flat))

    def emit(self, plan: ReshapePlan, site: Site) -> Sequence[Any]:
        """Flatten each group to one dimension, exchange rows, and reshape to the result's tile."""
        if plan.rounds:
            value = site.op.operands[0]
            with site.before():
                value = hlo.reshape(retype(value.type, plan.flat), value)
                for rounds in plan.rounds:
                    value = exchange_rounds(site, value, rounds)
            site.op.operands[0] = value
        return site.keep()


def groups_of(source: Sequence[int], target: Sequence[int]) -> list[DimGroup]:
    """Find the shortest runs with equal products, major to minor; a dimension of size 1 joins the run before it."""
    out: list[DimGroup] = []
    i = j = 0
    while i < len(source) or j < len(target):
        left: list[int] = []
        right: list[int] = []
        a = b = 1
        while a != b or not (left or right):
            if a <= b and i < len(source):
                left.append(i)
                a, i = a * source[i], i + 1
            else:
                right.append(j)
                b, j = b * target[j], j + 1
        while i < len(source) and source[i] == 1:
            left.append(i)
            i += 1
        while j < len(target) and target[j] == 1:
            right.append(j)
            j += 1
        out.append(DimGroup(tuple(left), tuple(right)))
    return out


def exchanged(source: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether a group is better split over its leading dimensions alone, in separate tiles for each side.

    Devices come in even numbers, mostly: an odd number of rows splits over them only so.
    """
    left, right = next(iter(n for n in source if n > 1), 1), next(iter(n for n in target if n > 1), 1)
    common = gcd(left, right)
    return left != right and (common < min(left, right) or common % 2 == 1)


def reshape(op: Any) -> OpModel[Any] | None:
    source = shape_of(op.operands[0])
    if 0 in source:
        return None
    return _reshape(source, shape_of(op.results[0]), str(op.results[0].type.element_type))


@lru_cache(maxsize=4096)
def _reshape(source: Shape, target: Shape, element: str) -> ReshapeOp:
    build = RuleBuilder([len(source)], [len(target)])
    groups, rows = groups_of(source, target), []
    for number, group in enumerate(groups):
        left, right = [source[d] for d in group.source], [target[d] for d in group.target]
        if exchanged(left, right):
            rows.append(_exchange(build, number, group, left, right))
            continue
        for i, j, size in reshape_factors(left, right):
            build.mapped(size, (0, group.source[i]), (0, group.target[j]))
    # rows that change places cost something: ops through which splits pass for nothing are propagated first
    rule = build.build(Priority.CONTRACTION if rows else Priority.PASS_THROUGH)
    return ReshapeOp(rule, tuple(groups), tuple(rows), element)


def _exchange(build: RuleBuilder, number: int, group: DimGroup, left: Sequence[int], right: Sequence[int]) -> Rows:
    first, second = (next(d for d, n in enumerate(side) if n > 1) for side in (left, right))
    common = gcd(left[first], right[second])
    nests = common > 1 and common in (left[first], right[second])
    factor = windowed_factor(build, left[first], right[second], full=common if nests else 0)
    build.operand(0, group.source[first], factor)
    build.result(0, group.target[second], factor)
    inner = reshape_factors(left, right)[1:] if nests else ()
    for i, j, size in inner:
        part = build.factor(size)
        build.operand(0, group.source[i], part)
        build.result(0, group.target[j], part)
    for dim in {*range(first + 1, len(left))} - {i for i, _, _ in inner}:
        build.operand(0, group.source[dim], build.factor(left[dim], Kind.REPLICATED))
    for dim in {*range(second + 1, len(right))} - {j for _, j, _ in inner}:
        build.result(0, group.target[dim], build.factor(right[dim], Kind.REPLICATED))
    return Rows(number, factor, left[first], right[second], prod(left))


define(
    "stablehlo.reshape",
    reshape,
    note="every dimension that the reshape only splits or merges; otherwise the leading dimension of a run of reshaped "
    "dimensions, whose rows then move between devices",
    sends="rows that move between devices",
    cheap=True,
)
