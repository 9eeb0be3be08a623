"""Values that are made again under another sharding, where that receives less than moving them.

A broadcast is smaller before than after it, a conversion to more bits likewise; what an op takes may be at hand where
its result is not; and constants and iota take nothing. So a redistribution climbs from a value to the operands of the
op that made it, while that is cheaper.

State: ``Recipe``, how a value was made, for each op of a cheap family that is parallel along every dimension, and whose
rewrite, if it has one, sends nothing. Its op stays in the module until the end, local as it is.

The price of making a value again is what its operands receive, each moved or made again in turn, a latency for each of
them that moves but the first, and the op's work on the tile (rates: ``splits.assign``). It is asked only where a
move is about to be built, at most ``DEPTH`` ops up: O(2^DEPTH) for ops of two operands, and as a rule a handful.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from shardpass.ir import annotations as names
from shardpass.ops.model import LocalPlan, OpModel, Site, Split
from shardpass.ops.registry import OpDef
from shardpass.ops.splits.assign import LATENCY_BYTES, WORK_PER_BYTE, Side, settle
from shardpass.ops.splits.factors import DimAxes, Kind, Rule, project, unproject
from shardpass.sharding import Sharding

if TYPE_CHECKING:
    from shardpass.partition.partitioner import Held, Partitioner

DEPTH = 4
_NOT_COPIED = (names.SHARDING, names.SCOPE, names.CONFLICT)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``op`` made a value from ``operands``, values of the whole program, as ``rule`` says."""

    op: Any
    model: OpModel[LocalPlan]
    operands: tuple[Any, ...]

    @property
    def rule(self) -> Rule:
        return self.model.rule


def recipe(op: Any, entry: OpDef, model: OpModel[LocalPlan]) -> Recipe | None:
    """How ``op``, not local yet, makes its result; None where it is not made again under another split."""
    rule = model.rule
    if not entry.cheap or len(op.results) != 1 or rule.independent:
        return None
    plain = all(factor.kind is Kind.PARALLEL and not factor.elastic for factor in rule.factors)
    return Recipe(op, model, tuple(op.operands)) if plain else None


def remade(work: Partitioner, held: Held, target: Sharding, move: float, op: Any, cause: str) -> Any | None:
    """``held`` made again under ``target``, before ``op``; None where a move of ``move`` bytes is cheaper."""
    if _price(work, held, target, move, DEPTH) >= move:
        return None
    made, wanted = work.recipes[held.array], _operand_dims(work, held, target)
    dims = held.mesh.dims(target, len(held.shape))
    assert wanted is not None  # it has a price
    assert dims is not None
    sides = [work.values[value] for value in made.operands]
    operands = [
        work.bring(value, side.mesh.sharding(at), op, cause)
        for value, side, at in zip(made.operands, sides, wanted, strict=True)
    ]
    with ir.InsertionPoint(op):
        again = made.op.clone()
    for name in _NOT_COPIED:
        if name in again.attributes:
            del again.attributes[name]
    for index, tile in enumerate(operands):
        again.operands[index] = tile
    result = again.results[0]
    result.set_type(held.kind)
    factors = project(made.rule, made.rule.results[0], held.shape, dims, held.mesh.sizes)
    split = Split.of(made.rule, held.mesh, factors, tuple(side.shape for side in sides), (held.shape,))
    site = Site(again, split, op, work.channel)
    tiles = made.model.emit(made.model.plan(split), site)
    if site.discarded:
        work.dead.append(again)
    return tiles[0]


def _price(work: Partitioner, held: Held, target: Sharding, limit: float, depth: int) -> float:
    """The least price of ``held`` under ``target``, moved or made again; exact only where below ``limit``."""
    best = min(limit, work.price_of(held, target))
    wanted = _operand_dims(work, held, target) if best and depth else None
    if wanted is None:
        return best
    made = work.recipes[held.array]
    total = prod(target.tile_shape(held.shape)) / WORK_PER_BYTE
    moves = 0
    for value, dims in zip(made.operands, wanted, strict=True):
        operand = work.values[value]
        price = _price(work, operand, operand.mesh.sharding(dims), best - total, depth - 1)
        moves += bool(price)
        total += price + (LATENCY_BYTES if price and moves > 1 else 0)
        if total >= best:
            return best
    return total


def _operand_dims(work: Partitioner, held: Held, target: Sharding) -> list[DimAxes] | None:
    """How the operands are split where the result is ``target``; None where it cannot be made so."""
    made = work.recipes.get(held.array)
    dims = None if target.is_maximal else held.mesh.dims(target, len(held.shape))
    if made is None or dims is None:
        return None
    sizes, rule = held.mesh.sizes, made.rule
    operands = [
        Side(work.values[value].shape, dim_map, None, 0)
        for value, dim_map in zip(made.operands, rule.operands, strict=True)
    ]
    factors = project(rule, rule.results[0], held.shape, dims, sizes)
    said = unproject(rule, rule.results[0], held.shape, factors, sizes) == dims
    if not said or settle(rule, operands, factors, sizes) != factors:
        return None
    return [unproject(rule, side.dim_map, side.shape, factors, sizes) for side in operands]
