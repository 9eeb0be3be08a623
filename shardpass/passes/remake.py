"""Values that are made again under another sharding, where that receives less than moving them.

A broadcast is smaller before than after it, a conversion to more bits likewise; and what an op takes may be at hand
where its result is not. So a redistribution climbs from a value to the operands of the op that made it, while that is
cheaper.

State: ``Recipe``, how a value was made, for each op whose local form differs from the whole one in its types alone,
and that is parallel along every dimension. Its op stays in the module as it is.

The price of making a value again is what its operands receive, each moved or made again in turn, a latency for each of
them that moves but the first, and the op's work on the tile (``ops.assign`` has the rates). It is asked only where a
move is about to be built, at most ``DEPTH`` ops up: O(2^DEPTH) for ops of two operands, and as a rule a handful.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from shardpass.ops.assign import LATENCY_BYTES, WORK_PER_BYTE
from shardpass.ops.factors import DimAxes, Kind, Rule, project, unproject
from shardpass.passes import annotations as names
from shardpass.sharding import Sharding

if TYPE_CHECKING:
    from shardpass.passes.partitioner import Held, Partitioner

DEPTH = 4
_NOT_COPIED = (names.SHARDING, names.SCOPE, names.CONFLICT)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``op`` made a value from ``operands``, values of the whole program, as ``rule`` says."""

    op: Any
    rule: Rule
    operands: tuple[Any, ...]


def recipe(op: Any, rule: Rule, operands: tuple[Any, ...]) -> Recipe | None:
    """How ``op``, that no rewrite changes, made its result; None where that cannot be said with another split."""
    parallel = all(factor.kind is Kind.PARALLEL for factor in rule.factors)
    plain = operands and len(op.results) == 1 and not len(op.regions) and not rule.independent
    return Recipe(op, rule, operands) if parallel and plain else None


def remade(work: Partitioner, held: Held, target: Sharding, move: float, op: Any, cause: str) -> Any | None:
    """``held`` made again under ``target``, before ``op``; None where a move of ``move`` bytes is cheaper."""
    if _price(work, held, target, move, DEPTH) >= move:
        return None
    made, wanted = work.recipes[held.array], _operand_dims(work, held, target)
    assert wanted is not None  # it has a price
    operands = [
        work.bring(value, work.values[value].mesh.sharding(dims), op, cause)
        for value, dims in zip(made.operands, wanted, strict=True)
    ]
    attributes = {name: made.op.attributes[name] for name in made.op.attributes if name not in _NOT_COPIED}
    with ir.InsertionPoint(op), made.op.location:
        again = ir.Operation.create(made.op.name, [work.tile_type(held.kind, target)], operands, attributes)
    return again.result


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
    factors = project(rule, rule.results[0], held.shape, dims, sizes)
    if unproject(rule, rule.results[0], held.shape, factors, sizes) != dims:
        return None
    return [
        unproject(rule, dim_map, work.values[value].shape, factors, sizes)
        for value, dim_map in zip(made.operands, rule.operands, strict=True)
    ]
