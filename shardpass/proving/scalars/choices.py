"""Terms selected by an integer of the program: a table from ranges of that integer to other terms.

    choice(t; [0, 4) -> a, [4, 8) -> b, elsewhere -> 0)

An index that is clamped, compared, shifted by a device's offset (with the wrap of its type) or selected by such is a
choice too, between integers and ``t + c``; so a mask over a shifted index is a set of ranges of the index itself, and
the row that a gather takes is a choice of rows. Choices by several integers are nested, the older integer outermost, so
that equal ones are one term.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from shardpass.proving.rules.integers import is_integer, limits
from shardpass.proving.scalars.ranks import by_rank
from shardpass.proving.scalars.rows import Segments, segments, shift, shift_of
from shardpass.proving.scalars.table import CHOICE, FUNCTION, TERM, Scalars


def range_of(table: Scalars, base: int, element: str) -> tuple[int, int]:
    """Return the range [lo, hi) of the values of ``base``, by the type with which it was created."""
    result = table.ranges.get(base)
    if result is None:
        low, high = limits(element)
        result = table.ranges[base] = (low, high + 1)
    return result


def has_functions(element: str) -> bool:
    return is_integer(element) and element not in ("ui64",)


def function(table: Scalars, number: int, element: str) -> tuple[int | None, Segments]:
    """Return any integer as a function of an integer: (None, one segment) for known integers."""
    if table.is_known(number):
        return None, [(0, number)]
    if table.head_of(number) in (CHOICE, FUNCTION):
        base, rows = segments(table, number)
        if all(table.is_known(c) or shift_of(table, c) is not None for _, c in rows):
            return base, rows
    low, _ = range_of(table, number, element)
    return number, [(low, shift(table, 0))]


def overlaid(table: Scalars, base: int, rows: Sequence[Segments]) -> list[tuple[int, int, list[int]]]:
    """Return (lo, hi, the child of each of ``rows``) for each range in which none changes."""
    low, high = table.ranges[base]
    cuts = sorted({low, *(start for row in rows for start, _ in row if low < start < high)})
    starts = [[start for start, _ in row] for row in rows]
    table.spend(TERM + 4 * len(cuts) * len(rows))
    result = []
    for lo, hi in zip(cuts, [*cuts[1:], high], strict=True):
        children = [row[max(bisect_right(first, lo) - 1, 0)][1] for row, first in zip(rows, starts, strict=True)]
        result.append((lo, hi, children))
    return result


def made(table: Scalars, base: int, rows: Segments) -> int:
    """Return the term of a table without children that are choices by older integers, or ``t + c``."""
    kept = _longest(table, rows, *table.ranges[base])
    if len(kept) == 1:
        by = shift_of(table, kept[0][1])
        if by is None:
            return kept[0][1]
        if by == 0:
            return base
    some = any(shift_of(table, c) is not None for _, c in kept)
    return table.one(
        ("choice", base, tuple(s for s, _ in kept)), tuple(c for _, c in kept), FUNCTION if some else CHOICE
    )


def _longest(table: Scalars, rows: Segments, low: int, high: int) -> Segments:
    """Merge the rows of a function into the longest rows, from the least number on: constant, or ``t + c``.

    Which rows there are follows from the function alone, so equal functions are one table. Numbers are a row ``t + c``
    where that has more than two of them, or where the function is ``t`` itself.
    """
    ends = [*(start for start, _ in rows[1:]), high]
    kept: Segments = []
    at, index = rows[0][0], 0
    while index < len(rows):
        child = rows[index][1]
        by = shift_of(table, child)
        value = at + by if by is not None else table.number(child) if table.is_known(child) else None
        constant = child if value is None else table.integer(value)
        same = _run(table, rows, ends, (at, index), constant=constant)
        moved = (at, index) if value is None else _run(table, rows, ends, (at, index), by=value - at)
        itself = value == at == low and moved[0] == high
        if value is not None and moved[0] > same[0] and (moved[0] - at > 2 or itself):
            kept.append((at, shift(table, value - at)))
            at, index = moved
        else:
            kept.append((at, constant))
            at, index = same
    return kept


def _run(table: Scalars, rows: Segments, ends: Sequence[int], start: tuple[int, int],
         constant: int | None = None, by: int | None = None) -> tuple[int, int]:  # fmt: skip
    """Return where the function from row ``start[1]`` on ceases to be ``constant`` or ``t + by``, and that row."""
    at, index = start
    while index < len(rows):
        child = rows[index][1]
        own = shift_of(table, child)
        if child == constant or (own is not None and own == by):
            at, index = ends[index], index + 1
            continue
        crosses = constant is not None and own is not None and table.is_known(constant) and (
            at + own == table.number(constant))  # fmt: skip
        meets = by is not None and own is None and table.is_known(child) and table.number(child) == at + by
        if not (crosses or meets):
            break
        at += 1  # one number, where a constant and ``t + c`` meet
        if at < ends[index]:
            break
        index += 1
    return at, index


def _top(table: Scalars, number: int) -> int | None:
    return int(table.terms[number][0][1]) if table.head_of(number) == CHOICE else None


def at(table: Scalars, number: int, base: int, value: int) -> int:
    """Return ``number`` for the value ``value`` of ``base``."""
    if _top(table, number) != base:
        return number
    _, rows = segments(table, number)
    return rows[max(bisect_right([s for s, _ in rows], value) - 1, 0)][1]


def chosen(table: Scalars, base: int, rows: Segments) -> int:
    """Return the term of a table of any terms; each is made once, as nested choices meet in the same terms."""
    key = base, tuple(rows)
    table.spend(len(rows))
    number = table.chosen.get(key)
    if number is None:
        number = table.chosen[key] = _chosen(table, base, rows)
    return number


def _chosen(table: Scalars, base: int, rows: Segments) -> int:
    table.spend(TERM + 8 * len(rows))
    rank = by_rank(table, base, rows)
    if rank is not None:
        return rank
    tops = [t for _, c in rows if (t := _top(table, c)) is not None]
    older = min(tops, default=base + 1)
    if older > base:
        return made(table, base, rows)
    if older == base:
        parts = [segments(table, c)[1] for _, c in rows if _top(table, c) == base]
        flat = [(lo, at(table, c, base, lo)) for lo, _, (c, *_) in overlaid(table, base, [rows, *parts])]
        return chosen(table, base, flat)
    parts = [segments(table, c)[1] for _, c in rows if _top(table, c) == older]
    outer = [
        (lo, chosen(table, base, [(s, at(table, c, older, lo)) for s, c in rows]))
        for lo, _, _ in overlaid(table, older, parts)
    ]
    return chosen(table, older, outer)


def joined(table: Scalars, atoms: list[int], reduce: Callable[[list[int]], int]) -> int:
    """Reduce ``atoms``, some of them choices: those by the same integer become a choice of reductions."""
    table.spend(len(atoms))
    groups: dict[int, list[int]] = {}
    for atom in atoms:
        base = _top(table, atom)
        if base is not None:
            groups.setdefault(base, []).append(atom)
    base = next((b for b in sorted(groups) if len(groups[b]) > 1), None)
    if base is None:
        return -1
    own = groups[base]
    table.spend(len(atoms) * len(own) // 16)
    rows = [segments(table, a)[1] for a in own]
    merged = chosen(table, base, [(lo, reduce(children)) for lo, _, children in overlaid(table, base, rows)])
    rest = list(atoms)
    for atom in own:
        rest.remove(atom)
    return reduce([*rest, merged])


def picked(table: Scalars, which: int, element: str, options: Callable[[int], int]) -> int:
    """Return ``options(value)`` for the value of the integer ``which``. Of ``t + c``, each value is one option."""
    base, rows = function(table, which, element)
    if base is None:
        return options(table.number(which))
    _, high = table.ranges[base]
    result: Segments = []
    for (start, child), end in zip(rows, [*(s for s, _ in rows[1:]), high], strict=True):
        by = shift_of(table, child)
        if by is None:
            result.append((start, options(table.number(child))))
            continue
        table.spend(end - start)
        result += [(value, options(value + by)) for value in range(start, end)]
    return chosen(table, base, result)
