"""Tiles against whole values: do all devices hold what the whole program's value has there?"""

from __future__ import annotations

from typing import Any

import numpy as np

from shardpass.proving.relations.combine import operands_of
from shardpass.proving.relations.pieces import Content, Ints, Piece, common, minus
from shardpass.proving.relations.reshaping import unmerged
from shardpass.proving.relations.sides import Side
from shardpass.proving.relations.terms import Term, Terms


def differs(terms: Terms, want: Content, have: Content, side: Side) -> str | None:
    """Why the tiles ``have`` are not known to be those of the whole ``want``; None where they are."""
    devices = len(side.offsets)
    if not want.covered():
        return "the whole program's result is not known"
    if any((rows != rows[:1]).any() for p in want.pieces for rows in (p.b, p.lo, p.hi, p.on)):
        return "the whole program's result depends on the device"
    for piece in want.pieces:
        spread = piece.of_devices(np.zeros(devices, np.int64)).moved(-side.offsets)
        limit = np.minimum(np.array(side.tile, np.int64), np.array(side.shape, np.int64) - side.offsets)
        target = spread.boxed(np.zeros_like(limit), limit)
        if target is None:
            continue
        target = Piece(target.term, target.a, target.b, target.lo, target.hi, target.on & side.counts)
        if not target.on.any():
            continue
        left = [(target.lo, target.hi, target.on)]
        for other in have.pieces:
            box = common([target, other])
            if box is None:
                continue
            if not equal(terms, target, other, box):
                return f"it holds {described(terms, other)}, not {described(terms, target)}"
            left = [part for one in left for part in minus(*one, other)]
        if left:
            device = int(left[0][2].argmax())
            return f"what it holds on device {device} at {left[0][0][device].tolist()} is not known"
    return None


def equal(terms: Terms, one: Piece, other: Piece, box: tuple[Ints, Ints, Any], depth: int = 0) -> bool:
    """Whether two pieces hold the same in ``box``."""
    lo, hi, on = box
    if one.term == other.term:
        wide = ((hi - lo > 1) & on[:, None]).any(0)
        same = (one.a[:, wide] == other.a[:, wide]).all()
        if same and ((lo @ one.a.T + one.b)[on] == (lo @ other.a.T + other.b)[on]).all():
            return True
    p = unmerged(terms, Piece(one.term, one.a, one.b, lo, hi, on))
    q = unmerged(terms, Piece(other.term, other.a, other.b, lo, hi, on))
    if (p.term, q.term) != (one.term, other.term):
        return equal(terms, p, q, box, depth)
    x, y = terms.all[p.term], terms.all[q.term]
    if x.rows and x.key == y.key and len(x.parts) == len(y.parts) and depth < 8:
        pairs = zip(operands_of(terms, p, box), operands_of(terms, q, box), strict=True)
        return all(equal(terms, a, b, box, depth + 1) for a, b in pairs)
    return False


def described(terms: Terms, piece: Piece) -> str:
    """A term in words: its op, without its operands."""
    term = terms.all[piece.term]
    if term.key[0] == "argument":
        return f"argument {term.key[1]} at {piece.at_lo[int(piece.on.argmax())].tolist()}"
    if term.key[0] == "constant":
        return "a constant"
    if term.key[0] == "apart":
        boxes = terms.sets[int(piece.at_lo[int(piece.on.argmax()), -1])]
        return f"a sum over {len(boxes)} ranges that lie apart"
    name = str(term.key[0]).split(".")[-1]
    return f"a value of {name}" + (f" over the range {_range(term, piece)}" if term.ranges else "")


def _range(term: Term, piece: Piece) -> str:
    at = piece.at_lo[int(piece.on.argmax())]
    return ", ".join(f"[{at[lo]}, {at[hi]})" for lo, hi in term.ranges)
