"""Reduce several operands, or by a body of several ops, along one dimension: ranges of a term of tuples.

Problem: each device finds the greatest element of its part of a row, and its place; the devices then find the greatest
of these. The whole program finds the greatest of the whole row.

The operands' elements at one index are a tuple, which is a term, and the reduction of tuples is a reduction like any
other: over a range, ``reduce[.., lo, hi]``. The operands of the second reduction are the parts of a tuple of the first,
so what it reduces is a row of ranges that adjoin:

    argmax of device d:           best[i, 16 d, 16 d + 16]
    of all four, one by one:      best[i, 0, 64], as the whole program has it

StableHLO leaves open how tuples are put into brackets and where initial values stand between them, and keeps the order.
So a row that runs backwards is left to other rules, and only parts that follow one another make up a range.

**Bodies** are compared by what they compute of two tuples of terms that nothing else has. Where the last operand says
which tuples count, those that are known not to count are left out (``scalars/bodies.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.ir.tensors import ints
from shardpass.ir.walk import inputs_of, operation
from shardpass.proving.relations.combine import cells, combine, operands_of, reduce_along
from shardpass.proving.relations.compare import equal
from shardpass.proving.relations.evaluate import Site, Unknown, type_of
from shardpass.proving.relations.pieces import Content, Piece, made, volume
from shardpass.proving.rules.bodies import region_key
from shardpass.proving.rules.contraction import kept_boxes, met, without_dims
from shardpass.proving.rules.integers import Box, constant_piece
from shardpass.proving.scalars.bodies import marked, walked
from shardpass.proving.scalars.proof import RULES
from shardpass.proving.scalars.table import Scalars, TooLarge
from shardpass.proving.scalars.walk import ScalarSite, ScalarWalk


@dataclass(frozen=True, slots=True)
class ByBody:
    """Name a reducer: ``returned``, what the body computes of two tuples; ``starts``, the terms of initial values.

    Rules that change the order of a sum know reducers by an op and a type, so none of them applies.
    """

    returned: tuple[int, ...]
    starts: tuple[int, ...]


def reduce(site: Site) -> list[Content]:
    """Return the results of a ``stablehlo.reduce``.

    Raises Unknown where the initial values are no constants, and where the elements are not of one term, in order.
    """
    half, dims = len(site.operands) // 2, ints(site.op.attributes["dimensions"])
    shape = site.operands[0].shape
    if len(dims) != 1 or 0 in shape:
        raise Unknown("it reduces several dimensions by a body of several ops")
    kinds = tuple(content.element for content in site.operands[:half])
    returned, counts = _body(site, kinds)
    values = site.operands[: half - 1 if counts else half]
    starts = [_start(init) for init in site.operands[half : half + len(values)]]
    if not all(site.terms.all[start].rank == 0 and start in site.terms.values for start in starts):
        raise Unknown("it begins with values that are no constants")
    reducer, kinds = ByBody(returned, tuple(starts)), kinds[: len(values)]
    marks = [(p, site.terms.splat(p.term)) for p in (site.operands[half - 1].pieces if counts else ())]
    if any(value is None for _, value in marks):
        raise Unknown("which of its elements count is not known")
    idle = [piece for piece, value in marks if not value]
    there = [[piece for piece, value in marks if value]] if counts else []
    busy = [_tuple(site, kinds, chosen[: len(values)], box)
            for chosen, box in cells([*(c.pieces for c in values), *there])]  # fmt: skip
    (dim,) = dims
    one = tuple(1 if d == dim else n for d, n in enumerate(shape))
    boxes = kept_boxes(Content(shape, "tuple", (*busy, *idle)), dims)
    made_of = [row for box in boxes for row in _along(site, reducer, dim, box, busy, idle)]
    result = []
    for index in range(len(site.op.results)):
        _, element = type_of(site.op.results[index])
        pieces: list[Piece | None] = []
        for piece, box in made_of:
            if index == len(values):  # whether any element counts
                pieces.append(constant_piece(site.terms, element, piece is not None, box))
            elif piece is not None:
                pieces.append(combine(site.terms, ("part", index, element), [piece], box))
        content = Content(one, element, tuple(p for p in pieces if p is not None))
        result.append(site.result(without_dims(content, dims).pieces, index))
    return result


def _body(site: Site, kinds: tuple[str, ...]) -> tuple[tuple[int, ...], bool]:
    """Return what the body computes, and whether the last operand determines which elements count."""
    region_key(site.op)  # its body is a function of its arguments and of constants
    table = site.terms.bodies = site.terms.bodies or Scalars()
    walk = ScalarWalk(table, 1, site.walk.functions, RULES)
    try:
        for value in inputs_of(site.op)[len(site.op.operands) :]:
            (walk.values[value],) = walk.op(operation(value.owner))
        inner = ScalarSite(site.op, [], walk)
        within = marked(inner, kinds)
        return (walked(inner, kinds, None) if within is None else within)[0], within is not None
    except TooLarge:
        raise Unknown("the bodies of its reductions are too large") from None


def _start(init: Content) -> int:
    if len(init.pieces) != 1 or not init.covered():
        raise Unknown("it begins with another value on each device")
    return init.pieces[0].term


def _tuple(site: Site, kinds: tuple[str, ...], pieces: Sequence[Piece], box: Box) -> Piece:
    """Return the tuple of ``pieces``. If they are the parts of an existing tuple, in order, return that tuple."""
    terms = site.terms
    keys = [terms.all[piece.term].key for piece in pieces]
    if keys == [("part", index, kind) for index, kind in enumerate(kinds)]:
        first, *others = [operands_of(terms, piece, box)[0] for piece in pieces]
        if all(other.term == first.term and equal(terms, first, other, box) for other in others):
            return first
    return combine(terms, ("tuple", kinds), pieces, box)


def _along(
    site: Site, reducer: ByBody, dim: int, box: Box, busy: Sequence[Piece], idle: Sequence[Piece]
) -> list[tuple[Piece | None, Box]]:
    """Return the reduction along ``dim`` in one box of kept positions; None where no element counts."""
    lo, hi, on = box
    inside = [q for p in busy if (q := made(p.term, p.a, p.b, *met(p, box))) is not None]
    rest = [q for p in idle if (q := made(p.term, p.a, p.b, *met(p, box))) is not None]
    counted = sum((volume(p.lo, p.hi, p.on) for p in inside), np.zeros(len(on), np.int64))
    known = sum((volume(p.lo, p.hi, p.on) for p in rest), counted) == volume(lo, hi, on)
    if len(inside) > 1:
        raise Unknown("its elements are of several terms")
    new_lo, new_hi = lo.copy(), hi.copy()
    new_lo[:, dim], new_hi[:, dim] = 0, 1
    result: list[tuple[Piece | None, Box]] = []
    none = on & known & (counted == 0)
    if none.any():
        result.append((None, (new_lo, new_hi, none)))
    for piece in inside:
        if (piece.a[:, dim] < 0).any():
            raise Unknown("its elements stand in another order")
        total = reduce_along(site.terms, reducer, piece, dim)
        if total is None:
            raise Unknown("its elements are no range of a term")
        live = on & known & total.on
        if live.any():
            result.append((total, (new_lo, new_hi, live)))
    return result
