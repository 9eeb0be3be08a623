"""Replace a concatenate of slices by one splice. Module ``splices`` chooses the concatenates."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.blocks import maker
from shardpass.ir.tensors import ints, operation, shape_of
from shardpass.ops.families.concatenate import Piece, splice_op


def make_splice(op: Any) -> None:
    """Replace the concatenate ``op`` if its operands are slices; erases slices that are then unused."""
    dim = int(ir.IntegerAttr(op.attributes["dimension"]).value)
    slices = [_part(value, dim) for value in op.operands]
    used: dict[Any, int] = {}
    for source, start, limit in slices:
        used[source] = used.get(source, 0) + limit - start
    parts = [
        part if 2 * used[part[0]] >= shape_of(part[0])[dim] else (value, 0, shape_of(value)[dim])
        for part, value in zip(slices, op.operands, strict=True)
    ]
    sources = list(dict.fromkeys(source for source, _, _ in parts))
    pieces = _merged([Piece(sources.index(source), start, limit) for source, start, limit in parts if start < limit])
    cuts = dict.fromkeys(value for (source, _, _), value in zip(parts, op.operands, strict=True) if source != value)
    if not pieces or not cuts:
        return
    with ir.InsertionPoint(op), op.location:
        made = splice_op(sources, pieces, dim, op.results[0].type)
    for name in op.attributes:
        if name != "dimension":
            made.attributes[name] = op.attributes[name]
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
    for value in cuts:
        if next(iter(value.uses), None) is None:
            operation(value.owner).erase()


def _part(value: Any, dim: int) -> tuple[Any, int, int]:
    """Return (array, first, last): the part of an array along ``dim`` that ``value`` is."""
    cut = maker(value)
    if cut is not None and cut.name == "stablehlo.slice":
        source = cut.operands[0]
        others = [n for d, n in enumerate(shape_of(source)) if d != dim]
        start = ints(cut.attributes["start_indices"])[dim]
        if ints(cut.attributes["strides"])[dim] == 1 and others == [
            n for d, n in enumerate(shape_of(value)) if d != dim
        ]:
            return source, start, start + shape_of(value)[dim]
    return value, 0, shape_of(value)[dim]


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Merge adjacent pieces that are contiguous in one array."""
    out: list[Piece] = []
    for piece in pieces:
        if out and (out[-1].operand, out[-1].limit) == (piece.operand, piece.start):
            piece = Piece(piece.operand, out.pop().start, piece.limit)
        out.append(piece)
    return out
