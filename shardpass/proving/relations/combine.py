"""Combine the pieces of an op's operands into a piece of its result: elementwise ops and reductions.

**An op on pieces.** A piece gives the index into its term's array as an affine function ``a i + b`` of the position i
in the box. Stacking the index rows of all operands determines the term of the result: rows that differ by a constant
become one index of the new term, a row that is the same constant on all devices is fixed in the pattern, and every
other row becomes an index of its own. Patterns that the table already has are tried first, those of the whole program
before others. A pattern matches if its rows agree with the pieces at every position. Example: on device 2 a one-row
tile of x[i, j] + b[i, j] has i = 2 in both operands; the whole program's pattern requires that the two indices are
equal, and they are.

**A reduction over a dimension.** The index row that varies along the dimension is replaced by its range (lo, hi). If
several rows vary, those after the first are stored relative to it. Example: a dot of x[m, k] and y[k, n] over k in
[4, 8) is sum[m, n, 4, 8] of x[m, k] * y[k, n]. A convolution at o with offsets k has the rows o + k and k, and is
sum[o, 0, 3], the first relative to the second.

**Partial sums.** Pieces of one reduction whose ranges are disjoint and together fill one range (or one box, if there
are several reduced dimensions) combine into one piece over that range, if all other indices are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from math import prod

import numpy as np

from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Bools, Ints, Piece, common, tidy, wide_in
from shardpass.proving.relations.reducers import goes_on
from shardpass.proving.relations.reshaping import lifts
from shardpass.proving.relations.rows import image, live, with_dimension
from shardpass.proving.relations.terms import Key, Row, Term, Terms

MOST_VIEWS = 16
MOST_INDICES = 4096  # of the operands of one op; sums of sums of parts may have more and more
COMMUTES = tuple(f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"))
COMPARED = ("compare", "EQ"), ("compare", "NE")  # these commute too


def combine(terms: Terms, key: Key, pieces: Sequence[Piece], box: tuple[Ints, Ints, Bools]) -> Piece:
    """Apply the op ``key`` to ``pieces`` in a box that is inside all of them."""
    lo, hi, on = box
    if sum(len(p.a) for p in pieces) > MOST_INDICES:
        raise Unknown("the terms of its operands have too many indices")
    if key[0] in COMMUTES or key[:2] in COMPARED:  # the operands may stand in any order: the oldest term first
        pieces = sorted(pieces, key=lambda piece: piece.term)
    a = np.concatenate([p.a for p in pieces])
    b = np.concatenate([p.b for p in pieces], axis=1)
    wide = wide_in(lo, hi, on)
    at_lo = live(b + image(a, lo), on)
    parts = tuple(p.term for p in pieces)
    for number in terms.patterns(key, parts):
        chosen = _matched(terms.all[number], a[:, wide], at_lo)
        if chosen is not None:
            return Piece(number, a[chosen], b[:, chosen], lo, hi, on)
    if terms.has_merges and not terms.patterns(key, parts):
        result = _by_other_views(terms, key, pieces, box)
        if result is not None:
            return result
    rows, chosen = _pattern(a, at_lo)
    number = terms.make(Term(key, parts, len(chosen), rows))
    return Piece(number, a[chosen], b[:, chosen], lo, hi, on)


def _by_other_views(terms: Terms, key: Key, pieces: Sequence[Piece], box: tuple[Ints, Ints, Bools]) -> Piece | None:
    """Return the op of the same operands as merges of their terms, if the table has that op."""
    known_of = [Piece(p.term, p.a, p.b, *box) for p in pieces]
    views = [[p, *lifts(terms, p)] for p in known_of]
    if all(len(v) == 1 for v in views) or prod(map(len, views)) > MOST_VIEWS:
        return None
    for chosen in product(*views):
        if terms.patterns(key, tuple(p.term for p in chosen)) and any(
            p is not q for p, q in zip(chosen, known_of, strict=True)
        ):
            known = len(terms.all)
            result = combine(terms, key, chosen, box)
            if result.term < known:
                return result
    return None


def _matched(term: Term, columns: Ints, at_lo: Ints) -> list[int] | None:
    """Return the row that supplies each index of ``term`` (-1: no row), or None where a row does not match."""
    chosen = [-1] * term.rank
    shift = [0] * term.rank
    for row, (index, constant) in enumerate(term.rows):
        if index >= 0 and chosen[index] < 0:
            chosen[index], shift[index] = row, constant
    if not term.rows:
        return chosen
    places = np.array([row[0] for row in term.rows])
    constants = np.array([row[1] for row in term.rows])
    fixed = places < 0
    if fixed.any() and (columns[fixed].any() or (at_lo[:, fixed] != constants[fixed]).any()):
        return None
    moving = ~fixed
    first = np.array(chosen, np.int64)[places[moving]]
    if (columns[moving] != columns[first]).any() or (at_lo[:, moving] - at_lo[:, first] != constants[moving]).any():
        return None
    return chosen


def _pattern(a: Ints, at_lo: Ints) -> tuple[tuple[Row, ...], list[int]]:
    """Return a new pattern: the index of each row, and the rows that are the indices.

    Rows that run alike are one index where they are as far apart on every device. Cost: O(rows).
    """
    rows: list[Row] = []
    chosen: list[int] = []
    runs: Bools = np.asarray(a.any(1))
    constant: Bools = np.asarray(~runs & (at_lo == at_lo[:1]).all(0))
    apart = np.ascontiguousarray((at_lo - at_lo[:1]).T)
    known: dict[tuple[bytes, bytes], int] = {}
    for row in range(len(a)):
        if constant[row]:
            rows.append((-1, int(at_lo[0, row])))
            continue
        key = a[row].tobytes(), apart[row].tobytes()
        index = known.get(key) if runs[row] else None
        if index is None:
            known[key] = len(chosen)
            rows.append((len(chosen), 0))
            chosen.append(row)
        else:
            rows.append((index, int(at_lo[0, row] - at_lo[0, chosen[index]])))
    return tuple(rows), chosen


def reduce_along(terms: Terms, reducer: Hashable, piece: Piece, dim: int) -> Piece | None:
    """Reduce ``piece`` along ``dim`` over its box; the dimension has size 1 in the result, at position 0.

    None where the range is of a kind that no term says.
    """
    a, b, lo, hi = piece.a, piece.b, piece.lo, piece.hi
    count = np.where(piece.on, hi[:, dim] - lo[:, dim], 0)
    term = terms.all[piece.term]
    wide = piece.wide
    running = np.flatnonzero(a[:, dim])
    if not wide[dim]:
        a = _column_as_known(terms, reducer, piece, dim)
        running = np.flatnonzero(a[:, dim])
    new_lo, new_hi = with_dimension(lo, dim, 0), with_dimension(hi, dim, 1)
    base = b + np.outer(lo[:, dim], a[:, dim]) if lo[:, dim].any() else b  # at the first position of the range
    rest = a.copy()
    rest[:, dim] = 0
    if len(running) == 0 and (count[piece.on] == 1).all():
        return Piece(piece.term, rest, base, new_lo, new_hi, piece.on)
    if len(running) == 0:  # the same element again and again: a multiple of it
        return times(terms, reducer, Piece(piece.term, rest, base, new_lo, new_hi, piece.on), count)
    telescoped = _telescoped(term, reducer, a, base, dim, running, piece, count)
    if telescoped is not None:
        new_b = telescoped
        return Piece(piece.term, rest, new_b, new_lo, new_hi, piece.on)
    first, *others = [int(r) for r in running]
    # the row along which the range is counted: one that runs along nothing else, while the others run multiples of it
    alone = [int(r) for r in running if not rest[r].any()]
    if alone:
        slow = [r for r in alone if not (a[running, dim] % a[r, dim]).any()]
        first = (slow or alone)[0]
        others = [int(r) for r in running if r != first]
    step = int(a[first, dim])
    if step < 0:  # the other way round: sums do not mind
        base = base + np.outer(count - 1, a[:, dim])
        step, column = -step, -a[:, dim]
    else:
        column = a[:, dim]
    if any(column[r] % step for r in others):
        return None
    ratios = tuple(int(column[r]) // step for r in others)
    shared = (tuple(np.array(others, int).tolist()), ratios)
    relative_a, relative_b = rest.copy(), base.copy()
    for row, ratio in zip(others, ratios, strict=True):
        relative_a[row] -= ratio * rest[first]
        relative_b[:, row] -= ratio * base[:, first]
    order = [r for r in range(len(a)) if r != first]
    ranges = _kept_ranges(term, reducer, [r for r in order if r not in others], order)
    number = terms.make(
        Term(
            ("reduce", reducer, first, step, shared),
            (piece.term,),
            term.rank + 1,
            (),
            reducer,
            (*ranges, (term.rank - 1, term.rank)),
        )
    )
    new_a = np.vstack([relative_a[order], rest[first], rest[first]])
    start = base[:, first]
    new_b = np.column_stack([relative_b[:, order], start, start + step * count])
    return Piece(number, new_a, new_b, new_lo, new_hi, piece.on)


def times(terms: Terms, reducer: Hashable, piece: Piece, count: Ints) -> Piece:
    """Return the reduction of ``count`` elements on each device, all equal to those of ``piece``."""
    rank = terms.all[piece.term].rank
    number = terms.make(Term(("times", reducer), (piece.term,), rank + 1, tuple(_self(rank))))
    a = np.vstack([piece.a, np.zeros((1, piece.a.shape[1]), np.int64)])
    return Piece(number, a, np.column_stack([piece.b, count]), piece.lo, piece.hi, piece.on)


def _self(rank: int) -> list[Row]:
    return [(index, 0) for index in range(rank)]


def _kept_ranges(
    term: Term, reducer: Hashable, untouched: Sequence[int], order: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the ranges of ``term``, itself a reduction, that its reduction has, too: a sum of sums."""
    if not isinstance(reducer, tuple) or not goes_on(term.reducer, reducer):
        return ()
    place = {old: new for new, old in enumerate(order) if old in set(untouched)}
    return tuple((place[lo], place[hi]) for lo, hi in term.ranges if lo in place and hi in place)


