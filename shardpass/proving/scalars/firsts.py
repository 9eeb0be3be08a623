"""argmax computed in parts: the smallest label among the parts that have the greatest element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shardpass.proving.relations.laws import FIRST as LAW
from shardpass.proving.scalars.bounds import WIDE
from shardpass.proving.scalars.numbers import Numbers
from shardpass.proving.scalars.ranks import FIRST
from shardpass.proving.scalars.rows import at_value, segments, shift
from shardpass.proving.scalars.table import CHOICE, FUNCTION, Order, Ranked, Scalars
from shardpass.proving.scalars.truths import Truths


def first_of_parts(truths: Truths, operands: Sequence[int]) -> Numbers | None:
    """Return the label of the first maximum of a row, the smallest label among ``operands``; None for other forms.

    Each operand is select(part = greatest, label of the part, a number that is greater than all labels).
    """
    table, field, forms = truths.table, truths.field, truths.forms
    entries, greatest, last, orders = list[tuple[int, int]](), set[int](), WIDE, set[Order]()
    for operand in operands:
        parts = _label_of_part(table, operand)
        if parts is None:
            return None
        own, labels, other, beyond = parts
        greatest.add(other)
        orders.add(own.order)
        last = min(last, beyond)
        entries += zip(labels, own.values, strict=True)
    order, known = next(iter(orders)), sorted(table.number(label) for label, _ in entries)
    if len(orders) > 1 or len(greatest) > 1 or last < known[-1] or not truths.has(LAW):
        return None
    row = tuple(value for _, value in sorted(entries, key=lambda entry: table.number(entry[0])))
    key = FIRST[order.op[0]], order.element
    if len(set(known)) < len(known) or table.terms[greatest.pop()] != (key, tuple(sorted(set(row)))):
        return None
    pairs = [(forms[value].mark, 2 * (label % field.primes[0])) for value, label in zip(row, known, strict=True)]
    return field.hashed(("ranked", order, 0), *(n for pair in pairs for n in pair))


def _label_of_part(table: Scalars, number: int) -> tuple[Ranked, Sequence[int], int, int] | None:
    """Return the part, the label of each of its elements, the greatest element of all, and the other number."""
    if table.head_of(number) != CHOICE:
        return None
    base, rows = segments(table, number)
    (key, sides), children = table.terms[base], [child for _, child in rows]
    equal = isinstance(key, tuple) and key[:2] == ("compare", "EQ")
    if len(rows) != 2 or not equal or not table.is_known(children[0]):
        return None
    label, beyond = children[1], table.number(children[0])
    if table.is_known(label):  # a part of one element
        for part, other in (sides, sides[::-1]):
            for name, op in FIRST.items():
                if table.terms[other][0] == (op, key[3]) and part in table.terms[other][1]:
                    one = Ranked(Order(str(key[3]), (name, "first")), 0, (part,), (label,))
                    return one, [label], other, beyond
    chosen = segments(table, label) if table.head_of(label) in (CHOICE, FUNCTION) else (label, [(0, shift(table, 0))])
    own = table.ranked.get(chosen[0])
    if own is None or own.order.op[0] not in FIRST or not all(map(table.is_known, own.labels)):
        return None
    labels = [at_value(table, chosen[1], table.number(label)) for label in own.labels]
    part = table.extremes.get((own.order, own.values))
    if part not in sides or not all(map(table.is_known, labels)):
        return None
    if any(table.number(x) >= table.number(y) for x, y in pairwise(labels)):  # of equal elements, not the least label
        return None
    return own, labels, sides[0] if sides[1] == part else sides[1], beyond
