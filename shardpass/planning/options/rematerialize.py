"""Values that are computed again under another sharding, where that receives less than moving them.

A broadcast is smaller before than after it, a conversion to more bits likewise; what an op takes may be at hand where
its result is not; and constants and iota take nothing. So a redistribution climbs from a value to the operands of the
op that made it, while that is cheaper. (XLA calls it rematerialization where a value is computed again to save memory;
here it saves bytes on the network.)

State: ``makers``, the op that made an array, for each op that is cheap (``OpDef.cheap``), parallel along every
dimension, and has one result. A value that several ops make, as in a folded program (``fold``), has no maker: the ops
of a chain that stand for one another would be left out.

The price of computing a value again is that of its operands, each moved or computed again in turn, and of the op's work
on the tile, in seconds (``clock``). It is asked only where a move is about to be planned, at most ``DEPTH`` ops up:
O(2^DEPTH) for ops of two operands, and as a rule a handful.

Example on x=2: ``%c = convert %a : f32[8] <- bf16[8]`` is there in rows and wanted whole. Moving %c receives 16 bytes;
moving %a receives 8 and converts twice the elements: %a is gathered, and the conversion is done again on the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from shardpass.ops.border import plan_of
from shardpass.ops.model import Split
from shardpass.ops.splits.assign import Side, settle
from shardpass.ops.splits.factors import DimAxes, Kind, Rule, project, unproject
from shardpass.planning.options.copies import Copies, PlacedArray
from shardpass.planning.price.borders import Borders
from shardpass.planning.price.steps import Copy, Recompute, Reshard, Step
from shardpass.program.program import Op
from shardpass.sharding import Sharding

DEPTH = 4


class Movers:
    """Reshard arrays: from the nearest copy, or by recomputing them.

    ``shared``: of values, the copy that several users start from; ``used``: those that were made.
    """

    def __init__(self, copies: Copies, borders: Mapping[int, Borders], shared: Mapping[int, Sharding]) -> None:
        self.copies, self.borders, self.shared = copies, borders, shared
        self.used: dict[int, Sharding] = {}
        self.makers: dict[int, Op] = {}

    def made_by(self, op: Op) -> None:
        """Record ``op`` as one to compute again, if it is cheap and parallel. To be called before its results
        have copies.
        """
        again = [value for value in op.results if self.copies.is_made(value)]
        if again:  # one op that makes the value is not all that leads to it
            for value in again:
                self.makers.pop(value, None)
            return
        if not op.cheap or len(op.results) != 1 or op.model is None:
            return
        if _is_parallel(op.model.rule):
            self.makers[op.results[0]] = op

    def bring(self, value: int, target: Sharding, cause: str, steps: list[Step]) -> Copy:
        """Return the copy of ``value`` under ``target``. If it does not exist yet, the steps that make it are
        appended to ``steps``.
        """
        placed = self.copies.placed[value]
        if placed.sharding == target:
            return placed.copy
        if not self.copies.has(placed.array, target):
            self._share(value, placed, target, cause, steps)
            price, source = self.copies.nearest(placed, target)
            if self._price(placed, target, price, DEPTH) < price:
                self._again(placed, target, cause, steps)
            else:
                start = placed.under(source)
                received = self.copies.bytes(placed, source, target)
                steps.append(Reshard(start, target, placed.type, placed.mesh, received, cause, placed.array))
            self.copies.add(placed.array, target)
        return Copy(placed.array, target)

    def _share(self, value: int, placed: PlacedArray, target: Sharding, cause: str, steps: list[Step]) -> None:
        """Create the copy of ``value`` that its users share, if ``target`` is closer to this copy than to all
        others.
        """
        shared = self.shared.get(value)
        if shared is None or shared == target or self.copies.has(placed.array, shared):
            return
        if self.copies.between(placed, shared, target) < self.copies.price(placed, target):
            self.used[value] = shared
            self.bring(value, shared, cause, steps)

    def _again(self, placed: PlacedArray, target: Sharding, cause: str, steps: list[Step]) -> None:
        op, wanted = self.makers[placed.array], self._operand_dims(placed, target)
        dims = placed.mesh.dims(target, placed.type.rank)
        if op.model is None or wanted is None or dims is None:  # it would have no price
            raise ValueError(f"{op.name} cannot be computed again under {target}")
        sides = [self.copies.placed[value] for value in op.operands]
        operands = tuple(
            self.bring(value, side.mesh.sharding(at), cause, steps)
            for value, side, at in zip(op.operands, sides, wanted, strict=True)
        )
        rule = op.model.rule
        factors = project(rule, rule.results[0], placed.shape, dims, placed.mesh.sizes)
        shapes = tuple(side.shape for side in sides), (placed.shape,)
        split = Split.of(rule, placed.mesh, factors, *shapes, self.copies.clock.machine)
        steps.append(Recompute(op, Copy(placed.array, target), plan_of(op.model, split), operands))

    def _price(self, placed: PlacedArray, target: Sharding, limit: float, depth: int) -> float:
        """Return the least seconds to move ``placed`` to ``target`` or compute it again; exact only below
        ``limit``.
        """
        best = min(limit, self.copies.price(placed, target))
        wanted = self._operand_dims(placed, target) if best and depth else None
        if wanted is None:
            return best
        op = self.makers[placed.array]
        elements, written = prod(target.tile_shape(placed.shape)), any(self.borders[op.number].writes)
        total = self.copies.clock.made(elements, placed.type.element, written)
        for value, dims in zip(op.operands, wanted, strict=True):
            operand = self.copies.placed[value]
            total += self._price(operand, operand.mesh.sharding(dims), best - total, depth - 1)
            if total >= best:
                return best
        return total

    def _operand_dims(self, placed: PlacedArray, target: Sharding) -> list[DimAxes] | None:
        """Return the splits of the operands for which the result is split as ``target``; None if there are none."""
        op = self.makers.get(placed.array)
        dims = None if target.is_maximal else placed.mesh.dims(target, placed.type.rank)
        if op is None or op.model is None or dims is None:
            return None
        sizes, rule = placed.mesh.sizes, op.model.rule
        operands = [
            Side(operand.shape, dim_map, None, operand.type.element)
            for operand, dim_map in zip((self.copies.placed[v] for v in op.operands), rule.operands, strict=True)
        ]
        factors = project(rule, rule.results[0], placed.shape, dims, sizes)
        alike = unproject(rule, rule.results[0], placed.shape, factors, sizes) == dims
        if not alike or settle(rule, operands, factors, sizes) != factors:
            return None
        return [unproject(rule, side.dim_map, side.shape, factors, sizes) for side in operands]


def _is_parallel(rule: Rule) -> bool:
    """Return whether every device computes its tile of the result from its tiles of the operands."""
    return not rule.independent and all(one.kind is Kind.PARALLEL and not one.elastic for one in rule.factors)
