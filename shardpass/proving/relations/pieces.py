"""Pieces: the contents of the tiles of all devices, as boxes of terms.

A piece says of a box of each device's tile: the element at position i is ``term[a i + b]``. ``a`` is one matrix for all
devices; ``b``, and the box ``lo <= i < hi``, are arrays with a row for each device, so that nothing loops over devices.
``on``: the devices whose box is not empty. Elements of a tile that no piece covers are unknown: padding, or lost.

Example: x: f32[8, 6] split into 4 x 1 tiles, on 4 devices: one piece with the term of x, ``a`` the identity, ``b``
[[0, 0], [2, 0], [4, 0], [6, 0]] and boxes [0, 2) x [0, 6).

Along a dimension where no device's box is wider than 1, the column of ``a`` means nothing: ``b`` says it all. Such
columns are kept as they come, since a gather makes the dimension wide again.

Cost: each function makes a few NumPy calls on arrays [devices, rank], in one of the forms of ``rows.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardpass.proving.relations.rows import Bools as Bools
from shardpass.proving.relations.rows import Ints as Ints
from shardpass.proving.relations.rows import (
    by_dimension,
    distinct,
    for_all,
    image,
    of_each,
    one_row_if_equal,
    rows_at,
    spread,
    with_dimension,
)


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    term: int
    a: Ints  # [rank of the term, rank]
    b: Ints  # [devices, rank of the term]
    lo: Ints  # [devices, rank]
    hi: Ints
    on: Bools  # [devices]

    def __post_init__(self) -> None:
        for name in ("b", "lo", "hi"):
            object.__setattr__(self, name, by_dimension(getattr(self, name)))

    @property
    def wide(self) -> Bools:
        """The dimensions along which some device's box has several positions."""
        return wide_in(self.lo, self.hi, self.on)

    @property
    def at_lo(self) -> Ints:
        """The index of the term at the first position of each box."""
        return self.b + image(self.a, self.lo)

    def of_devices(self, devices: Ints) -> Piece:
        """Return the piece as seen by device d that has the tile of ``devices[d]``; -1: of no device."""
        return Piece(
            self.term,
            self.a,
            rows_at(self.b, devices),
            rows_at(self.lo, devices),
            rows_at(self.hi, devices),
            self.on[devices] & (devices >= 0),
        )

    def boxed(self, lo: Ints, hi: Ints) -> Piece | None:
        """Restrict the piece to a box; None where nothing is left."""
        lo, hi = (for_all(end, len(self.on)) for end in (lo, hi))
        lo, hi = of_each(np.maximum, self.lo, lo), of_each(np.minimum, self.hi, hi)
        return made(self.term, self.a, self.b, lo, hi, self.on)

    def moved(self, by: Any) -> Piece:
        """Move the piece to positions that are greater by ``by``, [rank] or [devices, rank]."""
        by = for_all(by, len(self.on))
        lo, hi = of_each(np.add, self.lo, by), of_each(np.add, self.hi, by)
        return replace(self, b=self.b - image(self.a, by), lo=lo, hi=hi)

    def columns(self, dims: Sequence[int], sizes: Sequence[int]) -> Piece:
        """Return the piece in other dimensions: new dimension k is ``dims[k]``, or, for -1, a copy along
        ``sizes[k]``.

        Dimensions that ``dims`` leaves out must have the size 1.
        """
        order = np.array(dims, np.int64)
        kept = order >= 0
        a = np.zeros((self.a.shape[0], len(order)), np.int64)
        a[:, kept] = self.a[:, order[kept]]

        def ends(old: Ints, new: Any) -> Ints:
            result = np.empty((len(old), len(order)), np.int64, "F")
            result[:] = new
            result[:, kept] = old[:, order[kept]]
            return result

        lo = of_each(lambda rows: ends(rows, 0), self.lo)
        hi = of_each(lambda rows: ends(rows, np.array(sizes, np.int64)), self.hi)
        return Piece(self.term, a, self.b, lo, hi, self.on)


