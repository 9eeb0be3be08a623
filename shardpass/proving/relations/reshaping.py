"""Reshapes of pieces: dimensions are parted and merged.

A part of a dimension is affine in the new ones: x[k] with k = 4 p + q. A merge is so where the term runs on from row to
row. Elsewhere it is a term of its own: merged[k] = x[k div 4, k mod 4], which a later part takes away again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np

from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Content, Ints, Piece, made
from shardpass.proving.relations.rows import one_row_if_equal
from shardpass.proving.relations.terms import Key, Term, Terms

MOST_ROWS = 64  # of a merge whose rows are no whole boxes


def reshaped(terms: Terms, operand: Content, shape: Sequence[int]) -> list[Piece]:
    pieces, sizes = list(operand.pieces), list(operand.shape)
    if 0 in sizes:
        return []
    at = 0  # the dimension that is built
    for old, new in _groups(sizes, shape):
        if old and new:
            pieces = _regrouped(terms, pieces, sizes, at, old, new)
            at += len(new)
            continue
        if not old:
            pieces = [_unit(p, at) for p in pieces]
            sizes.insert(at, 1)
        if not new:  # a dimension of size 1 goes
            pieces = _without_unit(pieces, sizes, at)
        at += bool(new)
    return pieces


def _regrouped(
    terms: Terms, pieces: list[Piece], sizes: list[int], at: int, old: Sequence[int], new: Sequence[int]
) -> list[Piece]:
    """Replace the dimensions ``old``, from ``at`` on, by ``new``; ``sizes`` follows.

    Each old dimension is parted where a new one ends, as far as these ends divide each other, and the parts are merged:
    (8, 512) to (64, 64) by way of (8, 8, 64). So a merge is undone before another one is made.
    """
    for place in range(at + len(old) - 1, at - 1, -1):  # dimensions of size 1 among them
        if sizes[place] == 1:
            pieces = _without_unit(pieces, sizes, place)
    old = [n for n in old if n != 1]
    factors = _factors(old, new)
    if factors is None:
        factors = [prod(old)]
        for _ in range(len(old) - 1):
            pieces = _merge(terms, pieces, sizes, at)
    place, left = at, list(factors)
    while left:  # parts of each old dimension
        size = sizes[place]
        while left[0] != size:
            inner = size // left[0]
            pieces = [s for p in pieces for s in parted(terms, p, place, inner)]
            sizes[place : place + 1] = [left.pop(0), inner]
            place, size = place + 1, inner
        left.pop(0)
        place += 1
    if len(factors) == 1 and len(new) > 1:
        for size in new[:-1]:
            inner = sizes[at] // size
            pieces = [s for p in pieces for s in parted(terms, p, at, inner)]
            sizes[at : at + 1] = [size, inner]
            at += 1
        return pieces
    for size in new:
        if size == 1:
            pieces = [_unit(p, at) for p in pieces]
            sizes.insert(at, 1)
        while sizes[at] != size:
            pieces = _merge(terms, pieces, sizes, at)
        at += 1
    return pieces


def _without_unit(pieces: list[Piece], sizes: list[int], at: int) -> list[Piece]:
    """Remove a dimension of size 1 from the pieces."""
    del sizes[at]
    rest = [k for k in range(len(sizes) + 1) if k != at]
    return [p.columns(rest, sizes) for p in pieces]


def _merge(terms: Terms, pieces: list[Piece], sizes: list[int], at: int) -> list[Piece]:
    result = [m for p in pieces for m in merged(terms, p, at, sizes[at], sizes[at + 1])]
    sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    return result


def _factors(old: Sequence[int], new: Sequence[int]) -> list[int] | None:
    """Return the sizes between all ends of old and new dimensions; None where these do not divide each other."""
    ends = {1}
    for sizes in (old, new):
        run = 1
        for size in reversed(sizes):
            run *= size
            ends.add(run)
    row = sorted(ends)
    if any(high % low for low, high in pairwise(row)):
        return None
    return [high // low for low, high in pairwise(row)][::-1]


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the smallest runs of dimensions of equal size, with dimensions of size 1 apart where possible."""
    result = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            result.append(([old[i]], [new[j]]))
            i, j = i + 1, j + 1
            continue
        if i < len(old) and old[i] == 1:
            result.append(([1], []))
            i += 1
            continue
        if j < len(new) and new[j] == 1:
            result.append(([], [1]))
            j += 1
            continue
        a, b, left, right = old[i], new[j], [old[i]], [new[j]]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a *= old[i]
                left.append(old[i])
                i += 1
            else:
                b *= new[j]
                right.append(new[j])
                j += 1
        result.append((left, right))
    return result


def _unit(piece: Piece, at: int) -> Piece:
    """Insert a new dimension of size 1."""
    rank = piece.a.shape[1]
    order = list(range(rank))
    order.insert(at, -1)
    return piece.columns(order, [1] * (rank + 1))