def _column_as_known(terms: Terms, reducer: Hashable, piece: Piece, dim: int) -> Ints:
    """Return ``a`` with a column that matches a reduction in the table, for a dimension of one position.

    Any column says the same of one position; that of a reduction of the whole program gives the same term.
    """
    known = [terms.all[n].key for n in terms.reductions(reducer, piece.term)]
    runs = [(key[2], key[3], *key[4]) for key in known]
    if not runs:
        return piece.a
    column = piece.a[:, dim]
    running = set(np.flatnonzero(column).tolist())
    for first, _, others, _ in runs:
        if running == {first, *others}:
            return piece.a
    first, step, others, ratios = runs[0]
    a = piece.a.copy()
    a[:, dim] = 0
    a[first, dim] = step
    for row, ratio in zip(others, ratios, strict=True):
        a[row, dim] = ratio * step
    return a


def _telescoped(
    term: Term, reducer: Hashable, a: Ints, base: Ints, dim: int, running: Ints, piece: Piece, count: Ints
) -> Ints | None:
    """Return ``b`` of one reduction over the ranges of all positions along ``dim``, if the ranges are adjacent."""
    if term.reducer != reducer or reducer is None or len(running) != 2:
        return None
    for lo, hi in term.ranges:
        if {lo, hi} == set(running.tolist()) and a[lo, dim] == a[hi, dim] and (a[lo] == a[hi]).all():
            step = int(a[lo, dim])
            length = base[:, hi] - base[:, lo]
            live = piece.on & (count > 1)
            if (length[live] != abs(step)).any():
                return None
            result = base.copy()
            if step > 0:
                result[:, hi] = base[:, lo] + np.where(count > 1, step * count, length)
            else:
                result[:, lo] = base[:, hi] + np.where(count > 1, step * count, -length)
            return result
    return None


