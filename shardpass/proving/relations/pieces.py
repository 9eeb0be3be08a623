"""Pieces: what the tiles of all devices hold, as boxes of terms.

A piece says of a box of each device's tile: the element at position i is ``term[a i + b]``. ``a`` is one matrix for all
devices; ``b``, and the box ``lo <= i < hi``, are arrays with a row for each device, so that nothing loops over devices.
``on``: the devices whose box is not empty. Elements of a tile that no piece covers are unknown: padding, or lost.

Example: x: f32[8, 6] split into 4 x 1 tiles, on 4 devices: one piece with the term of x, ``a`` the identity, ``b``
[[0, 0], [2, 0], [4, 0], [6, 0]] and boxes [0, 2) x [0, 6).

Along a dimension where no device's box is wider than 1, the column of ``a`` means nothing: ``b`` says it all. Such
columns are kept as they come, since a gather makes the dimension wide again.

Cost: each function makes a few NumPy calls on arrays [devices, rank].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    term: int
    a: Ints  # [rank of the term, rank]
    b: Ints  # [devices, rank of the term]
    lo: Ints  # [devices, rank]
    hi: Ints
    on: Bools  # [devices]

    @property
    def wide(self) -> Bools:
        """The dimensions along which some device's box holds several positions."""
        return np.asarray(((self.hi - self.lo > 1) & self.on[:, None]).any(0))

    @property
    def at_lo(self) -> Ints:
        """The index of the term at the first position of each box."""
        return np.asarray(self.lo @ self.a.T + self.b)

    def of_devices(self, devices: Ints) -> Piece:
        """The piece as device d would see it that holds the tile of ``devices[d]``; -1: of no device."""
        return Piece(
            self.term,
            self.a,
            self.b[devices],
            self.lo[devices],
            self.hi[devices],
            self.on[devices] & (devices >= 0),
        )

    def boxed(self, lo: Ints, hi: Ints) -> Piece | None:
        """The piece within a box; None where nothing is left."""
        return made(self.term, self.a, self.b, np.maximum(self.lo, lo), np.minimum(self.hi, hi), self.on)

    def moved(self, by: Any) -> Piece:
        """The piece at positions that are greater by ``by``, [rank] or [devices, rank]."""
        by = np.broadcast_to(np.asarray(by, np.int64), self.lo.shape)
        return replace(self, b=self.b - by @ self.a.T, lo=self.lo + by, hi=self.hi + by)

    def columns(self, dims: Sequence[int], sizes: Sequence[int]) -> Piece:
        """The piece in other dimensions: new dimension k is ``dims[k]``, or, for -1, a copy along ``sizes[k]``.

        Dimensions that ``dims`` leaves out must have the size 1.
        """
        order, devices = np.array(dims, np.int64), len(self.on)
        kept = order >= 0
        a = np.zeros((self.a.shape[0], len(order)), np.int64)
        lo = np.zeros((devices, len(order)), np.int64)
        hi = np.empty((devices, len(order)), np.int64)
        hi[:] = np.array(sizes, np.int64)
        a[:, kept], lo[:, kept], hi[:, kept] = self.a[:, order[kept]], self.lo[:, order[kept]], self.hi[:, order[kept]]
        return Piece(self.term, a, self.b, lo, hi, self.on)


