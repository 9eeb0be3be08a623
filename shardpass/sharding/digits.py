"""Device numbers as mixed-radix digits.

A *digit* ``(stride, size)`` is the function ``d -> (d // stride) % size`` of a position ``d`` among n. A mesh
axis is a digit; the index of a tile along one dimension is a *number* written with several digits, major to
minor. All of the language is built on three facts:

* neighbours with ``major.stride == minor.stride * minor.size`` are one digit (``merge``), and a merged list is
  a normal form: two merged lists give the same function exactly if they are equal (the least position with
  value 1 is the stride of the most minor digit, the length of the run 0, 1, 2.. there its size, and so on up);
* hence a table of n values has at most one such form, computed in O(n log n) (``digits_of``);
* an iota device list is a list of digits that covers all positions, and a tile count takes its part from the
  major end (``take``), which works exactly where the cut points nest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Digit = tuple[int, int]
Ints = npt.NDArray[np.int64]


def merge(digits: Iterable[Digit]) -> tuple[Digit, ...]:
    """Return the normal form: without digits of size 1, and with adjacent digits merged where possible."""
    out: list[Digit] = []
    for stride, size in digits:
        if size == 1:
            continue
        if out and out[-1][0] == stride * size:
            stride, size = stride, size * out.pop()[1]
        out.append((stride, size))
    return tuple(out)


def total(digits: Iterable[Digit]) -> int:
    return math.prod(size for _, size in digits)


def values(digits: Sequence[Digit], n: int) -> Ints:
    """Return the number that ``digits`` write, at each position 0..n-1. int64 [n]."""
    positions = np.arange(n, dtype=np.int64)
    out = np.zeros(n, dtype=np.int64)
    for stride, size in digits:
        out *= size
        out += positions // stride % size
    return out


def digits_of(table: Ints, count: int) -> tuple[Digit, ...] | None:
    """Find the digits that produce ``table`` (values 0..count-1 at each position); None if no digits do. O(n log n)."""
    n = len(table)
    reversed_digits: list[Digit] = []  # minor to major
    rest, left = table, count
    while left > 1:
        ones = np.flatnonzero(rest == 1)
        if not len(ones):
            return None
        stride = int(ones[0])
        run = rest[::stride] if stride else rest
        limit = min(left, len(run))
        breaks = np.flatnonzero(run[:limit] != np.arange(limit))
        size = int(breaks[0]) if len(breaks) else limit
        if stride < 1 or size < 2 or left % size or n % (stride * size):
            return None
        reversed_digits.append((stride, size))
        rest, left = rest // size, left // size
    digits = tuple(reversed(reversed_digits))
    return digits if np.array_equal(values(digits, n), table) else None


def iota(shape: Sequence[int], perm: Sequence[int]) -> tuple[Digit, ...]:
    """Return the digits of ``iota(prod).reshape(shape).transpose(perm)``, row-major, merged."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return merge((strides[p], shape[p]) for p in perm)


def take(digits: list[Digit], count: int) -> tuple[Digit, ...] | None:
    """Remove and return the major part of ``digits`` with ``count`` values; None if the cuts do not nest."""
    out: list[Digit] = []
    while count > 1:
        if not digits:
            return None
        stride, size = digits.pop(0)
        if count % size == 0:
            out.append((stride, size))
            count //= size
        elif size % count == 0:
            rest = size // count
            out.append((stride * rest, count))
            digits.insert(0, (stride, rest))
            count = 1
        else:
            return None
    return merge(out)


def missing(digits: Iterable[Digit], n: int) -> tuple[Digit, ...]:
    """Return the digits of 0..n-1 that ``digits`` (disjoint) leave out, major to minor, merged."""
    out: list[Digit] = []
    top = n
    for stride, size in sorted(digits, reverse=True):
        if stride * size < top:
            out.append((stride * size, top // (stride * size)))
        top = stride
    if top > 1:
        out.append((1, top))
    return merge(out)


def shape_and_perm(digits: Sequence[Digit]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and transpose of the iota that counts through ``digits``, which cover all positions."""
    order = sorted(range(len(digits)), key=lambda k: -digits[k][0])
    rank = {k: place for place, k in enumerate(order)}
    return tuple(digits[k][1] for k in order), tuple(rank[k] for k in range(len(digits)))