def parted(terms: Terms, piece: Piece, dim: int, inner: int) -> list[Piece]:
    """Split dimension ``dim`` into two, the second of size ``inner``."""
    lo, hi, on = piece.lo[:, dim], piece.hi[:, dim], piece.on
    whole = (lo % inner == 0) & (hi % inner == 0)
    in_one = lo // inner == (hi - 1) // inner
    if not (whole | in_one | ~on).all():
        first = np.minimum(-(-lo // inner) * inner, hi)
        last = np.maximum(hi // inner * inner, first)
        ends = [(lo, first), (first, last), (last, hi)]
        parts = [_between(piece, dim, start, end) for start, end in ends]
        return [s for p in parts if p is not None for s in parted(terms, p, dim, inner)]
    outer_lo, outer_hi = lo // inner, np.where(whole, hi // inner, lo // inner + 1)
    inner_lo, inner_hi = np.where(whole, 0, lo % inner), np.where(whole, inner, lo % inner + hi - lo)
    column = piece.a[:, dim]
    a = np.column_stack([piece.a[:, :dim], column * inner, column, piece.a[:, dim + 1 :]])
    lo, hi = _replaced(piece.lo, dim, outer_lo, inner_lo), _replaced(piece.hi, dim, outer_hi, inner_hi)
    result = Piece(piece.term, a, piece.b, lo, hi, on)
    return [unmerged(terms, result)]


def _replaced(bounds: Ints, dim: int, outer: Ints, inner: Ints) -> Ints:
    return one_row_if_equal(np.column_stack([bounds[:, :dim], outer, inner, bounds[:, dim + 1 :]]))


def _between(piece: Piece, dim: int, start: Ints, end: Ints) -> Piece | None:
    lo, hi = piece.lo.copy(), piece.hi.copy()
    lo[:, dim], hi[:, dim] = start, end
    return made(piece.term, piece.a, piece.b, lo, hi, piece.on)


def merged(terms: Terms, piece: Piece, dim: int, outer: int, inner: int) -> list[Piece]:
    """Merge the dimensions ``dim`` and ``dim + 1``."""
    lo, hi, on = piece.lo, piece.hi, piece.on
    q = dim + 1
    one_row = hi[:, dim] - lo[:, dim] <= 1
    whole_rows = (lo[:, q] == 0) & (hi[:, q] == inner)
    if not (one_row | whole_rows | ~on).all():
        if outer > MOST_ROWS:
            raise Unknown("a reshape joins rows of which devices know parts")
        rows = [_between(piece, dim, np.maximum(lo[:, dim], r), np.minimum(hi[:, dim], r + 1)) for r in range(outer)]
        return [m for row in rows if row is not None for m in merged(terms, row, dim, outer, inner)]
    new_lo = np.delete(lo, q, axis=1)
    new_hi = np.delete(hi, q, axis=1)
    new_lo[:, dim] = lo[:, dim] * inner + lo[:, q]
    new_hi[:, dim] = (hi[:, dim] - 1) * inner + hi[:, q]
    new_lo, new_hi = one_row_if_equal(new_lo), one_row_if_equal(new_hi)
    column_p, column_q = piece.a[:, dim], piece.a[:, q]
    if inner == 1:
        b = piece.b + np.outer(lo[:, q], column_q)
        return [Piece(piece.term, np.delete(piece.a, q, axis=1), b, new_lo, new_hi, on)]
    if outer == 1:
        b = piece.b + np.outer(lo[:, dim], column_p)
        result = Piece(piece.term, np.delete(piece.a, dim, axis=1), b, new_lo, new_hi, on)
        return [_remerged(terms, result, dim, piece, inner)]
    runs_on = (column_p == inner * column_q).all()
    if runs_on or (one_row | ~on).all():
        # in one row, only the second column counts
        b = piece.b if runs_on else piece.b + np.outer(lo[:, dim], column_p - inner * column_q)
        result = Piece(piece.term, np.delete(piece.a, dim, axis=1), b, new_lo, new_hi, on)
        return [result if runs_on else _remerged(terms, result, dim, piece, inner)]
    return [_as_term(terms, piece, dim, inner, new_lo, new_hi)]


def _key(column_p: Ints, column_q: Ints, inner: int) -> Key:
    touched = np.flatnonzero((column_p != 0) | (column_q != 0))
    rows = tuple((int(r), int(column_p[r]), int(column_q[r])) for r in touched)
    return ("merged", inner, rows)


def _as_term(terms: Terms, piece: Piece, dim: int, inner: int, lo: Ints, hi: Ints) -> Piece:
    """Build merged[.., e.., k] = term[.., row = e + p (k div inner) + q (k mod inner), ..], k last."""
    column_p, column_q = piece.a[:, dim], piece.a[:, dim + 1]
    key = _key(column_p, column_q, inner)
    number = terms.make(_merged_term(terms, piece.term, key))
    a = np.delete(piece.a, dim + 1, axis=1)
    a[:, dim] = 0
    row = np.zeros((1, a.shape[1]), np.int64)
    row[0, dim] = 1
    b, at = _shifted(piece.b, column_p, inner, a)
    return Piece(number, np.vstack([a, row]), np.column_stack([b, at]), lo, hi, piece.on)


def _merged_term(terms: Terms, number: int, key: Key) -> Term:
    """Merge two indices of a term, which adds up over the ranges that the merge does not touch."""
    term = terms.all[number]
    touched = {row for row, _, _ in key[2]}
    ranges = tuple(pair for pair in term.ranges if not touched & set(pair))
    return Term(key, (number,), term.rank + 1, (), term.reducer if ranges else None, ranges)


def _shifted(b: Ints, column_p: Ints, inner: int, a: Ints) -> tuple[Ints, Ints]:
    """Shift the offset of the one row that the outer dimension runs along, so that it is one of k."""
    at = np.zeros(len(b), np.int64)
    rows = np.flatnonzero(column_p)
    if len(rows) != 1 or a[rows[0]].any():
        return b, at
    (row,) = rows
    step = int(column_p[row])
    b = b.copy()
    at = b[:, row] // step * inner
    b[:, row] -= b[:, row] // step * step
    return b, at


def _remerged(terms: Terms, result: Piece, dim: int, piece: Piece, inner: int) -> Piece:
    """Return a part of one row as the merged term that the whole program has of it, if there is one."""
    for number in terms.merges(piece.term):
        key = terms.all[number].key
        size, rows = key[1], key[2]
        lifted = _lifted(terms, result, dim, number, int(size), rows)
        if lifted is not None:
            return lifted
    return result


def lifts(terms: Terms, piece: Piece) -> list[Piece]:
    """Return ``piece`` as pieces of the merges that the table has of its term."""
    result = []
    for number in terms.merges(piece.term):
        key = terms.all[number].key
        for dim in range(piece.a.shape[1]):
            lifted = _lifted(terms, piece, dim, number, int(key[1]), key[2])
            if lifted is not None:
                result.append(lifted)
                break
    return result


def _lifted(
    terms: Terms, result: Piece, dim: int, number: int, inner: int, rows: tuple[tuple[int, int, int], ...]
) -> Piece | None:
    """Return the merge of two indices of one row each, if the piece runs along the second within a row of the first."""
    outer_rows = [r for r, p, q in rows if p == 1 and q == 0]
    inner_rows = [r for r, p, q in rows if q == 1 and p == 0]
    if len(rows) != 2 or len(outer_rows) != 1 or len(inner_rows) != 1:
        return None
    (p,), (q,) = outer_rows, inner_rows
    a, lo, hi, on = result.a, result.lo, result.hi, result.on
    others = np.arange(a.shape[1]) != dim
    wide = result.wide
    if a[p][wide].any() or a[q][others & wide].any() or (wide[dim] and a[q, dim] != 1):
        return None
    at = result.at_lo
    width = hi[:, dim] - lo[:, dim]
    if ((at[:, q] < 0) | (at[:, q] + width > inner))[on].any():
        return None
    new_a = a.copy()
    new_a[[p, q]] = 0
    row = np.zeros((1, a.shape[1]), np.int64)
    row[0, dim] = 1
    b = at - lo @ new_a.T
    b[:, [p, q]] = 0
    k = at[:, p] * inner + at[:, q] - lo[:, dim]
    return Piece(number, np.vstack([new_a, row]), np.column_stack([b, k]), lo, hi, on)


def unmerged(terms: Terms, piece: Piece) -> Piece:
    """Return ``piece`` with the term from which its term is merged, where it lies in rows of that term."""
    term = terms.all[piece.term]
    if term.key[0] != "merged":
        return piece
    inner, rows = int(term.key[1]), term.key[2]
    run, start = piece.a[-1], piece.b[:, -1]
    outer = run % inner == 0  # these dimensions move by whole rows, the others must stay in one
    steps = np.where(outer, 0, run)
    low = start + np.minimum(piece.lo * steps, (piece.hi - 1) * steps).sum(1)
    high = start + np.maximum(piece.lo * steps, (piece.hi - 1) * steps).sum(1)
    row = low // inner
    if (row != high // inner)[piece.on].any():
        return piece
    a, b = piece.a[:-1].copy(), piece.b[:, :-1].copy()
    for r, p, q in rows:
        a[r] += p * np.where(outer, run // inner, 0) + q * steps
        b[:, r] += p * row + q * (start - row * inner)
    return unmerged(terms, replace(piece, term=term.parts[0], a=a, b=b))