def add_ranges(terms: Terms, pieces: Sequence[Piece], box: tuple[Ints, Ints, Bools]) -> Piece | None:
    """Return the sum of pieces of one reduction whose ranges are disjoint and form one range; None for others.

    Pieces must be live in all of ``box``.
    """
    lo, hi, on = box
    first = pieces[0]
    if not terms.all[first.term].ranges or any(p.term != first.term for p in pieces):
        return None
    wide = ((hi - lo > 1) & on[:, None]).any(0)
    if any((p.a[:, wide] != first.a[:, wide]).any() for p in pieces):
        return None
    return add_rows(terms, first.term, first.a, np.stack([lo @ p.a.T + p.b for p in pieces]), box)


def add_rows(terms: Terms, number: int, a: Ints, at_lo: Ints, box: tuple[Ints, Ints, Bools]) -> Piece | None:
    """Return the sum of elements of one term: those at ``at_lo`` [pieces, devices, indices] and along ``box`` by
    ``a``; None if their ranges do not form one box.
    """
    lo, hi, on = box
    term = terms.all[number]
    at = at_lo[:, on]
    bounds = np.array(term.ranges)
    lows, highs = at[:, :, bounds[:, 0]], at[:, :, bounds[:, 1]]
    some = np.logical_and.reduce(lows < highs, axis=2)  # a range that is empty adds nothing
    others = np.setdiff1d(np.arange(term.rank), bounds.ravel())
    leader = some.argmax(0)
    row = np.arange(at.shape[1])
    led = at[leader, row]
    agree = (at[:, :, others] == led[None][:, :, others]).all(2)
    if (some & ~agree).any():
        return None
    big = np.iinfo(np.int64)
    low = np.where(some[:, :, None], lows, big.max).min(0)
    high = np.where(some[:, :, None], highs, big.min).max(0)
    none: Bools = ~np.logical_or.reduce(some, axis=0)
    low, high = np.where(none[:, None], lows[0], low), np.where(none[:, None], lows[0], high)
    if not _tiled(lows, highs, some, low, high):
        return None
    value = led.copy()
    value[:, bounds[:, 0]], value[:, bounds[:, 1]] = low, high
    b = np.zeros((len(on), term.rank), np.int64)
    b[on] = value - lo[on] @ a.T
    return Piece(number, a, b, lo, hi, on)