@dataclass(frozen=True, eq=False, slots=True)
class Content:
    """What a value holds. ``element`` is MLIR's name of the element type; pieces are disjoint."""

    shape: tuple[int, ...]
    element: str
    pieces: tuple[Piece, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def covered(self) -> bool:
        """Whether every element is known on every device."""
        if 0 in self.shape:
            return True
        if not self.pieces:
            return False
        first = self.pieces[0]
        if len(self.pieces) == 1 and first.on.all() and not first.lo.any() and (first.hi == self.shape).all():
            return True  # most values are one piece
        known = np.sum([volume(p.lo, p.hi, p.on) for p in self.pieces], axis=0)
        return bool((known == int(np.prod(self.shape))).all())


def volume(lo: Ints, hi: Ints, on: Bools) -> Ints:
    return np.where(on, np.prod(np.maximum(hi - lo, 0), axis=1), 0)


def made(term: int, a: Ints, b: Ints, lo: Ints, hi: Ints, on: Bools) -> Piece | None:
    """A piece, but for the devices on which its box is empty; None where that is all of them."""
    on = on & (lo < hi).all(1)
    return Piece(term, a, b, lo, hi, on) if on.any() else None


def full(term: int, a: Ints, b: Ints, shape: Sequence[int]) -> Piece:
    """A piece that covers tiles of ``shape``."""
    devices = len(b)
    hi = np.broadcast_to(np.array(shape, np.int64), (devices, len(shape))).copy()
    return Piece(term, a, b, np.zeros_like(hi), hi, np.ones(devices, bool))


def same_function(p: Piece, q: Piece, along: int | None = None) -> tuple[Ints, Ints] | None:
    """``a`` and ``b`` of one function that both pieces are parts of, where there is one.

    ``along``: the dimension in which the two adjoin; its column follows from the pieces where both are narrow.
    """
    if p.term != q.term:
        return None
    wide_p, wide_q = p.wide, q.wide
    both = wide_p & wide_q
    if both.any() and (p.a[:, both] != q.a[:, both]).any():
        return None
    a = np.where(wide_q & ~wide_p, q.a, p.a)
    live = p.on & q.on
    if along is not None and not wide_p[along] and not wide_q[along] and live.any():
        device = int(live.argmax())
        step = int(q.lo[device, along] - p.lo[device, along])
        difference = q.at_lo[device] - p.at_lo[device]
        others = (q.lo[device] - p.lo[device]).copy()
        others[along] = 0
        difference = difference - a @ others
        if step == 0 or (difference % step).any():
            return None
        a = a.copy()
        a[:, along] = difference // step
    at_p, at_q = p.at_lo, q.at_lo
    b = np.where(p.on[:, None], at_p - p.lo @ a.T, at_q - q.lo @ a.T)
    if live.any() and (q.lo[live] @ a.T + b[live] != at_q[live]).any():
        return None
    return a, b


def joined(p: Piece, q: Piece) -> Piece | None:
    """One piece in the place of two, where each device's two boxes are one box and one function."""
    if p.term != q.term:
        return None
    live = p.on & q.on
    along = None
    if live.any():
        differs = ((p.lo != q.lo) | (p.hi != q.hi))[live]
        dims = np.flatnonzero(differs.any(0))
        if len(dims) != 1:
            return None
        along = int(dims[0])
        p_hi, q_lo = p.hi[live, along], q.lo[live, along]
        if (p_hi != q_lo).any():
            if (q.hi[live, along] == p.lo[live, along]).all():
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
    return Piece(p.term, *result, lo, hi, on)


def broadcast_piece(piece: Piece, old: Sequence[int], new: Sequence[int], dims: Sequence[int]) -> Piece:
    """``piece`` with dimension k of sizes ``old`` as dimension ``dims[k]`` of sizes ``new``."""
    source = [-1] * len(new)
    for k, dim in enumerate(dims):
        source[dim] = k
    result = piece.columns(source, new)
    for k, dim in enumerate(dims):
        if old[k] == 1 and new[dim] != 1:
            result.a[:, dim] = 0
            result.hi[:, dim] = new[dim]
    return result


def tidy(pieces: Sequence[Piece | None]) -> tuple[Piece, ...]:
    """The same in fewer pieces."""
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
    """The box in which all of ``pieces`` lie; None where it is empty on every device."""
    lo, hi, on = pieces[0].lo, pieces[0].hi, pieces[0].on
    for piece in pieces[1:]:
        lo, hi, on = np.maximum(lo, piece.lo), np.minimum(hi, piece.hi), on & piece.on
    on = on & (lo < hi).all(1)
    return (lo, hi, on) if on.any() else None


def minus(lo: Ints, hi: Ints, on: Bools, piece: Piece) -> list[tuple[Ints, Ints, Bools]]:
    """Boxes that make up the box without ``piece``."""
    touching = on & piece.on & (np.maximum(lo, piece.lo) < np.minimum(hi, piece.hi)).all(1)
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
