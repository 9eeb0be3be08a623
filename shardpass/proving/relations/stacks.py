"""Stacks: one term in one box, once for each device of a group, with a row for each group.

The parts that a collective adds up are of one term, mostly, so they are arrays [members, groups, indices] and not
pieces: the cost of a collective is that of a few NumPy calls, however many devices a group has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardpass.proving.relations.combine import operands_of
from shardpass.proving.relations.pieces import Bools, Ints, Piece
from shardpass.proving.relations.rows import distinct, rows_at
from shardpass.proving.relations.terms import Terms

Box = tuple[Ints, Ints, Bools]


@dataclass(frozen=True, eq=False, slots=True)
class Stack:
    """``box``: (lo, hi, on), with a row for each group. ``b``: [members, groups, rank of the term]."""

    term: int
    a: Ints
    b: Ints
    box: Box

    @property
    def wide(self) -> Bools:
        lo, hi, on = self.box
        return np.asarray(((hi - lo > 1) & on[:, None]).any(0))

    @property
    def at_lo(self) -> Ints:
        """The index of the term at the first position of each box, [members, groups, rank of the term]."""
        return np.asarray(self.box[0] @ self.a.T + self.b)

    def first(self) -> Piece:
        return Piece(self.term, self.a, self.b[0], *self.box)

    def all_equal(self) -> bool:
        """Return whether all members are equal."""
        on = self.box[2]
        return bool((self.b[:, on] == self.b[:1, on]).all())

    def operands(self, terms: Terms) -> list[Stack]:
        """Return the stacks from which the op of the term was computed."""
        members, rows, rank = self.b.shape
        box = tuple(np.concatenate([part] * members) for part in self.box)
        flat = Piece(self.term, self.a, self.b.reshape(members * rows, rank), *box)
        parts = operands_of(terms, flat, (flat.lo, flat.hi, flat.on))
        return [Stack(p.term, p.a, p.b.reshape(members, rows, -1), self.box) for p in parts]


def of_members(piece: Piece, members: Ints) -> Stack | None:
    """Stack what the devices ``members``, [group, place], have of ``piece``; None where their boxes are not one box."""
    if not piece.on.all():
        return None
    for ends in (piece.lo, piece.hi):
        if len(distinct(ends)) > 1 and (ends[members] != ends[members[:, :1]]).any():
            return None
    first = members[:, 0]
    box = rows_at(piece.lo, first), rows_at(piece.hi, first), piece.on[first]
    return Stack(piece.term, piece.a, piece.b[members].transpose(1, 0, 2), box)


def of_pieces(pieces: Sequence[Piece], box: Box) -> Stack | None:
    """Stack pieces that are live in all of ``box``; None where they differ in term or in how they run through it."""
    lo, hi, on = box
    first = pieces[0]
    wide = ((hi - lo > 1) & on[:, None]).any(0)
    if any(p.term != first.term or (p.a[:, wide] != first.a[:, wide]).any() for p in pieces):
        return None
    back = lo @ first.a.T  # along other dimensions, the columns mean nothing
    return Stack(first.term, first.a, np.stack([lo @ p.a.T + p.b - back for p in pieces]), box)
