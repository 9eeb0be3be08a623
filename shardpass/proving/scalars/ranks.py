"""The greatest elements of a row, as they may be picked of the greatest of its parts.

    ranked(j; (v0, l0), (v1, l1), ..): the label of the element that is j-th from the greatest

``chlo.top_k`` returns values, each labelled with itself, and indices, labelled with their positions; of equal elements
the first comes first. What an index chooses from a table is the element's label in that table, so a gather by an index
of ``top_k`` is ``ranked`` with other labels.

``argmax`` and ``argmin`` are the label of the first, in an order in which NaN is the first of all, and equal elements
follow one another by their labels.

Three laws, for each order of the elements:

- **Parts.** Ranks 0 to m - 1 of a part, in their order, stand for the part where m > j, or where that is all of it: an
  element of the part that comes after m others is not among the first j + 1 of the row. Example: of the parts [a, b]
  and [c, d], with two of each, ``ranked(1; r0(a, b), r1(a, b), r0(c, d), r1(c, d))`` is ``ranked(1; a, b, c, d)``.
- **Padding.** The least element of all at the end of a row comes after all others there, and is the first nowhere but
  at the start.
- **One element** is the first by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.rules.blocks import order_of_top_k
from shardpass.proving.rules.integers import is_integer, limits
from shardpass.proving.scalars.constants import identities
from shardpass.proving.scalars.rows import Segments, at_value, segments
from shardpass.proving.scalars.table import TERM, Order, Ranked, Scalars
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value

Entry = tuple[int, int]  # the value and the label


FIRST = {"argmax": "maximum", "argmin": "minimum"}  # the op that gives the first element


def ranked(table: Scalars, order: Order, rank: int, row: Sequence[Entry]) -> int:
    """Return the label of the element of ``row`` at ``rank``."""
    table.spend(TERM + 4 * len(row))
    entries = of_parts(table, order, rank, list(row))
    least, kept = _least(table, order), len(entries)
    while least is not None and kept and entries[kept - 1][0] == least:
        kept -= 1
    if order.op[0] in FIRST:
        lowest = identities(table, FIRST[order.op[0]], order.element)
        entries = [entries[0], *(entry for entry in entries[1:] if entry[0] not in lowest)]
        kept = len(entries)
    if rank >= kept:
        return entries[rank][1]
    entries = entries[:kept]
    labels = [label for _, label in entries]
    if len(set(labels)) == 1:
        return labels[0]
    number = table.one(("ranked", order, rank), tuple(n for entry in entries for n in entry))
    if number not in table.ranked:
        table.ranked[number] = Ranked(order, rank, tuple(v for v, _ in entries), tuple(labels))
        if all(table.is_known(label) for label in labels):
            known = [table.number(label) for label in labels]
            table.ranges[number] = (min(known), max(known) + 1)
    return number


def _least(table: Scalars, order: Order) -> int | None:
    """Return the element of the highest rank; None where it is not known."""
    if len(order.op) > 1:  # from the least on
        return None
    if is_integer(order.element):
        return table.integer(limits(order.element)[0])
    dtype = element_type(order.element).dtype
    if dtype is None or np.dtype(dtype).kind == "c":
        return None
    bits = b"\xff" * np.dtype(dtype).itemsize  # a negative NaN: in the total order of floats below all others
    return table.one(("constant", order.element, bits))


def of_parts(table: Scalars, order: Order, rank: int, row: list[Entry]) -> list[Entry]:
    """Replace the greatest elements of parts in ``row`` by the elements of the parts."""
    result: list[Entry] = []
    at, changed = 0, False
    while at < len(row):
        part = table.ranked.get(row[at][0]) or _greatest(table, order, row[at])
        entries, count = (None, 0) if part is None else _part(table, order, rank, row[at:], part.values)
        if entries is None:
            result.append(row[at])
            at += 1
        else:
            result += entries
            at, changed = at + count, True
    return of_parts(table, order, rank, result) if changed else result


def _part(
    table: Scalars, order: Order, rank: int, row: Sequence[Entry], values: tuple[int, ...]
) -> tuple[list[Entry] | None, int]:
    """Return the elements of the part ``values`` with their labels, and how many of ``row`` are its greatest."""
    labels: tuple[int, ...] | None = None
    count = 0
    for place, (value, label) in enumerate(row[: len(values)]):
        table.spend(len(values))
        if not _is_rank(table, order, place, values, value):
            break
        given = _labels(table, order, place, values, label)
        if given is None or labels not in (None, given):
            break
        labels, count = given, place + 1
    if labels is None or (count <= rank and count < len(values)):
        return None, 0
    return list(zip(values, labels, strict=True)), count


def _is_rank(table: Scalars, order: Order, rank: int, values: tuple[int, ...], number: int) -> bool:
    """Return whether ``number`` is the element of rank ``rank`` among ``values``."""
    if order.op[0] in FIRST:
        return number == table.extremes.get((order, values))
    return table.ranked.get(number) == Ranked(order, rank, values, values)


def _greatest(table: Scalars, order: Order, entry: Entry) -> Ranked | None:
    """Return the part whose greatest element and its label are ``entry``."""
    _, label = entry
    if order.op[0] not in FIRST:
        return None
    key = table.terms[label][0]
    return table.ranked.get(int(key[1]) if isinstance(key, tuple) and key[0] == "choice" else label)


def _labels(table: Scalars, order: Order, rank: int, values: tuple[int, ...], number: int) -> tuple[int, ...] | None:
    """Return the labels from which ``number`` is the label of rank ``rank`` among ``values``; None for other terms."""
    own = table.ranked.get(number)
    if own is not None:
        return own.labels if (own.order, own.rank, own.values) == (order, rank, values) else None
    key = table.terms[number][0]
    if not (isinstance(key, tuple) and key[0] == "choice"):
        return None
    base, rows = segments(table, number)
    own = table.ranked.get(base)
    if own is None or (own.order, own.rank, own.values) != (order, rank, values):
        return None
    return _chosen(table, own, rows)


def _chosen(table: Scalars, own: Ranked, rows: Segments) -> tuple[int, ...] | None:
    """Look up each of the labels ``own`` in the table ``rows``."""
    if not all(table.is_known(label) for label in own.labels):
        return None
    return tuple(at_value(table, rows, table.number(label)) for label in own.labels)


def by_rank(table: Scalars, base: int, rows: Segments) -> int | None:
    """Return the choice by ``base``, if it is the index of one of the greatest of parts; None for other integers."""
    own = table.ranked.get(base)
    if own is None or not (own.order.op[0] in FIRST or any(value in table.ranked for value in own.values)):
        return None
    labels = _chosen(table, own, rows)
    if labels is None:
        return None
    row = list(zip(own.values, labels, strict=True))
    entries = of_parts(table, own.order, own.rank, row)
    return None if entries == row else ranked(table, own.order, own.rank, entries)


def top_k(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    order = Order(operand.element, order_of_top_k(site.op))
    size, table = operand.shape[-1], site.table
    count = site.shape()[-1]
    positions = [table.integer(i) for i in range(size)]
    made: dict[bytes, tuple[list[int], list[int]]] = {}
    result: list[tuple[list[int], list[int]]] = []
    for row in operand.ids.reshape(-1, size):
        key = row.tobytes()
        if key not in made:
            values = row.tolist()
            by_value = [ranked(table, order, j, list(zip(values, values, strict=True))) for j in range(count)]
            by_place = [ranked(table, order, j, list(zip(values, positions, strict=True))) for j in range(count)]
            made[key] = by_value, by_place
        result.append(made[key])
    return [site.result(np.array([row[k] for row in result], np.int64), k) for k in range(2)]


RULES: dict[str, ScalarRule] = {"chlo.top_k": top_k, "mhlo.topk": top_k}
