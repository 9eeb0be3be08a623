"""Partial sums over ranges that are not adjacent.

Of 8 parts of a batch one group of devices may add up the parts 0, 2, 4 and 6, and another one the others; a later sum
fills the gaps. Until then what a device has is a term over a set of boxes of the ranges:

    apart[.., s] = sum of term[.., lo, hi] over the boxes (lo, hi) of the set with the number s

Boxes that adjoin are one box, so the sum of all parts is the term itself again. Parts that overlap have no sum here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.proving.relations.pieces import Bools, Ints, Piece
from shardpass.proving.relations.terms import Term, Terms

MOST_BOXES = 1024  # of one set


def total_apart(terms: Terms, pieces: Sequence[tuple[int, Ints, Ints]], box: tuple[Ints, Ints, Bools]) -> Piece | None:
    """Return the sum of parts of one reduction, (term, ``a``, ``b``) in ``box``; None where the parts overlap or are
    empty.

    ``b``: [parts, rows, rank of the term].
    """
    lo, hi, on = box
    bases = {_base(terms, number) for number, _, _ in pieces}
    base = bases.pop()
    if bases or not terms.all[base].ranges:
        return None
    wide = ((hi - lo > 1) & on[:, None]).any(0)
    kept_a, kept_at, numbers = [], [], []
    for number, a, b in pieces:
        at = lo @ a.T + b
        term = terms.all[number]
        own = sorted({index for pair in term.ranges for index in pair}) if term.ranges else [term.rank - 1]
        if a[own][:, wide].any():
            return None
        others = [index for index in range(term.rank) if index not in own]
        kept_a.append(a[others])
        kept_at.append(at[:, :, others])
        numbers.append(_sets(terms, term, at) if term.ranges else at[:, :, -1])
    sets = np.concatenate(numbers)[:, on]
    kept = np.concatenate(kept_at)[:, on]
    if any((a[:, wide] != kept_a[0][:, wide]).any() for a in kept_a):
        return None
    some = np.array([len(boxes) > 0 for boxes in terms.sets])[sets]
    led = kept[some.argmax(0), np.arange(sets.shape[1])]
    if (some & (kept != led).any(2)).any():
        return None
    columns, inverse = np.unique(sets.T, axis=0, return_inverse=True)
    unions = [_union(terms, column) for column in columns]
    if any(number is None for number in unions):
        return None
    result = np.zeros(len(on), np.int64)
    result[on] = np.array(unions, np.int64)[inverse.reshape(-1)]
    b = np.zeros((len(on), len(kept_a[0])), np.int64)
    b[on] = led - lo[on] @ kept_a[0].T
    return _piece(terms, base, kept_a[0], b, result, box)


def _base(terms: Terms, number: int) -> int:
    term = terms.all[number]
    return term.parts[0] if term.key[0] == "apart" else number


def _sets(terms: Terms, term: Term, at: Ints) -> Ints:
    """Return the numbers of sets of one box each, [parts, rows], or of the empty set where the box is empty."""
    bounds = np.array(term.ranges)
    rows = at[:, :, bounds.T.ravel()].reshape(-1, bounds.size)  # the lows, then the highs
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    half = len(bounds)
    numbers = [terms.set_of(row[None][: int((row[:half] < row[half:]).all())]) for row in distinct]
    return np.array(numbers, np.int64)[inverse.reshape(-1)].reshape(at.shape[:2])


def _union(terms: Terms, numbers: Ints) -> int | None:
    """Return the set of all boxes of sets; None where two of them intersect."""
    boxes = np.concatenate([terms.sets[number] for number in numbers])
    if len(boxes) > MOST_BOXES:
        return None
    boxes = closed(boxes)
    half = boxes.shape[1] // 2
    lows, highs = boxes[:, :half], boxes[:, half:]
    if half == 1:  # in order
        return None if (highs[:-1] > lows[1:]).any() else terms.set_of(boxes)
    meet = np.asarray((np.maximum(lows[:, None], lows[None]) < np.minimum(highs[:, None], highs[None])).all(2))
    np.fill_diagonal(meet, False)
    return None if meet.any() else terms.set_of(boxes)


def closed(boxes: Ints) -> Ints:
    """Merge adjacent boxes [box, lows and highs], in order; each position lies in as many boxes as before."""
    half = boxes.shape[1] // 2
    before = len(boxes) + 1
    while len(boxes) < before:
        before = len(boxes)
        for dim in range(half):
            others = [d for d in range(2 * half) if d not in (dim, half + dim)]
            boxes = boxes[np.lexsort((boxes[:, dim], *boxes[:, others].T[::-1]))]
            begins = np.ones(len(boxes), bool)
            begins[1:] = (boxes[1:, others] != boxes[:-1, others]).any(1) | (boxes[1:, dim] != boxes[:-1, half + dim])
            ends = np.append(begins[1:], True)[: len(boxes)]
            joined = boxes[begins].copy()
            joined[:, half + dim] = boxes[ends, half + dim]
            boxes = joined
    return boxes[np.lexsort(boxes.T[::-1])]


def _piece(terms: Terms, base: int, a: Ints, b: Ints, sets: Ints, box: tuple[Ints, Ints, Bools]) -> Piece:
    """Return ``b``, and ``a`` of all indices except the ranges that ``sets`` names, one for each row."""
    term = terms.all[base]
    zero = np.zeros((1, a.shape[1]), np.int64)
    used = set(sets[box[2]].tolist())
    if any(len(terms.sets[number]) > 1 for number in used):
        rank = term.rank - 2 * len(term.ranges) + 1
        number = terms.make(Term(("apart", term.reducer, term.ranges), (base,), rank, (), term.reducer))
        return Piece(number, np.concatenate([a, zero]), np.column_stack([b, sets]), *box)
    own = np.array(term.ranges).T.ravel()
    others = [index for index in range(term.rank) if index not in own]
    all_a = np.zeros((term.rank, a.shape[1]), np.int64)
    all_b = np.zeros((len(b), term.rank), np.int64)
    all_a[others], all_b[:, others] = a, b
    bounds = np.zeros((len(terms.sets), len(own)), np.int64)
    for number in used:
        bounds[number] = terms.sets[number].sum(0)  # of one box, or of none
    all_b[:, own] = bounds[sets]
    return Piece(base, all_a, all_b, *box)
