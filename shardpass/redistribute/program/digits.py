"""Map elements of a local array to the whole array: axes as digits in mixed radix.

The position on an axis of a local array is a number; written in mixed radix, each of its *digits* (size, dim, stride),
major to minor, moves the element by ``stride`` along dimension ``dim`` of the whole array. A contiguous tile of n rows
has the one digit (n, 0, 1). Of an array of 8 rows, the rows 0, 1, 4, 5 are the digits (2, 0, 4), (2, 0, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shardpass.redistribute.problem.device_arrays import IntArray


class Unproven(Exception):
    """The simulator could not prove the program: the program is wrong, or beyond the simulator."""


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of an axis: ``size`` places, each ``stride`` further along dimension ``dim`` of the whole array."""

    size: int
    dim: int
    stride: int


Axis = tuple[Digit, ...]


def merged(digits: list[Digit] | Axis) -> Axis:
    """Merge consecutive digits that form one digit, and drop digits of size 1."""
    out: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        if out and out[-1].dim == digit.dim and out[-1].stride == digit.size * digit.stride:
            digit = Digit(out.pop().size * digit.size, digit.dim, digit.stride)
        out.append(digit)
    return tuple(out)


def cut(axis: Axis, minor: int) -> tuple[Axis, Axis]:
    """Split an axis into a major part and a minor part of ``minor`` positions."""
    low: list[Digit] = []
    high = list(axis)
    while minor > 1:
        if not high:
            raise Unproven(f"an axis has no part of {minor} positions")
        digit = high.pop()
        part = math.gcd(digit.size, minor)
        if part == digit.size:
            low.insert(0, digit)
        elif part == minor:
            low.insert(0, Digit(minor, digit.dim, digit.stride))
            high.append(Digit(digit.size // minor, digit.dim, digit.stride * minor))
        else:
            raise Unproven(f"an axis digit of {digit.size} cannot be cut at {minor}")
        minor //= part
    return tuple(high), tuple(low)


def offsets(axis: Axis, position: IntArray, rank: int) -> IntArray:
    """Return offsets [n, rank] in the whole array of ``position`` (int64 [n]) on ``axis``, from its start."""
    out = np.zeros((len(position), rank), np.int64)
    left = position
    for digit in reversed(axis):
        out[:, digit.dim] += left % digit.size * digit.stride
        left = left // digit.size
    return out


def axis_through(delta: IntArray) -> Axis:
    """Return the axis whose ``j``-th position lies ``delta[j]`` (int64 [n, rank]) from its start."""
    minor_first: list[Digit] = []
    rest = delta
    while len(rest) > 1:
        step = rest[1] - rest[0]
        dims = np.flatnonzero(step)
        size = _linear(rest, step)
        if len(dims) != 1 or size == 1:
            raise Unproven("the arrays of a group are not parts of one sub-array")
        minor_first.append(Digit(size, int(dims[0]), int(step[dims[0]])))
        rest = rest[::size]
    return merged(minor_first[::-1])


def _linear(rows: IntArray, step: IntArray) -> int:
    """Return the length of the longest runs that advance by ``step`` and repeat, shifted, through all rows."""
    breaks = np.flatnonzero((np.diff(rows, axis=0) != step).any(axis=1))
    size = int(breaks[0]) + 1 if len(breaks) else len(rows)
    while size > 1:
        if len(rows) % size == 0:
            blocks = rows.reshape(-1, size, rows.shape[1])
            if (blocks - blocks[:, :1] == blocks[0] - blocks[0, 0]).all():
                return size
        size -= 1
    return 1
