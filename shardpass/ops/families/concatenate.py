"""concatenate, and parts of arrays side by side (``custom_call @shardpass.splice``): one exchange of boxes.

A splice is a concatenate whose operands were cut along its dimension, written as one op: ``jnp.roll``, an array padded
by itself, two arrays with their ends exchanged. Its operands are the arrays that were cut, each once; *pieces* say
which elements of which of them the result holds, one after the other. ``partition.splices`` makes it as partitioning
begins; here it becomes StableHLO again, whatever its split.

Along the dimension every position holds a tile of each operand, side by side, and wants its tile of the result. A
piece is a translation: its elements keep their distance to one another, so that it is one ``Held`` of the exchange.
A concatenate is the splice of whole operands.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import dense_i64, retype, shape_of
from shardpass.ops.families.custom_call import define_target
from shardpass.ops.halo.reach import windowed_factor
from shardpass.ops.halo.transfers import Exchange, Held, plan_exchange, tile_of, tile_window, tiles
from shardpass.ops.halo.windows import Halos
from shardpass.ops.local import Local
from shardpass.ops.registry import define
from shardpass.ops.splits.assign import LATENCY_BYTES
from shardpass.ops.splits.factors import Axes, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles.boxes import cut

SPLICE, DIMENSION, PIECES = "shardpass.splice", "shardpass.dimension", "shardpass.pieces"


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements ``start`` up to ``limit`` of an operand, along the dimension that is put together."""

    operand: int
    start: int
    limit: int


@dataclass(frozen=True, slots=True)
class SpliceRule(Rule):
    """A rule with the pieces along dimension ``dim``; ``sizes``: of the operands along it, ``shape``: the result's."""

    dim: int = 0
    pieces: tuple[Piece, ...] = ()
    sizes: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    element: str = ""

    @property
    def trivial(self) -> bool:
        """Whether it is one whole operand."""
        return self.pieces == (Piece(0, 0, self.shape[self.dim]),) and len(self.sizes) == 1

    def exchange(self, count: int) -> Exchange:
        """From the operands' tiles, side by side on a position, to the result's tiles."""
        tile = [tile_of(size, count) for size in self.sizes]
        held: list[Held] = []
        offset = 0
        for piece in self.pieces:
            size, shift = self.sizes[piece.operand], sum(tile[: piece.operand])
            held.append(tiles(size, count, offset, shift, piece.start, piece.limit))
            offset += piece.limit - piece.start
        return plan_exchange(tuple(held), tile_window(offset, count))


def splice_op(values: list[Any], pieces: list[Piece], dim: int, result: Any) -> Any:
    """The op, of result type ``result``, at the current insertion point and location."""
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


def concatenate(op: Any) -> Rule | None:
    dim = int(ir.IntegerAttr(op.attributes["dimension"]).value)
    sizes = [shape_of(value)[dim] for value in op.operands]
    return _rule(op, dim, [Piece(i, 0, n) for i, n in enumerate(sizes)])


def splice(op: Any) -> Rule | None:
    rows = np.array(ir.DenseIntElementsAttr(op.attributes[PIECES]), dtype=np.int64).tolist()
    return _rule(op, int(ir.IntegerAttr(op.attributes[DIMENSION]).value), [Piece(*row) for row in rows])


def _rule(op: Any, along: int, pieces: list[Piece]) -> SpliceRule:
    shapes, target = [shape_of(value) for value in op.operands], shape_of(op.results[0])
    build = RuleBuilder([len(target)] * len(shapes), [len(target)])
    for dim, size in enumerate(target):
        factor = windowed_factor(build, size, *(shape[dim] for shape in shapes))
        build.result(0, dim, factor)
        for index in range(len(shapes)):
            build.operand(index, dim, factor)
    plain = build.build(Priority.PASS_THROUGH)
    return SpliceRule(
        **{field.name: getattr(plain, field.name) for field in fields(Rule)},
        dim=along,
        pieces=tuple(pieces),
        sizes=tuple(shape[along] for shape in shapes),
        shape=target,
        element=str(op.results[0].type.element_type),
    )


def localize_concatenate(local: Local) -> list[Any] | None:
    """The op puts the tiles of its operands side by side; then parts change places."""
    op, rule = local.op, local.rule
    assert isinstance(rule, SpliceRule)
    if not local.result_dims[0][rule.dim] or rule.trivial:
        return None
    tile = list(local.tile(0))
    tile[rule.dim] = sum(shape_of(value)[rule.dim] for value in op.operands)
    op.results[0].set_type(retype(op.results[0].type, tile))
    with local.after():
        return [_exchanged(local, op.results[0], "a concatenation across tiles")]


def localize_splice(local: Local) -> list[Any]:
    rule, values = local.rule, list(local.op.operands)
    assert isinstance(rule, SpliceRule)
    with local.after():
        if not local.result_dims[0][rule.dim]:
            return [_beside([cut(values[p.operand], rule.dim, p.start, p.limit) for p in rule.pieces], rule.dim)]
        cause = "a roll across tiles" if len(values) == 1 else "a concatenation across tiles"
        return [_exchanged(local, _beside(values, rule.dim), cause)]


def _exchanged(local: Local, value: Any, cause: str) -> Any:
    """The result's tile; ``value``: the operands' tiles side by side."""
    rule = local.rule
    assert isinstance(rule, SpliceRule)
    halos = Halos(local, rule.dim, local.result_dims[0][rule.dim], cause)
    return halos.exchange(value, rule.exchange(halos.count), local.tile(0)[rule.dim])


def _beside(values: list[Any], dim: int) -> Any:
    return values[0] if len(values) == 1 else hlo.concatenate(values, dim)


def splice_bytes(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    """Bytes that a device receives, latencies included from the second collective on."""
    assert isinstance(rule, SpliceRule)
    split = [mesh.count(factors.get(dims[0], ())) for dims in rule.results[0]]
    if split[rule.dim] == 1 or rule.trivial:
        return 0
    plan = rule.exchange(split[rule.dim])
    cross = 1
    for dim, (size, count) in enumerate(zip(rule.shape, split, strict=True)):
        cross *= 1 if dim == rule.dim else tile_of(size, count)
    return element_type(rule.element).bytes(plan.received * cross) + LATENCY_BYTES * max(0, len(plan.rounds) - 1)


define(
    "stablehlo.concatenate",
    "concatenate",
    concatenate,
    localize_concatenate,
    splice_bytes,
    note="every dimension, including the concatenated one; where the operands are slices of one array (a roll), only "
    "elements that cross the border of a tile move",
)
define_target(SPLICE, splice, localize_splice, splice_bytes)
