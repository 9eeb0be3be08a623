"""concatenate, and parts of arrays side by side (``custom_call @shardpass.splice``): one exchange of boxes.

A *splice* is a concatenate whose operands were cut along its dimension, written as one op: ``jnp.roll``, an array
padded by itself, two arrays with their ends exchanged. Its operands are the arrays that were cut, each once; *pieces*
say which elements of which operand the result has, one after the other. ``partition.splices`` makes splices as
partitioning begins; their ``emit`` turns them into StableHLO again, whatever the split. A concatenate is the splice of
whole operands.

Along the dimension every position has a tile of each operand, side by side, and wants its tile of the result. A
piece is a translation: its elements keep their distance to one another, so that it is one ``Owned`` of the exchange.

Example: ``jnp.roll(x, 1)`` of 8 elements on 4 devices is the splice of x[7:8] and x[0:7]. The tile of device p becomes
the elements 2p-1 and 2p of x: of its own it keeps one, and one element goes to the next device, in one permute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import dense_i64, retype, shape_of
from shardpass.ops.families.custom_call import define_target
from shardpass.ops.halo.plans import Line, Rounds, plan_rounds
from shardpass.ops.halo.reach import windowed_factor
from shardpass.ops.halo.rounds import exchange_rounds
from shardpass.ops.halo.transfers import Exchange, Owned, plan_exchange, tile_of, tile_window, tiles
from shardpass.ops.model import LocalPlan, OpModel, Shape, Shapes, Site, Split
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Priority, Rule, RuleBuilder
from shardpass.ops.tiles.boxes import cut

SPLICE, DIMENSION, PIECES = "shardpass.splice", "shardpass.dimension", "shardpass.pieces"


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice of an operand along the concatenated dimension: elements ``start`` up to ``limit``."""

    operand: int
    start: int
    limit: int


@dataclass(frozen=True, slots=True)
class Joint:
    """The pieces, in order, along dimension ``dim``; ``sizes``: of the operands along that dimension."""

    dim: int
    pieces: tuple[Piece, ...]
    sizes: Shape

    @property
    def trivial(self) -> bool:
        """Whether the result is one whole operand."""
        return len(self.sizes) == 1 and self.pieces == (Piece(0, 0, self.sizes[0]),)

    def exchange(self, count: int) -> Exchange:
        """Plan the exchange from the operands' tiles, side by side on a position, to the result's tiles."""
        return _exchange(self, count)


@lru_cache(maxsize=4096)
def _exchange(joint: Joint, count: int) -> Exchange:
    tile = [tile_of(size, count) for size in joint.sizes]
    owned: list[Owned] = []
    offset = 0
    for piece in joint.pieces:
        size, shift = joint.sizes[piece.operand], sum(tile[: piece.operand])
        owned.append(tiles(size, count, offset, shift, piece.start, piece.limit))
        offset += piece.limit - piece.start
    return plan_exchange(tuple(owned), tile_window(offset, count))


@dataclass(frozen=True, kw_only=True)
class SplicePlan(LocalPlan):
    """The plan for concatenating under one split.

    ``rounds``: the communication rounds that build the result's tile; None if no communication is needed.
    """

    rounds: Rounds | None


@dataclass(frozen=True, eq=False)
class ConcatenateOp(OpModel[SplicePlan]):
    rule: Rule
    joint: Joint
    element: str

    def plan(self, split: Split) -> SplicePlan:
        dim = self.joint.dim
        axes = split.results[0][dim]
        if not axes or self.joint.trivial:
            return SplicePlan(split, rounds=None)
        cause = "a roll across tiles" if self._rolls else "a concatenation across tiles"
        line, tile = Line.of(split, dim, axes, cause), split.result_tile(0)
        rounds = plan_rounds(line, tile, element_type(self.element), self.joint.exchange(line.count), tile[dim])
        return SplicePlan(split, rounds.collectives, rounds=rounds)

    @property
    def _rolls(self) -> bool:
        return False

    def emit(self, plan: SplicePlan, site: Site) -> Sequence[Any]:
        """Concatenate the tiles of the operands, then exchanges parts with other devices."""
        if plan.rounds is None:
            return site.keep()
        out, dim = site.op.results[0], self.joint.dim
        shape = list(plan.split.result_tile(0))
        shape[dim] = sum(shape_of(value)[dim] for value in site.op.operands)
        out.set_type(retype(out.type, shape))
        with site.after():
            return [exchange_rounds(site, out, plan.rounds)]


