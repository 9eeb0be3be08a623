"""Integers that are known before the program runs: positions, and arithmetic on them, for each device exactly.

Such an integer is an index of the term ``position``, whose element at i is i: iota is position[i], and the number of a
device position[d]. Sums and multiples of positions are positions, so an iota that starts at a device's offset is the
same term as that of the whole program. Booleans are constants: a comparison along one dimension is two boxes.

Results that leave the range of the element type are not positions; numbers of one element wrap as the type does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shardpass.proving.relations.elements import integer_value
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Bools, Content, Ints, Piece, made
from shardpass.proving.relations.terms import Terms

Box = tuple[Ints, Ints, Bools]


def is_integer(element: str) -> bool:
    return re.fullmatch(r"u?i[0-9]+", element) is not None


def limits(element: str) -> tuple[int, int]:
    """Return the least and the greatest number of an integer type; for unsigned 64 bits, those that int64 can have."""
    bits = int(element.lstrip("ui"))
    if bits == 1:
        return 0, 1
    if element.startswith("ui"):
        return 0, min(2**bits, 2**63) - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def wrapped(numbers: Ints, element: str) -> Ints:
    low, high = limits(element)
    if high - low + 1 >= 2**63:
        return numbers
    return (numbers - low) % (high - low + 1) + low


def affine(terms: Terms, piece: Piece) -> tuple[Ints, Ints] | None:
    """Return (column, offset) of integers that are ``column @ i + offset``: [rank], [devices]; None for others.

    An element of a table of constants, another one on each device, is known too: it has no column.
    """
    if piece.term == terms.position:
        return piece.a[0], piece.b[:, 0]
    if piece.a[:, piece.wide].any():
        return None
    at = np.where(piece.on[:, None], piece.at_lo, 0)
    numbers = elements(terms, piece.term, at.T)
    return None if numbers is None else (np.zeros(piece.a.shape[1], np.int64), numbers)


def numbers_piece(terms: Terms, element: str, column: Ints, offset: Ints, box: Box) -> Piece | None:
    """Return the piece whose elements are ``column @ i + offset``."""
    lo, hi, on = box
    live = offset[on]
    if not column.any() and len(live) and (live == live[0]).all():
        return constant_piece(terms, element, live[0], box)
    return made(terms.position, column[None, :], offset[:, None], lo, hi, on)


def constant_piece(terms: Terms, element: str, value: Any, box: Box) -> Piece | None:
    """Return the piece whose elements are all ``value``. Raises Unknown where its type does not have that number."""
    lo, hi, on = box
    least, most = limits(element)
    if not least <= int(value) <= most:
        raise Unknown(f"{value} is no number of type {element}")
    term = terms.constant(element, integer_value(int(value), element))
    return made(term, np.zeros((0, lo.shape[1]), np.int64), np.zeros((len(on), 0), np.int64), lo, hi, on)


def known_numbers(terms: Terms, content: Content) -> Ints | None:
    """Return the value of a one-element tile on each device, [devices]; None if it is unknown."""
    if int(np.prod(content.shape)) != 1 or not content.covered():
        return None
    result = np.zeros(len(content.pieces[0].on), np.int64)
    for piece in content.pieces:
        known = affine(terms, piece)
        if known is None:
            return None
        result[piece.on] = (piece.lo @ known[0] + known[1])[piece.on]
    return result


def elements(terms: Terms, term: int, index: Ints) -> Any:
    """Return the elements of ``term`` at ``index``, [rank of the term, n], if it is made of known integers alone."""
    if term == terms.position:
        return index[0]
    value = terms.values.get(term)
    if value is None or value.dtype.kind not in "iub":
        return None
    if value.dtype.kind == "u" and value.size and value.max() >= 2**63:
        return None
    if value.ndim == 0:
        return np.full(index.shape[1], int(value), np.int64)
    return np.asarray(value[tuple(index)], np.int64)


def extremes(column: Ints, offset: Ints, box: Box) -> tuple[int, int]:
    """Return the least and the greatest of ``column @ i + offset`` in the box, on all devices."""
    lo, hi, on = box
    first, last = lo * column, (hi - 1) * column
    low, high = np.minimum(first, last).sum(1) + offset, np.maximum(first, last).sum(1) + offset
    return int(low[on].min()), int(high[on].max())


def _within_int64(known: tuple[Ints, Ints] | None, box: Box) -> bool:
    """Return whether sums and differences of two such numbers fit into int64, in all of the box."""
    if known is None:
        return False
    column, offset = known
    lo, hi, on = box
    reach = np.abs(column).astype(np.float64) @ np.maximum(np.abs(lo), np.abs(hi)).max(0)
    return bool(np.abs(offset[on].astype(np.float64)).max() + reach < 2**61)


def _in_range(column: Ints, offset: Ints, box: Box, element: str) -> bool:
    low, high = extremes(column, offset, box)
    least, most = limits(element)
    return least <= low and high <= most


_SMALL = 2**31

Arithmetic = Callable[[Ints, Ints], Ints]
_DIVIDE: Arithmetic = lambda x, y: np.where(y == 0, -1, np.abs(x) // np.maximum(np.abs(y), 1) * np.sign(x) * np.sign(y))  # noqa: E731
_EXACT: Mapping[str, Arithmetic] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "divide": _DIVIDE,
    "remainder": lambda x, y: x - _DIVIDE(x, y) * y,
}
_COMPARED: Mapping[str, Callable[[Ints, Ints], Bools]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def arithmetic(terms: Terms, name: str, element: str, pieces: Sequence[Piece], box: Box) -> list[Piece | None] | None:
    """Compute an op of integers on known numbers; None where the result is not known."""
    known = [affine(terms, p) for p in pieces]
    if any(k is None or not _within_int64(k, box) for k in known):
        return None
    if element == "i1":  # as truth values add up
        name = {"add": "or", "multiply": "and", "subtract": ""}.get(name, name)
    wide = ((box[1] - box[0] > 1) & box[2][:, None]).any(0)
    columns, offsets = zip(*(k for k in known if k is not None), strict=True)
    single = [not c[wide].any() for c in columns]
    at = [offset + box[0] @ column for column, offset in zip(columns, offsets, strict=True)]
    if len(pieces) == 1:
        return _unary(terms, name, element, columns[0], offsets[0], at[0], single[0], box)
    if len(pieces) == 3:
        return _clamp(terms, element, at, box) if name == "clamp" and all(single) else None
    (c1, c2), (o1, o2), (x1, x2) = columns, offsets, at
    if name in ("add", "subtract"):
        sign = 1 if name == "add" else -1
        column, offset = c1 + sign * c2, o1 + sign * o2
        if _in_range(column, offset, box, element):
            return [numbers_piece(terms, element, column, offset, box)]
    if name == "multiply":
        for column, offset, other in ((c1, o1, x2), (c2, o2, x1)):
            live = other[box[2]]
            steady = single[1] if other is x2 else single[0]
            if steady and (live == live[0]).all() and abs(int(live[0])) < _SMALL:
                new = column * int(live[0]), offset * int(live[0])
                if _in_range(*new, box, element):
                    return [numbers_piece(terms, element, *new, box)]
    if not all(single) or name not in _EXACT:
        return _by_steps(terms, name, element, (c1, c2), (o1, o2), single, x2, box)
    if name in ("divide", "remainder") and (x2[box[2]] == 0).any():
        return None
    if name == "multiply" and (np.abs(x1[box[2]]).max() >= _SMALL or np.abs(x2[box[2]]).max() >= _SMALL):
        return None
    return _numbers(terms, element, _EXACT[name](x1, x2), box)


def _numbers(terms: Terms, element: str, numbers: Ints, box: Box) -> list[Piece | None] | None:
    """Wrap one number on each device as its type does; None for numbers beyond int64."""
    value = wrapped(numbers, element)
    if not _in_range(np.zeros(box[0].shape[1], np.int64), value, box, element):
        return None
    return [numbers_piece(terms, element, np.zeros(box[0].shape[1], np.int64), value, box)]


def _by_steps(
    terms: Terms, name: str, element: str, columns: Any, offsets: Any, single: list[bool], divisor: Ints, box: Box
) -> list[Piece | None] | None:
    """Compute ``divide`` and ``remainder`` of positions that stay within one multiple of the divisor."""
    if name not in ("divide", "remainder") or not single[1]:
        return None
    lo, hi, on = box
    live = divisor[on]
    if (live != live[0]).any() or live[0] <= 0:
        return None
    by = int(live[0])
    outer = columns[0] % by == 0
    steps = np.where(outer, 0, columns[0])
    low = offsets[0] + np.minimum(lo * steps, (hi - 1) * steps).sum(1)
    high = offsets[0] + np.maximum(lo * steps, (hi - 1) * steps).sum(1)
    if extremes(columns[0], offsets[0], box)[0] < 0 or (low // by != high // by)[on].any():
        return None
    row = low // by
    if name == "divide":
        return [numbers_piece(terms, element, np.where(outer, columns[0] // by, 0), row, box)]
    return [numbers_piece(terms, element, steps, offsets[0] - row * by, box)]


def _unary(
    terms: Terms, name: str, element: str, column: Ints, offset: Ints, at: Ints, single: bool, box: Box
) -> list[Piece | None] | None:
    if name == "negate" and _in_range(-column, -offset, box, element):
        return [numbers_piece(terms, element, -column, -offset, box)]
    if name == "not" and element == "i1" and single:
        return [numbers_piece(terms, element, np.zeros_like(column), 1 - at, box)]
    if name == "sign" and single:
        return [numbers_piece(terms, element, np.zeros_like(column), np.sign(at), box)]
    if name == "abs" and single:
        return _numbers(terms, element, np.abs(at), box)
    return None


def _clamp(terms: Terms, element: str, at: list[Ints], box: Box) -> list[Piece | None]:
    value = np.minimum(np.maximum(at[1], at[0]), at[2])
    return [numbers_piece(terms, element, np.zeros(box[0].shape[1], np.int64), value, box)]


def converted(terms: Terms, old: str, new: str, piece: Piece) -> Piece | None:
    """Convert known integers to another integer type; None where the values do not stay known."""
    known = affine(terms, piece)
    if known is None or not (is_integer(old) and is_integer(new)):
        return None
    box = piece.lo, piece.hi, piece.on
    column, offset = known
    if new == "i1":
        if column[piece.wide].any():
            return None
        at = offset + piece.lo @ column
        return numbers_piece(terms, new, np.zeros_like(column), (at != 0).astype(np.int64), box)
    if _in_range(column, offset, box, new):
        return numbers_piece(terms, new, column, offset, box)
    if not column[piece.wide].any():
        result = _numbers(terms, new, offset + piece.lo @ column, box)
        return result[0] if result else None
    return None


def compared(terms: Terms, direction: str, pieces: Sequence[Piece], box: Box) -> list[Piece | None] | None:
    """Compare two known integers, as boxes of true and false; None where the result follows no box."""
    known = [affine(terms, p) for p in pieces]
    if any(k is None or not _within_int64(k, box) for k in known):
        return None
    (c1, o1), (c2, o2) = (k for k in known if k is not None)
    lo, hi, on = box
    wide = ((hi - lo > 1) & on[:, None]).any(0)
    column, offset = c1 - c2, o1 - o2
    dims = np.flatnonzero(wide & (column != 0))
    if len(dims) > 1:
        return None
    narrow = column.copy()
    narrow[dims] = 0
    rest = offset + lo @ narrow
    if len(dims) == 0:
        true = _COMPARED[direction](rest, np.zeros_like(rest))
        return [_truth(terms, True, (lo, hi, on & true)), _truth(terms, False, (lo, hi, on & ~true))]
    (dim,) = dims
    step = int(column[dim])
    if direction in ("EQ", "NE"):
        where = -rest // step
        hit = rest + where * step == 0
        bounds = np.where(hit, where, lo[:, dim]), np.where(hit, where + 1, lo[:, dim])
        inside, outside = direction == "EQ", direction != "EQ"
    else:
        # step * i + rest < limit, or its opposite
        limit = 1 if direction in ("LE", "GT") else 0
        below = direction in ("LT", "LE")
        if step > 0:
            end = -((rest - limit) // step)
            bounds = lo[:, dim], end
        else:
            start = (rest - limit) // -step + 1
            bounds = start, hi[:, dim]
        inside, outside = below, not below
    begin, end = np.clip(bounds[0], lo[:, dim], hi[:, dim]), np.clip(bounds[1], lo[:, dim], hi[:, dim])
    parts = [(lo[:, dim], begin, outside), (begin, end, inside), (np.maximum(begin, end), hi[:, dim], outside)]
    result: list[Piece | None] = []
    for first, last, value in parts:
        part_lo, part_hi = lo.copy(), hi.copy()
        part_lo[:, dim], part_hi[:, dim] = first, last
        result.append(_truth(terms, value, (part_lo, part_hi, on)))
    return result


def _truth(terms: Terms, value: bool, box: Box) -> Piece | None:
    return constant_piece(terms, "i1", value, box)
