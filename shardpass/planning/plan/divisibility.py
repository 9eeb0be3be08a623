"""Find the sizes that devices do not divide and that make a plan redistribute: 30 heads over 8 devices.

Problem: models merge heads and their features in one dimension, which an axis of the mesh divides where it does not
divide the heads. A reshape then cannot keep the split, or keeps it on the features, and a later op pays for it. The
redistribution names neither the size nor the reshape.

1. A redistribution between an uneven split of a dimension and a part of the same axes, which divides it, names that
   dimension.
2. Every other redistribution changes the splits of some dimensions. Each of them is followed back through the factors
   of the ops that made it, to the first reshape between one merged dimension and several whose leading size the shards
   of the merged dimension do not divide. The reshape may be the op that needs the redistribution.
3. A leading size of 1 counts only where another reshape of the program cuts a dimension, split over the same axes, into
   several parts of the same features: those are heads, and so is the 1. Otherwise ``x[:, None]`` would be a cause.
4. Reshapes that exchange rows between devices name themselves.

Example on the mesh model=8: 1920 split over 'model' becomes 30x64. 8 does not divide 30, and 2 does: the plan keeps
half of the heads on each device and gathers the rest. 24 or 32 heads would divide.

O(redistributions x ops) at worst: each walk visits a dimension of a value once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from shardpass.ops.families.reshape import groups_of
from shardpass.ops.splits.factors import Axes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.plan.costly import Redistribution, every_op, redistributions
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.listed import operand_steps, operands_of
from shardpass.planning.price.steps import OpPlan, Reshard, SplitPlan
from shardpass.program.program import Array, Op, OpKind

RESHAPE = "stablehlo.reshape"


@dataclass(frozen=True, slots=True)
class Undivided:
    """A dimension ``dim`` of ``array`` at ``op``, which ``axes`` of ``mesh`` cannot split into equal parts.

    ``op``: None for a result of the program. ``bytes``: what a device receives because of it in one run.
    """

    op: Op | None
    array: Array
    dim: int
    axes: Axes
    mesh: PrimeMesh
    bytes: int = 0

    @property
    def count(self) -> int:
        return self.mesh.count(self.axes)

    @property
    def size(self) -> int:
        return self.array.shape[self.dim]


def undivided(plan: ProgramPlan) -> list[Undivided]:
    """List the sizes for which the plan redistributes, each once at its op, with the bytes of all that it causes."""
    walk = _Walk(plan)
    total: dict[Undivided, int] = {}
    for one in redistributions(plan):
        if one.reshard.bytes:
            for cause in dict.fromkeys(walk.causes(one)):
                total[cause] = total.get(cause, 0) + one.reshard.bytes * (one.times or 1)
    for op, sent in walk.exchanges():
        for cause in dict.fromkeys(walk.at(op, 0, None)):
            total[cause] = total.get(cause, 0) + sent
    return [replace(cause, bytes=sent) for cause, sent in total.items()]


class _Walk:
    """Finds the op that computes each value, and the split of each reshape's operand."""

    def __init__(self, plan: ProgramPlan) -> None:
        self.program = plan.program
        self.plans: dict[int, OpPlan] = {one.op.number: one for one in every_op(plan.body)}
        self.maker = {value: op for op in self.program.body.every_op() for value in op.results}
        self.heads = set(self._heads())

    def exchanges(self) -> Iterator[tuple[Op, int]]:
        """Yield the reshapes that send rows themselves, with the bytes that a device receives."""
        for one in self.plans.values():
            if isinstance(one, SplitPlan) and one.op.name == RESHAPE and (sent := one.local.collectives):
                yield one.op, sum(each.bytes for each in sent)

    def causes(self, one: Redistribution) -> Iterator[Undivided]:
        """Yield the sizes that cause a redistribution."""
        reshard, mesh = one.reshard, one.reshard.mesh
        have = mesh.dims(reshard.source.sharding, reshard.type.rank)
        want = mesh.dims(reshard.target, reshard.type.rank)
        if have is None or want is None:
            return
        changed = [dim for dim, (a, b) in enumerate(zip(have, want, strict=True)) if a != b]
        for dim in changed:
            axes = max(have[dim], want[dim], key=mesh.count)
            if reshard.type.shape[dim] % mesh.count(axes):
                if min(have[dim], want[dim], key=mesh.count):
                    yield Undivided(one.op, reshard.type, dim, axes, mesh)
                continue
            if one.op is not None and one.op.name == RESHAPE:
                made = reshard.made.array in one.op.results
                yield from self.at(one.op, dim, axes, result=made)
            yield from self._back(reshard.source.array, dim, axes)

    def _back(self, value: int, dim: int, axes: Axes) -> Iterator[Undivided]:
        todo, seen = [(value, dim)], {(value, dim)}
        while todo:
            value, dim = todo.pop()
            op = self.maker.get(value)
            if op is None:
                continue
            if op.name == RESHAPE and (sizes := list(self.at(op, dim, axes, result=True))):
                yield from sizes
                continue
            for earlier in self._before(op, value, dim):
                if earlier not in seen:
                    seen.add(earlier)
                    todo.append(earlier)

    def _before(self, op: Op, value: int, dim: int) -> Iterator[tuple[int, int]]:
        """Yield (operand, dimension) for each operand dimension that shares a factor with ``dim`` of ``value``."""
        if op.kind is OpKind.CONSTRAINT:
            yield op.operands[0], dim
        elif op.kind is OpKind.SPLIT and op.model is not None:
            rule = op.model.rule
            factors = set(rule.results[op.results.index(value)][dim])
            for operand, dims in zip(op.operands, rule.operands, strict=False):
                yield from ((operand, at) for at, own in enumerate(dims) if factors & set(own))

    def at(self, op: Op, dim: int, axes: Axes | None, *, result: bool = False) -> Iterator[Undivided]:
        """Yield the sizes that a reshape has and that its axes do not divide.

        ``dim``: the dimension to examine, of the result if ``result`` is true, otherwise of the operand. ``axes``: the
        axes that split it; None to examine every dimension that the reshape cuts, split as the plan splits it.
        """
        source, target = self.program.array(op.operands[0]), self.program.array(op.results[0])
        mine = self._given(op)
        for merged, parts in _merged(source.shape, target.shape):  # one dimension is cut
            if axes is None or (dim in parts if result else dim == merged):
                over = mine[merged] if axes is None or set(mine[merged]) & set(axes) else ()
                yield from self._leading(op, target, parts, over)
        if axes is None:
            return
        for merged, parts in _merged(target.shape, source.shape):  # several are merged
            if source.shape[parts[0]] > 1 and (dim == merged if result else dim in parts):
                yield from self._leading(op, source, parts, axes)

    def _leading(self, op: Op, array: Array, parts: Sequence[int], axes: Axes) -> Iterator[Undivided]:
        first, size = parts[0], array.shape[parts[0]]
        rest = tuple(array.shape[dim] for dim in parts[1:])
        if size % op.mesh.count(axes) and (size > 1 or (rest, axes) in self.heads):
            yield Undivided(op, array, first, axes, op.mesh)

    def _heads(self) -> Iterator[tuple[tuple[int, ...], Axes]]:
        """Yield the features of several heads, with the axes that split heads and features as one dimension."""
        for op in self.program.body.every_op():
            if op.name == RESHAPE and op.number in self.plans:
                source, target = self.program.array(op.operands[0]), self.program.array(op.results[0])
                given = self._given(op)
                for merged, parts in _merged(source.shape, target.shape):
                    if given[merged] and target.shape[parts[0]] > 1:
                        yield tuple(target.shape[dim] for dim in parts[1:]), given[merged]

    def _given(self, op: Op) -> Sequence[Axes]:
        """Return the split of a reshape's operand before any redistribution for it."""
        rank = self.program.array(op.operands[0]).rank
        plan = self.plans.get(op.number)
        if not isinstance(plan, SplitPlan):
            return ((),) * rank
        first = next((step for step in operand_steps(plan) if isinstance(step, Reshard)), None)
        sharding = operands_of(plan)[0].copy.sharding if first is None else first.source.sharding
        return op.mesh.dims(sharding, rank) or ((),) * rank


def _merged(source: Sequence[int], target: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each dimension of ``source`` that becomes several of ``target``, with these; a 1 may lead them."""
    for group in groups_of(source, target):
        merged = [dim for dim in group.source if source[dim] > 1]
        parts = [dim for dim in group.target if target[dim] > 1]
        if len(merged) != 1 or not parts:
            continue
        if parts[0] and target[parts[0] - 1] == 1:
            parts = [parts[0] - 1, *parts]
        if len(parts) > 1 and prod(target[dim] for dim in parts) == source[merged[0]]:
            yield merged[0], tuple(parts)
