"""Terms with a constant beyond their bounds, which represent padded arrays as one term.

    extended[i] = term[i] where lo <= i[row] < hi for each bounded row, and the constant elsewhere

A window that slides over a padded array reads it at any position, and a tile of the padded array on an inner device is
all of the term, on the first and the last device partly constant: pieces of one extended term, on all devices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.proving.relations.pieces import Bools, Content, Ints, Piece, common, minus
from shardpass.proving.relations.terms import Key, Term, Terms


def rows_along(terms: Terms, content: Content, dims: Sequence[int]) -> list[Piece] | None:
    """Return the same value as pieces with all of the dimensions ``dims``, some of extended terms; None where
    impossible.
    """
    if not content.covered():
        return None
    own = [p for p in content.pieces if terms.splat(p.term) is None]
    constant = [p for p in content.pieces if terms.splat(p.term) is not None]
    result: list[Piece] = []
    left = [(p, (p.lo, p.hi, p.on)) for p in constant]
    for piece in own:
        lo, hi = piece.lo.copy(), piece.hi.copy()
        for dim in dims:
            lo[:, dim], hi[:, dim] = 0, content.shape[dim]
        region = Piece(piece.term, piece.a, piece.b, lo, hi, piece.on)
        rest = minus(lo, hi, piece.on, piece)
        if not rest:
            result.append(piece)
            continue
        values = {p.term for p in constant if any(common([_boxed(p, r), p]) is not None for r in rest)}
        for p in constant:
            rest = [part for one in rest for part in minus(*one, p)]
        if rest or len(values) != 1:
            return None
        one = _extended(terms, piece, region, content, dims, values.pop())
        if one is None:
            return None
        result.append(one)
        left = [(p, part) for p, box in left for part in minus(*box, region)]
    for p, box in left:
        (lo, hi, on) = box
        if not on.any():
            continue
        if (lo[on][:, list(dims)] != 0).any() or (hi[on][:, list(dims)] != np.array(content.shape)[list(dims)]).any():
            return None
        result.append(Piece(p.term, p.a, p.b, *box))
    return result


def _boxed(piece: Piece, box: tuple[Ints, Ints, Bools]) -> Piece:
    return Piece(piece.term, piece.a, piece.b, *box)


def _extended(
    terms: Terms, piece: Piece, region: Piece, content: Content, dims: Sequence[int], value: int
) -> Piece | None:
    """Return ``piece`` on all of ``region``, as a term that is the constant ``value`` beyond it."""
    for number in terms.extensions(piece.term, value):
        if _fits(piece, content, dims, terms.all[number].key):
            return Piece(number, piece.a, piece.b, region.lo, region.hi, piece.on)
    bounds = _bounds(piece, content, dims)
    if bounds is None:
        return None
    number = terms.make(Term(("extended", bounds), (piece.term, value), terms.all[piece.term].rank))
    return Piece(number, piece.a, piece.b, region.lo, region.hi, piece.on)


def _row_along(piece: Piece, dim: int) -> tuple[int, int] | None:
    """Return the first index that runs along ``dim`` alone, forwards, and its step."""
    for row in np.flatnonzero(piece.a[:, dim] > 0):
        if np.count_nonzero(piece.a[row]) == 1:
            return int(row), int(piece.a[row, dim])
    return None


def _bounds(piece: Piece, content: Content, dims: Sequence[int]) -> tuple[tuple[int, int, int], ...] | None:
    """Return (row, lo, hi) for each padded dimension, which are the same on all devices."""
    result, on = [], piece.on
    for dim in dims:
        size = content.shape[dim]
        if (piece.lo[on, dim] == 0).all() and (piece.hi[on, dim] == size).all():
            continue
        along = _row_along(piece, dim)
        if along is None:
            return None
        row, step = along
        lo = (piece.b[:, row] + step * piece.lo[:, dim])[on]
        hi = (piece.b[:, row] + step * piece.hi[:, dim])[on]
        if (lo != lo[0]).any() or (hi != hi[0]).any():
            return None
        result.append((row, int(lo[0]), int(hi[0])))
    return tuple(sorted(result))


def _fits(piece: Piece, content: Content, dims: Sequence[int], key: Key) -> bool:
    """Return whether ``piece`` is, on each device, exactly what lies within the bounds of an extended term."""
    bounds = {row: (lo, hi) for row, lo, hi in key[1]}
    seen, on = set(), piece.on
    for dim in dims:
        size = content.shape[dim]
        along = [
            int(r) for r in np.flatnonzero(piece.a[:, dim] > 0) if r in bounds and np.count_nonzero(piece.a[r]) == 1
        ]
        if not along:
            if (piece.lo[on, dim] != 0).any() or (piece.hi[on, dim] != size).any():
                return False
            continue
        if len(along) > 1:
            return False
        (row,) = along
        seen.add(row)
        step = int(piece.a[row, dim])
        first, last = (_clip(-((piece.b[:, row] - end) // step), size) for end in bounds[row])
        if (piece.lo[:, dim] != first)[on].any() or (piece.hi[:, dim] != last)[on].any():
            return False
    # a bounded index that runs along no dimension of its own must lie within its bounds
    low, high = _reach(piece, content)
    return all(((low[:, r] >= lo) & (high[:, r] < hi))[on].all() for r, (lo, hi) in bounds.items() if r not in seen)


def _reach(piece: Piece, content: Content) -> tuple[Ints, Ints]:
    """Return the least and the greatest of each index in the whole tile."""
    last = np.array(content.shape, np.int64) - 1
    ends = piece.a * last
    return piece.b + np.minimum(ends, 0).sum(1), piece.b + np.maximum(ends, 0).sum(1)


def _clip(position: Ints, size: int) -> Ints:
    return np.clip(position, 0, size)


def dilated(terms: Terms, content: Content, value: int, steps: Sequence[int]) -> Content | None:
    """Space the elements of ``content`` ``steps`` apart along each dimension, with the constant between them; or
    None.

    dilated[.., q, ..] = term[.., q div step, ..] where q = step * (c i + phase) for an i, and the constant elsewhere

    ``c`` is by how much the index of the term runs, 1 but for values of strided windows.
    """
    size = np.array([max((n - 1) * s + 1, 0) for n, s in zip(content.shape, steps, strict=True)], np.int64)
    result = []
    for piece in content.pieces:
        key, b, hi = [], piece.b.copy(), piece.hi.copy()
        for dim, step in enumerate(steps):
            if step == 1:
                continue
            rows = np.flatnonzero(piece.a[:, dim])
            alone = all(np.count_nonzero(piece.a[r]) == 1 for r in rows)
            whole = (piece.lo[piece.on, dim] == 0).all() and (hi[piece.on, dim] == content.shape[dim]).all()
            if not len(rows) or not alone or not whole:
                return None
            lead, run = int(rows[0]), abs(int(piece.a[rows[0], dim]))
            phase = piece.b[piece.on, lead] % run
            if (phase != phase[0]).any():
                return None
            key.append((tuple(rows.tolist()), step, run, int(phase[0])))
            b[:, rows] *= step
            hi[:, dim] = size[dim]
        number = terms.make(Term(("dilated", tuple(sorted(key))), (piece.term, value), len(piece.a)))
        result.append(Piece(number, piece.a, b, piece.lo, hi, piece.on))
    return Content(tuple(int(n) for n in size), content.element, tuple(result))


def widened(content: Content, dim: int, low: int, high: int) -> Content:
    """Widen a dilated array at both ends by as many constants as lie between two of its elements.

    ``low`` and ``high`` are less than the dilation along ``dim``, and pieces have all of it.
    """
    shape = tuple(n + (low + high if d == dim else 0) for d, n in enumerate(content.shape))
    by = np.zeros(content.rank, np.int64)
    by[dim] = low
    pieces = []
    for piece in content.pieces:
        moved = piece.moved(by)
        lo, hi = moved.lo.copy(), moved.hi.copy()
        lo[:, dim], hi[:, dim] = 0, shape[dim]
        pieces.append(Piece(moved.term, moved.a, moved.b, lo, hi, moved.on))
    return Content(shape, content.element, tuple(pieces))