@dataclass(frozen=True, eq=False)
class SpliceOp(ConcatenateOp):
    """The model of a splice, which is rewritten as StableHLO even where no dimension is split."""

    @property
    def _rolls(self) -> bool:
        return len(self.joint.sizes) == 1

    def emit(self, plan: SplicePlan, site: Site) -> Sequence[Any]:
        values, joint = list(site.op.operands), self.joint
        site.discard()
        if joint.trivial:
            return [values[0]]
        with site.after():
            if plan.rounds is not None:
                return [exchange_rounds(site, _beside(values, joint.dim), plan.rounds)]
            return [_beside([cut(values[p.operand], joint.dim, p.start, p.limit) for p in joint.pieces], joint.dim)]


def _beside(values: list[Any], dim: int) -> Any:
    return values[0] if len(values) == 1 else hlo.concatenate(values, dim)


def splice_op(values: list[Any], pieces: list[Piece], dim: int, result: Any) -> Any:
    """Create a splice of result type ``result`` at the current insertion point and location."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.Operation.create(
        "stablehlo.custom_call",
        results=[result],
        operands=values,
        attributes={
            "call_target_name": ir.StringAttr.get(SPLICE),
            DIMENSION: ir.IntegerAttr.get(i64, dim),
            PIECES: dense_i64([[p.operand, p.start, p.limit] for p in pieces]),
        },
    )


def concatenate(op: Any) -> OpModel[Any]:
    dim = int(ir.IntegerAttr(op.attributes["dimension"]).value)
    shapes = tuple(shape_of(value) for value in op.operands)
    pieces = tuple(Piece(i, 0, shape[dim]) for i, shape in enumerate(shapes))
    joint = Joint(dim, pieces, tuple(shape[dim] for shape in shapes))
    return _concatenate(shapes, shape_of(op.results[0]), joint, str(op.results[0].type.element_type))


def splice(op: Any) -> OpModel[Any]:
    rows = np.array(ir.DenseIntElementsAttr(op.attributes[PIECES]), dtype=np.int64).tolist()
    dim = int(ir.IntegerAttr(op.attributes[DIMENSION]).value)
    shapes = tuple(shape_of(value) for value in op.operands)
    joint = Joint(dim, tuple(Piece(*row) for row in rows), tuple(shape[dim] for shape in shapes))
    return _splice(shapes, shape_of(op.results[0]), joint, str(op.results[0].type.element_type))


@lru_cache(maxsize=4096)
def _concatenate(shapes: Shapes, target: Shape, joint: Joint, element: str) -> ConcatenateOp:
    return ConcatenateOp(_rule(shapes, target), joint, element)


@lru_cache(maxsize=4096)
def _splice(shapes: Shapes, target: Shape, joint: Joint, element: str) -> SpliceOp:
    return SpliceOp(_rule(shapes, target), joint, element)


def _rule(shapes: Shapes, target: Shape) -> Rule:
    build = RuleBuilder([len(target)] * len(shapes), [len(target)])
    for dim, size in enumerate(target):
        factor = windowed_factor(build, size, *(shape[dim] for shape in shapes))
        build.along(dim, factor, operands=len(shapes))
    return build.build(Priority.PASS_THROUGH)


define(
    "stablehlo.concatenate",
    concatenate,
    note="every dimension, including the concatenated one; where the operands are slices of one array (a roll), only "
    "elements that cross the border of a tile move",
    sends="parts that move between devices",
)
define_target(SPLICE, splice)
