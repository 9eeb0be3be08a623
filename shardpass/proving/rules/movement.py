"""Ops that move elements and compute nothing: the terms stay, the pieces move."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from shardpass.ir.tensors import ints
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.extended import dilated
from shardpass.proving.relations.pieces import Content, Ints, Piece, broadcast_piece, made, minus
from shardpass.proving.relations.reshaping import reshaped
from shardpass.proving.relations.rows import image, of_each, spread
from shardpass.proving.rules.integers import known_numbers


def attribute(op: Any, name: str) -> int:
    return int(op.attributes[name].value)


def same(site: Site) -> list[Content]:
    """Return the operands as the results."""
    result = [
        Content(*type_of(value), operand.pieces) for value, operand in zip(site.op.results, site.operands, strict=True)
    ]
    for one, operand in zip(result, site.operands, strict=True):
        if one.shape != operand.shape or one.element != operand.element:
            raise Unknown("its result has another type than its operand")
    return result


def broadcast(site: Site) -> list[Content]:
    (operand,) = site.operands
    shape, _ = type_of(site.op.results[0])
    return [site.result([broadcast_piece(p, operand.shape, shape, _dims(site)) for p in operand.pieces])]


def broadcast_in_front(site: Site) -> list[Content]:
    """Relate ``stablehlo.broadcast``, which adds dimensions in front."""
    (operand,) = site.operands
    shape, _ = type_of(site.op.results[0])
    dims = range(len(shape) - operand.rank, len(shape))
    return [site.result([broadcast_piece(p, operand.shape, shape, list(dims)) for p in operand.pieces])]


def _dims(site: Site) -> tuple[int, ...]:
    return ints(site.op.attributes["broadcast_dimensions"])


def transpose(site: Site) -> list[Content]:
    order = ints(site.op.attributes["permutation"])
    shape, _ = type_of(site.op.results[0])
    return [site.result([p.columns(order, shape) for p in site.operands[0].pieces])]


def reshape(site: Site) -> list[Content]:
    shape, _ = type_of(site.op.results[0])
    return [site.result(reshaped(site.terms, site.operands[0], shape))]


def cut(piece: Piece, start: Ints, sizes: Sequence[int], stride: Sequence[int] | None = None) -> Piece | None:
    """Return the positions start, start + stride, ... of ``piece``; ``start`` is [devices, rank]."""
    b = piece.b + image(piece.a, start)
    most, step = np.array(sizes, np.int64), np.array([1] * len(sizes) if stride is None else stride, np.int64)
    lo = of_each(lambda low, by: np.maximum(-((by - low) // step), 0), piece.lo, start)
    hi = of_each(lambda high, by: np.minimum(-((by - high) // step), most), piece.hi, start)
    return made(piece.term, piece.a * step, b, lo, hi, piece.on)


def slice_(site: Site) -> list[Content]:
    attributes = site.op.attributes
    shape, _ = type_of(site.op.results[0])
    start = spread(ints(attributes["start_indices"]), site.devices)
    strides = ints(attributes["strides"])
    return [site.result([cut(p, start, shape, strides) for p in site.operands[0].pieces])]


def dynamic_slice(site: Site) -> list[Content]:
    operand, *starts = site.operands
    shape, _ = type_of(site.op.results[0])
    start = clamped(site, starts, [n - k for n, k in zip(operand.shape, shape, strict=True)])
    return [site.result([cut(p, start, shape) for p in operand.pieces])]


def clamped(site: Site, starts: Sequence[Content], most: Sequence[int]) -> Ints:
    """Return the start positions of each device, [devices, rank]. Raises Unknown where they are not known."""
    result = np.zeros((site.devices, len(starts)), np.int64)
    for dim, (start, limit) in enumerate(zip(starts, most, strict=True)):
        if limit == 0:
            continue
        numbers = known_numbers(site.terms, start)
        if numbers is None:
            raise Unknown(f"the position along dimension {dim} is not known before the program runs")
        result[:, dim] = np.clip(numbers, 0, limit)
    return result


def dynamic_update_slice(site: Site) -> list[Content]:
    operand, update, *starts = site.operands
    start = clamped(site, starts, [n - k for n, k in zip(operand.shape, update.shape, strict=True)])
    return [site.result(overwritten(operand, update, start))]


def overwritten(operand: Content, update: Content, start: Ints) -> list[Piece | None]:
    """Write ``update`` into ``operand`` at ``start``, [devices, rank]."""
    devices = len(start)
    hole = Piece(-1, np.zeros((0, operand.rank), np.int64), np.zeros((devices, 0), np.int64), start,
                 start + np.array(update.shape, np.int64), np.ones(devices, bool))  # fmt: skip
    kept = [
        made(p.term, p.a, p.b, *box)
        for p in operand.pieces
        for box in minus(p.lo, p.hi, p.on, hole)
        if 0 not in update.shape
    ]
    if 0 in update.shape:
        kept = list(operand.pieces)
    return [*kept, *(p.moved(start) for p in update.pieces)]


def concatenate(site: Site) -> list[Content]:
    dim, at = attribute(site.op, "dimension"), 0
    pieces: list[Piece] = []
    for operand in site.operands:
        by = np.zeros(operand.rank, np.int64)
        by[dim] = at
        pieces += [p.moved(by) for p in operand.pieces]
        at += operand.shape[dim]
    return [site.result(pieces)]


def reverse(site: Site) -> list[Content]:
    (operand,) = site.operands
    dims = list(ints(site.op.attributes["dimensions"]))
    size = np.array(operand.shape, np.int64)
    return [site.result([_reversed(p, dims, size) for p in operand.pieces])]


def _reversed(piece: Piece, dims: list[int], size: Ints) -> Piece:
    a, lo, hi = piece.a.copy(), piece.lo.copy(), piece.hi.copy()
    a[:, dims] = -a[:, dims]
    lo[:, dims], hi[:, dims] = size[dims] - piece.hi[:, dims], size[dims] - piece.lo[:, dims]
    return Piece(piece.term, a, piece.b + piece.a[:, dims] @ (size[dims] - 1), lo, hi, piece.on)


def pad(site: Site) -> list[Content]:
    operand, value = site.operands
    attributes = site.op.attributes
    low, inner = (ints(attributes[name]) for name in ("edge_padding_low", "interior_padding"))
    if any(inner):
        constant = next((p.term for p in value.pieces if site.terms.splat(p.term) is not None), None)
        apart = None if constant is None else dilated(site.terms, operand, constant, [n + 1 for n in inner])
        if apart is None:
            raise Unknown("padding between elements follows no box")
        operand = apart
    return [site.result(padded(site, operand, value, low, type_of(site.op.results[0])[0]))]


def padded(
    site: Site, operand: Content, value: Content, low: Sequence[int], shape: Sequence[int]
) -> list[Piece | None]:
    """Put ``low`` elements of padding before ``operand`` along each dimension; negative padding cuts."""
    by = np.array(low, np.int64)
    limit = np.array(shape, np.int64)
    pieces: list[Piece | None] = [p.moved(by).boxed(np.zeros_like(limit), limit) for p in operand.pieces]
    devices = site.devices
    start = np.tile(np.maximum(by, 0), (devices, 1))
    end = np.tile(np.minimum(by + np.array(operand.shape, np.int64), limit), (devices, 1))
    hole = Piece(-1, np.zeros((0, len(shape)), np.int64), np.zeros((devices, 0), np.int64), start, end,
                 np.ones(devices, bool))  # fmt: skip
    everything = np.zeros((devices, len(shape)), np.int64), np.tile(limit, (devices, 1)), np.ones(devices, bool)
    around = minus(*everything, hole) if prod(operand.shape) else [everything]
    for p in value.pieces:
        a = np.zeros((p.a.shape[0], len(shape)), np.int64)
        pieces += [made(p.term, a, p.b, lo, hi, on & p.on) for lo, hi, on in around]
    return pieces


RULES: dict[str, Rule] = {
    "stablehlo.broadcast": broadcast_in_front,
    "stablehlo.broadcast_in_dim": broadcast,
    "stablehlo.transpose": transpose,
    "stablehlo.reshape": reshape,
    "stablehlo.slice": slice_,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.concatenate": concatenate,
    "stablehlo.reverse": reverse,
    "stablehlo.pad": pad,
    "stablehlo.optimization_barrier": same,
    "mhlo.copy": same,
}
