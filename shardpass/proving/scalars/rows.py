"""Rows of a table by ranges of an integer: the terms of ``choices.py``, one by one."""

from __future__ import annotations

from bisect import bisect_right

from shardpass.proving.relations.pieces import Bools, Ints
from shardpass.proving.scalars.table import CHOICE, Scalars

Segments = list[tuple[int, int]]  # (the least number, the term from there on)
_SHIFT = "t + c"


def is_choice(table: Scalars, ids: Ints) -> Bools:
    heads: Bools = table.heads(ids) == CHOICE
    return heads


def shift(table: Scalars, by: int) -> int:
    """Return the term for the integer plus ``by``."""
    return table.one((_SHIFT, by))


def shift_of(table: Scalars, number: int) -> int | None:
    key = table.terms[number][0]
    return int(key[1]) if isinstance(key, tuple) and key[0] == _SHIFT else None


def segments(table: Scalars, number: int) -> tuple[int, Segments]:
    """Return the integer that chooses, and the table."""
    (_, base, starts), children = table.terms[number]
    return base, list(zip(starts, children, strict=True))


def at_value(table: Scalars, rows: Segments, value: int) -> int:
    """Return the term for the integer ``value``."""
    child = rows[max(bisect_right([start for start, _ in rows], value) - 1, 0)][1]
    by = shift_of(table, child)
    return child if by is None else table.integer(value + by)