def _tiled(lows: Ints, highs: Ints, some: Bools, low: Ints, high: Ints) -> bool:
    """Return whether on each device the boxes [pieces, devices, ranges] are disjoint and fill the box that bounds
    them.
    """
    filled = np.where(some, np.prod(highs - lows, axis=2), 0).sum(0)
    if (filled != np.prod(high - low, axis=1)).any():
        return False
    varying = np.flatnonzero(((lows != low) | (highs != high))[some].any(0)) if some.any() else np.array([], int)
    if len(varying) == 0:
        return bool((some.sum(0) <= 1).all())
    if len(varying) == 1:
        (dim,) = varying
        start = np.where(some, lows[:, :, dim], np.iinfo(np.int64).max)
        order = start.argsort(0, kind="stable")
        starts = np.take_along_axis(start, order, 0)
        ends = np.take_along_axis(highs[:, :, dim], order, 0)
        live = np.take_along_axis(some, order, 0)
        return bool((~live[1:] | (ends[:-1] <= starts[1:])).all())
    for device in range(lows.shape[1]):
        boxes_lo, boxes_hi = lows[some[:, device], device], highs[some[:, device], device]
        grid = _on_a_grid(boxes_lo[:, varying], boxes_hi[:, varying])
        if grid is not None:
            if len(np.unique(grid, axis=0)) < len(grid):
                return False
            continue
        meet = np.maximum(boxes_lo[:, None], boxes_lo[None]) < np.minimum(boxes_hi[:, None], boxes_hi[None])
        both = meet.all(2)
        np.fill_diagonal(both, False)
        if both.any():
            return False
    return True


def _on_a_grid(lows: Ints, highs: Ints) -> Ints | None:
    """Return the grid cell of each box, [boxes, dimensions], if boxes are equal or disjoint along each dimension."""
    cell = np.empty_like(lows)
    for dim in range(lows.shape[1]):
        edges, number = np.unique(np.stack([lows[:, dim], highs[:, dim]], 1), axis=0, return_inverse=True)
        cell[:, dim] = number.reshape(-1)  # NumPy 2.0 returns a column
        if (edges[:-1, 1] > edges[1:, 0]).any():
            return None
    return cell


def operands_of(terms: Terms, piece: Piece, box: tuple[Ints, Ints, Bools]) -> list[Piece]:
    """Return the pieces from which the op of ``piece``'s term was computed."""
    term = terms.all[piece.term]
    result, at = [], 0
    for part in term.parts:
        rank = terms.all[part].rank
        rows = term.rows[at : at + rank]
        at += rank
        index = np.array([row[0] for row in rows], np.int64)
        constant = np.array([row[1] for row in rows], np.int64)
        moving = np.flatnonzero(index >= 0)
        a = np.zeros((rank, piece.a.shape[1]), np.int64)
        b = np.tile(constant, (len(piece.on), 1)).reshape(len(piece.on), rank)
        a[moving] = piece.a[index[moving]]
        b[:, moving] += piece.b[:, index[moving]]
        result.append(Piece(part, a, b, *box))
    return result


def cells(groups: Sequence[Sequence[Piece]]) -> list[tuple[list[Piece], tuple[Ints, Ints, Bools]]]:
    """Return the boxes that lie in one piece of each of ``groups``, with these pieces."""
    result: list[tuple[list[Piece], tuple[Ints, Ints, Bools]]] = []
    if not groups:
        return result
    result = [([p], (p.lo, p.hi, p.on)) for p in groups[0]]
    for group in groups[1:]:
        longer = []
        for chosen, (lo, hi, on) in result:
            for piece in group:
                box = common([Piece(piece.term, piece.a, piece.b, lo, hi, on), piece])
                if box is not None:
                    longer.append(([*chosen, piece], box))
        result = longer
    return result


__all__ = ["add_ranges", "cells", "combine", "operands_of", "reduce_along", "tidy"]