@dataclass(frozen=True, eq=False, slots=True)
class Content:
    """The contents of a value. ``element`` is MLIR's name of the element type; pieces are disjoint."""

    shape: tuple[int, ...]
    element: str
    pieces: tuple[Piece, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def covered(self) -> bool:
        """Return whether every element is known on every device."""
        if 0 in self.shape:
            return True
        if not self.pieces:
            return False
        first = self.pieces[0]
        lo, hi = distinct(first.lo), distinct(first.hi)
        if len(self.pieces) == 1 and first.on.all() and not lo.any() and (hi == self.shape).all():
            return True  # most values are one piece
        known = np.sum([volume(p.lo, p.hi, p.on) for p in self.pieces], axis=0)
        return bool((known == int(np.prod(self.shape))).all())


def volume(lo: Ints, hi: Ints, on: Bools) -> Ints:
    sizes = np.maximum(distinct(hi) - distinct(lo), 0)
    return np.where(on, np.prod(sizes, axis=1), 0)


def wide_in(lo: Ints, hi: Ints, on: Bools) -> Bools:
    """Return the dimensions along which the box has several positions on some device."""
    several = distinct(hi) - distinct(lo) > 1
    return np.asarray(several[0] & on.any() if len(several) == 1 else (several & on[:, None]).any(0))


def made(term: int, a: Ints, b: Ints, lo: Ints, hi: Ints, on: Bools) -> Piece | None:
    """Return a piece without the devices on which its box is empty; None if it is empty on all devices."""
    on = on & (distinct(lo) < distinct(hi)).all(1)
    return Piece(term, a, b, one_row_if_equal(lo), one_row_if_equal(hi), on) if on.any() else None


def full(term: int, a: Ints, b: Ints, shape: Sequence[int]) -> Piece:
    """Return a piece that covers tiles of ``shape``."""
    devices = len(b)
    return Piece(term, a, b, spread([0] * len(shape), devices), spread(shape, devices), np.ones(devices, bool))


def same_function(p: Piece, q: Piece, along: int | None = None) -> tuple[Ints, Ints] | None:
    """Return ``a`` and ``b`` of one function with both pieces as parts, if there is one.

    ``along``: the dimension in which the two adjoin; its column follows from the pieces where both are narrow.
    """
    if p.term != q.term:
        return None
    wide_p, wide_q = p.wide, q.wide
    both = wide_p & wide_q
    if both.any() and (p.a[:, both] != q.a[:, both]).any():
        return None
    a = np.where(wide_q & ~wide_p, q.a, p.a)
    both_on = p.on & q.on
    if along is not None and not wide_p[along] and not wide_q[along] and both_on.any():
        device = int(both_on.argmax())
        step = int(q.lo[device, along] - p.lo[device, along])
        difference = q.at_lo[device] - p.at_lo[device]
        others = (q.lo[device] - p.lo[device]).copy()
        others[along] = 0
        difference = difference - a @ others
        if step == 0 or (difference % step).any():
            return None
        a = a.copy()
        a[:, along] = difference // step
    b_p, b_q = (one.at_lo - image(a, one.lo) for one in (p, q))
    if (b_p != b_q)[both_on].any():
        return None
    b = np.where(p.on[:, None], b_p, b_q)
    return a, b


def joined(p: Piece, q: Piece) -> Piece | None:
    """Merge two pieces into one, if on each device the two boxes form one box and one function."""
    if p.term != q.term:
        return None
    both_on = p.on & q.on
    along = None
    if both_on.any():
        differs = ((p.lo != q.lo) | (p.hi != q.hi))[both_on]
        dims = np.flatnonzero(differs.any(0))
        if len(dims) != 1:
            return None
        along = int(dims[0])
        p_hi, q_lo = p.hi[both_on, along], q.lo[both_on, along]
        if (p_hi != q_lo).any():
            if (q.hi[both_on, along] == p.lo[both_on, along]).all():
                p, q = q, p
            else:
                return None
    result = same_function(p, q, along)
    if result is None:
        return None
    one, two = p.on[:, None], q.on[:, None]
    big = np.iinfo(np.int64)
    lo = np.minimum(np.where(one, p.lo, big.max), np.where(two, q.lo, big.max))
    hi = np.maximum(np.where(one, p.hi, big.min), np.where(two, q.hi, big.min))
    on = p.on | q.on
    lo, hi = np.where(on[:, None], lo, 0), np.where(on[:, None], hi, 0)
    return Piece(p.term, *result, one_row_if_equal(lo), one_row_if_equal(hi), on)


def broadcast_piece(piece: Piece, old: Sequence[int], new: Sequence[int], dims: Sequence[int]) -> Piece:
    """Broadcast ``piece``: dimension k of sizes ``old`` becomes dimension ``dims[k]`` of sizes ``new``."""
    source = [-1] * len(new)
    for k, dim in enumerate(dims):
        source[dim] = k
    result = piece.columns(source, new)
    hi = result.hi
    for k, dim in enumerate(dims):
        if old[k] == 1 and new[dim] != 1:
            result.a[:, dim] = 0
            hi = with_dimension(hi, dim, new[dim])
    return replace(result, hi=hi)


def tidy(pieces: Sequence[Piece | None]) -> tuple[Piece, ...]:
    """Return the same value in fewer pieces."""
    rest = [p for p in pieces if p is not None]
    progress = len(rest) > 1
    while progress:
        progress = False
        kept: list[Piece] = []
        for piece in rest:
            for index in range(len(kept) - 1, -1, -1):
                one = joined(kept[index], piece)
                if one is not None:
                    kept[index] = one
                    progress = True
                    break
            else:
                kept.append(piece)
        rest = kept
        progress = progress and len(rest) > 1
    return tuple(rest)


def common(pieces: Sequence[Piece]) -> tuple[Ints, Ints, Bools] | None:
    """Return the intersection of the boxes of ``pieces``; None where it is empty on every device."""
    lo, hi, on = pieces[0].lo, pieces[0].hi, pieces[0].on
    for piece in pieces[1:]:
        lo, hi, on = of_each(np.maximum, lo, piece.lo), of_each(np.minimum, hi, piece.hi), on & piece.on
    on = on & (distinct(lo) < distinct(hi)).all(1)
    return (lo, hi, on) if on.any() else None


def minus(lo: Ints, hi: Ints, on: Bools, piece: Piece) -> list[tuple[Ints, Ints, Bools]]:
    """Return boxes that form the box without ``piece``."""
    both = of_each(np.maximum, lo, piece.lo), of_each(np.minimum, hi, piece.hi)
    touching = on & piece.on & (distinct(both[0]) < distinct(both[1])).all(1)
    parts = []
    if (on & ~touching).any():
        parts.append((lo, hi, on & ~touching))
    low, high = lo.copy(), hi.copy()
    for dim in range(lo.shape[1]):
        for before in (True, False):
            part_lo, part_hi = low.copy(), high.copy()
            if before:
                part_hi[:, dim] = np.minimum(high[:, dim], piece.lo[:, dim])
            else:
                part_lo[:, dim] = np.maximum(low[:, dim], piece.hi[:, dim])
            left = touching & (part_lo < part_hi).all(1)
            if left.any():
                parts.append((part_lo, part_hi, left))
        low[:, dim] = np.maximum(low[:, dim], piece.lo[:, dim])
        high[:, dim] = np.minimum(high[:, dim], piece.hi[:, dim])
    return parts
