"""reshape: runs of dimensions that hold the same elements on both sides, each split by itself.

State: ``Group``, a run of operand dimensions and the run of result dimensions with the same product. A group is

1. nested: its cut points nest, so parts of dimensions are factors (8 -> 2x4 has the factors 2 and 4), and every split
   of a leading part is the same elements on both sides: nothing moves;
2. exchanged: the leading dimensions have little in common (6x4 -> 8x3, or an odd number of rows): each side is split
   over its leading dimension in tiles of its own, and rows change places as one flat dimension (``transfers``). Where
   the tiles happen to hold the same elements nothing moves either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import retype, shape_of
from shardpass.ops.families.broadcast_transpose import reshape_factors
from shardpass.ops.halo.reach import windowed_factor
from shardpass.ops.halo.transfers import Exchange, Held, Window, plan_exchange, tile_of
from shardpass.ops.halo.windows import Halos
from shardpass.ops.local import Local
from shardpass.ops.registry import define
from shardpass.ops.splits.assign import LATENCY_BYTES
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh


@dataclass(frozen=True, slots=True)
class Group:
    """Dimensions ``source`` of the operand and ``target`` of the result, by index, that hold the same elements."""

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

    def plan(self, count: int) -> Exchange:
        have = tile_of(self.source, count) * (self.total // self.source)
        start = [min(p * have, self.total) for p in range(count)]
        stop = [min((p + 1) * have, self.total) for p in range(count)]
        held = Held(tuple(p * have for p in range(count)), tuple(start), tuple(stop))
        want = self.width(count)
        ends = tuple(min((p + 1) * want, self.total) for p in range(count))
        return plan_exchange((held,), Window(tuple(p * want for p in range(count)), ends, want))

    def width(self, count: int) -> int:
        """Elements of a result's tile."""
        return tile_of(self.target, count) * (self.total // self.target)


@dataclass(frozen=True, slots=True)
class ReshapeRule(Rule):
    groups: tuple[Group, ...] = ()
    rows: tuple[Rows, ...] = ()
    element_type: str = "f32"


def groups_of(source: Sequence[int], target: Sequence[int]) -> list[Group]:
    """The shortest runs with equal products, major to minor; dimensions of size 1 go with the run before them."""
    out: list[Group] = []
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
        out.append(Group(tuple(left), tuple(right)))
    return out


def exchanged(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether a group is better split over its leading dimensions alone, each side in tiles of its own.

    Devices come in even numbers, mostly: an odd number of rows splits over them no other way.
    """
    left, right = next(iter(n for n in source if n > 1), 1), next(iter(n for n in target if n > 1), 1)
    common = gcd(left, right)
    return left != right and (common < min(left, right) or common % 2 == 1)


def reshape(op: Any) -> Rule | None:
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    if 0 in source:
        return None
    build = RuleBuilder([len(source)], [len(target)])
    groups, rows = groups_of(source, target), []
    for number, group in enumerate(groups):
        left, right = [source[d] for d in group.source], [target[d] for d in group.target]
        if exchanged(left, right):
            rows.append(_exchange(build, number, group, left, right))
            continue
        for i, j, size in reshape_factors(left, right):
            factor = build.factor(size)
            build.operand(0, group.source[i], factor)
            build.result(0, group.target[j], factor)
    # rows that change places cost something: what passes through for nothing is propagated first
    plain = build.build(Priority.CONTRACTION if rows else Priority.PASS_THROUGH)
    return ReshapeRule(
        plain.factors,
        plain.operands,
        plain.results,
        plain.priority,
        groups=tuple(groups),
        rows=tuple(rows),
        element_type=str(op.results[0].type.element_type),
    )


def _exchange(build: RuleBuilder, number: int, group: Group, left: Sequence[int], right: Sequence[int]) -> Rows:
    first, second = (next(d for d, n in enumerate(side) if n > 1) for side in (left, right))
    factor = windowed_factor(build, left[first], right[second])
    build.operand(0, group.source[first], factor)
    build.result(0, group.target[second], factor)
    for dim in range(first + 1, len(left)):
        build.operand(0, group.source[dim], build.factor(left[dim], Kind.REPLICATED))
    for dim in range(second + 1, len(right)):
        build.result(0, group.target[dim], build.factor(right[dim], Kind.REPLICATED))
    return Rows(number, factor, left[first], right[second], prod(left))


def localize_reshape(local: Local) -> None:
    """Each group as one flat dimension; exchanged groups change rows; then the op's own reshape."""
    op, rule = local.op, local.rule
    assert isinstance(rule, ReshapeRule)
    split = [(rows, local.factors[rows.factor]) for rows in rule.rows if rows.factor in local.factors]
    if not split:
        return
    value = op.operands[0]
    tile = shape_of(value)
    with local.before():
        flat = [prod(tile[d] for d in group.source) for group in rule.groups]
        value = hlo.reshape(retype(value.type, flat), value)
        for rows, axes in split:
            halos = Halos(local, rows.group, axes, "a reshape across tiles")
            value = halos.exchange(value, rows.plan(halos.count), rows.width(halos.count))
    op.operands[0] = value


def reshape_bytes(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    assert isinstance(rule, ReshapeRule)
    split = [(rows, mesh.count(factors[rows.factor])) for rows in rule.rows if factors.get(rows.factor)]
    if not split:
        return 0
    whole = prod(shape_of(op.results[0]))
    parts = prod(mesh.count(axes) for axes in factors.values())
    total = 0
    for rows, count in split:
        plan = rows.plan(count)
        cross = -(-whole * count // (rows.total * parts))
        received = element_type(rule.element_type).bytes(plan.received * cross)
        total += received + LATENCY_BYTES * max(0, len(plan.rounds) - 1)
    return total


define(
    "stablehlo.reshape",
    "reshape",
    reshape,
    localize_reshape,
    reshape_bytes,
    note="every dimension that the reshape only splits or merges; otherwise the leading dimension of a run of reshaped "
    "dimensions, whose rows then move between devices",
)
