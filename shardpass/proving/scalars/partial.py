"""Sums over devices of what is linear in a partial sum: the op of the sum, where the whole program has that.

    sum over devices of c * part[device]  =  c * (sum over devices of part[device])

Sums are lists of summands, and a summand may be a product, a quotient, a conversion or the negative of a partial sum.
Summands that differ in one such operand alone are one summand, of the sum of these operands. It is done only where the
list as it stands is no value of the whole program.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from shardpass.proving.relations.laws import CONVERTED, DIVISOR, FACTOR, NEGATED_SUM, Law
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.lists import one, reduced
from shardpass.proving.scalars.rows import CHOICE, segments
from shardpass.proving.scalars.table import TERM, Scalars


def summed(table: Scalars, element: str, matrix: Ints, border: int) -> Ints:
    """Sum the last dimension; terms below ``border`` are of the whole program."""
    result = reduced(table, "add", element, matrix)
    if is_integer(element) or element == "i1":
        return result
    flat = result.ravel()
    for place in np.flatnonzero(flat >= border):
        flat[place] = _gathered(table, element, int(flat[place]), border, 0)
    return flat.reshape(result.shape)


def _gathered(table: Scalars, element: str, number: int, border: int, depth: int) -> int:
    """Merge the summands of one form in a sum; return ``number`` where there are none."""
    if number < border or depth > 8 or table.head_of(number) != table.head(("add", element)):
        return number
    cache = table.gathered
    if number in cache:
        return cache[number]
    atoms: list[int] = list(table.terms[number][1])
    groups: dict[Hashable, list[tuple[int, int]]] = {}
    for atom in atoms:
        table.spend(TERM)
        for form, operand in _forms(table, element, atom):
            groups.setdefault(form, []).append((atom, operand))
    gone, made = set[int](), list[int]()
    for form, rows in sorted(groups.items(), key=lambda item: -len(item[1])):
        rows = [(a, x) for a, x in rows if a not in gone]
        if len(rows) < 2 or not (_of_one(form) or any(_is_sum(table, x) for _, x in rows)):
            continue
        if not table.laws.allows(*_law(form, table.at)):
            continue
        inner = one(table, "add", _element(form, element), [x for _, x in rows])
        inner = _gathered(table, _element(form, element), inner, border, depth + 1)
        gone.update(a for a, _ in rows)
        made.append(_again(table, element, form, inner))
    left = [a for a in atoms if a not in gone]
    result = one(table, "add", element, [*left, *made]) if made else number
    cache[number] = result
    return result


def _is_sum(table: Scalars, number: int) -> bool:
    key = table.terms[number][0]
    return isinstance(key, tuple) and (key[0] == "add" or _linear(key))


def _of_one(form: Hashable) -> bool:
    """Return whether the summands are the negatives of choices by one integer, whose sum is one choice."""
    return isinstance(form, tuple) and form[:2] == ("negated", "by")


def _law(form: Hashable, op: Any) -> tuple[Law, Any, str]:
    """Return the law that merges summands of one form at ``op``, and their type."""
    assert isinstance(form, tuple)
    law = {"multiply": FACTOR, "divide": DIVISOR, "negated": NEGATED_SUM, "convert": CONVERTED}[form[0]]
    return law, op, f" to {form[2]}" if law == CONVERTED else ""


def _linear(key: tuple[object, ...]) -> bool:
    return key[0] in ("multiply", "convert", "stablehlo.divide", "negated")


def _element(form: Hashable, element: str) -> str:
    return str(form[1]) if isinstance(form, tuple) and form[0] == "convert" else element


def _forms(table: Scalars, element: str, atom: int) -> Iterator[tuple[Hashable, int]]:
    """Yield ways in which ``atom`` is linear in one operand."""
    key, operands = table.terms[atom]
    if not isinstance(key, tuple):
        return
    if key == ("multiply", element):
        for k, operand in enumerate(operands):
            table.spend(16 + len(operands))
            if k == 0 or operands[k - 1] != operand:
                yield ("multiply", (*operands[:k], *operands[k + 1 :])), operand
    elif key[0] == "stablehlo.divide" and len(operands) == 2:
        yield ("divide", key, operands[1]), operands[0]
    elif key == ("negated", element):
        yield ("negated",), operands[0]
        if table.head_of(operands[0]) == CHOICE:
            yield ("negated", "by", segments(table, operands[0])[0]), operands[0]
    elif key[0] == "convert" and not (is_integer(str(key[1])) or is_integer(str(key[2]))):
        yield ("convert", key[2], key[1]), operands[0]


def _again(table: Scalars, element: str, form: Hashable, operand: int) -> int:
    assert isinstance(form, tuple)
    if form[0] == "multiply":
        return one(table, "multiply", element, [*form[1], operand])
    if form[0] == "divide":
        return table.one(form[1], (operand, form[2]))
    if form[0] == "negated":
        return table.one(("negated", element), (operand,))
    return table.one(("convert", form[2], form[1]), (operand,))
