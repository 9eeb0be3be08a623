"""Reductions of scalar terms in any order: a sorted list of the reduced terms, without identities.

Example: (a + b) + (c + 0) is the list [a, b, c] of add; max(a, max(a, b)) is [a, b] of maximum. Integers in a list are
computed. Choices by one integer in a list are one choice of lists, so the rows that devices gather of their parts of a
table are one row of the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.relations.elements import _bounds
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.choices import joined, made
from shardpass.proving.scalars.constants import identities, identity, zeros
from shardpass.proving.scalars.rows import is_choice, segments, shift
from shardpass.proving.scalars.table import CHOICE, FUNCTION, TERM, Scalars, among

ALONE = 256  # what a reduction by itself costs, in elements of an array
ONCE = ("maximum", "minimum", "and", "or")
_COMPUTE: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "maximum": max,
    "minimum": min,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}


def computes(element: str) -> bool:
    return is_integer(element) and element != "ui64"


def reduced(table: Scalars, name: str, element: str, matrix: Ints) -> Ints:
    """Reduce the last dimension of ``matrix`` by ``name``."""
    shape = matrix.shape[:-1]
    count = int(np.prod(shape, dtype=np.int64))
    rows = np.repeat(np.arange(count), matrix.shape[-1])
    return ragged(table, name, element, rows, matrix.ravel(), count).reshape(shape)


def ragged(table: Scalars, name: str, element: str, rows: Ints, atoms: Ints, count: int) -> Ints:
    """Reduce, for each of ``count`` rows, the ``atoms`` whose entry in ``rows`` is that row."""
    if element == "i1":
        name = {"add": "or", "multiply": "and"}.get(name, name)
    table.spend(len(atoms))
    code = table.head((name, element))
    if name in ("maximum", "minimum") and computes(element):
        rows, atoms = _bounds_apart(table, name, rows, atoms)
    rows, atoms = _flat(table, code, rows, atoms)
    away = among(atoms, identities(table, name, element))
    rows, atoms = rows[~away], atoms[~away]
    if computes(element) and name in _COMPUTE:
        rows, atoms = _computed(table, name, element, rows, atoms)
    order = np.lexsort((atoms, rows))
    rows, atoms = rows[order], atoms[order]
    repeats = among(atoms, zeros(table, element)) if name == "add" else np.full(len(rows), name in ONCE)
    if np.count_nonzero(repeats) > 1:  # of sums, only 0 is as good once as twice
        repeats[1:] &= (rows[1:] == rows[:-1]) & (atoms[1:] == atoms[:-1])
        repeats[0] = False
        rows, atoms = rows[~repeats], atoms[~repeats]
    ends = np.searchsorted(rows, np.arange(count + 1)).tolist()
    choices = np.bincount(rows[is_choice(table, atoms)], minlength=count) > 1
    table.spend(2 * count)
    values, key, before = atoms.tolist(), (name, element), len(table.terms)
    result, cache = np.empty(count, np.int64), dict[tuple[int, ...], int]()
    for row, (several, (start, end)) in enumerate(zip(choices.tolist(), pairwise(ends), strict=True)):
        part = tuple(values[start:end])
        if several:
            number = cache.get(part)
            if number is None:
                table.spend(TERM)
                number = cache[part] = _joined(table, key, code, part)
        elif len(part) == 1:
            number = part[0]
        else:
            number = table.one(key, part, code) if part else identity(table, *key)
        result[row] = number
    table.spend(TERM * (len(table.terms) - before))
    return result


def _flat(table: Scalars, code: int, rows: Ints, atoms: Ints) -> tuple[Ints, Ints]:
    """Merge lists of the same reducer that are elements of these lists."""
    nested = np.flatnonzero(table.heads(atoms) == code)
    if not len(nested):
        return rows, atoms
    inner = [table.terms[int(a)][1] for a in atoms[nested]]
    keep = np.ones(len(atoms), bool)
    keep[nested] = False
    sizes = [len(i) for i in inner]
    table.spend(sum(sizes))
    more = np.array([x for i in inner for x in i], np.int64)
    return np.concatenate([rows[keep], np.repeat(rows[nested], sizes)]), np.concatenate([atoms[keep], more])


def _bounds_apart(table: Scalars, name: str, rows: Ints, atoms: Ints) -> tuple[Ints, Ints]:
    """Split an integer with a constant bound, such as ``min(t, 3)``, into two atoms of the list of that reducer."""
    bounded = np.flatnonzero(np.isin(table.heads(atoms), (CHOICE, FUNCTION)))
    more_rows, more = [], []
    atoms = atoms.copy()
    for at in bounded.tolist():
        pair = _bounded(table, name, int(atoms[at]))
        if pair is not None:
            atoms[at], bound = pair
            more_rows.append(int(rows[at]))
            more.append(bound)
    return np.concatenate([rows, np.array(more_rows, np.int64)]), np.concatenate([atoms, np.array(more, np.int64)])


def _bounded(table: Scalars, name: str, number: int) -> tuple[int, int] | None:
    """Return the integer and the constant in ``number``, their maximum or minimum; None for other terms."""
    table.spend(TERM)
    base, own = segments(table, number)
    bound = own[0 if name == "maximum" else -1][1]
    low, high = table.ranges[base]
    if not table.is_known(bound) or not low < table.number(bound) < high:
        return None
    cut, itself = table.number(bound), shift(table, 0)
    if name == "maximum":
        return (base, bound) if made(table, base, [(low, bound), (cut, itself)]) == number else None
    return (base, bound) if made(table, base, [(low, itself), (cut, bound)]) == number else None


def _computed(table: Scalars, name: str, element: str, rows: Ints, atoms: Ints) -> tuple[Ints, Ints]:
    known = np.flatnonzero(table.known(atoms))
    if not len(known):
        return rows, atoms
    totals: dict[int, int] = {}
    for row, value in zip(rows[known].tolist(), table.values(atoms[known]).tolist(), strict=True):
        totals[row] = _COMPUTE[name](totals[row], value) if row in totals else value
    keep = np.ones(len(atoms), bool)
    keep[known] = False
    neutral = identity(table, name, element)
    numbers = [(row, table.integer(wrap(total, element))) for row, total in totals.items()]
    numbers = [(row, number) for row, number in numbers if number != neutral]
    more_rows, more = (np.array([pair[k] for pair in numbers], np.int64) for k in (0, 1))
    last = _decides(name, element)
    decided = [row for row, total in totals.items() if total == last]
    if decided:
        keep &= ~np.isin(rows, decided)
    return np.concatenate([rows[keep], more_rows]), np.concatenate([atoms[keep], more])


def _decides(name: str, element: str) -> int | None:
    """Return the integer that decides the reduction by ``name`` whatever the other elements are; None without one."""
    low, high = (0, 1) if element == "i1" else _bounds(element, element_type(element).dtype)
    return {"multiply": 0, "and": 0, "or": high if low == 0 else -1, "maximum": high, "minimum": low}.get(name)


def wrap(value: int, element: str) -> int:
    if element == "i1":
        return value & 1
    low, high = _bounds(element, element_type(element).dtype)
    return (value - low) % (high - low + 1) + low


def _joined(table: Scalars, key: tuple[str, str], code: int, part: tuple[int, ...]) -> int:
    """Return the list of ``part``, of which several are choices."""
    result = joined(table, list(part), lambda atoms: one(table, *key, atoms))
    return result if result >= 0 else table.one(key, part, code)


def one(table: Scalars, name: str, element: str, atoms: list[int]) -> int:
    """Reduce ``atoms`` alone."""
    table.spend(ALONE)
    return int(ragged(table, name, element, np.zeros(len(atoms), np.int64), np.array(atoms, np.int64), 1)[0])
