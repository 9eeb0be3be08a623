"""Integers and truth values: constants are computed, and values that depend on one integer become functions of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardpass.proving.rules.integers import limits
from shardpass.proving.scalars.choices import (
    chosen,
    function,
    has_functions,
    made,
    overlaid,
    picked,
    range_of,
)
from shardpass.proving.scalars.lists import wrap
from shardpass.proving.scalars.rows import Segments, segments, shift, shift_of
from shardpass.proving.scalars.table import CHOICE, FUNCTION, TERM, Scalars

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda x, y: x == y,
    "NE": lambda x, y: x != y,
    "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "GE": lambda x, y: x >= y,
}
MOST_WRAPS = 64
_BY_VALUE = ("subtract", "multiply", "divide", "remainder")
MOST_VALUES = 256  # of an integer in one range; an op is computed for each of them
_TURNED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


def _quotient(x: int, y: int) -> int:
    return -1 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


COMPUTED: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": max,
    "minimum": min,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "negate": lambda x: -x,
    "not": lambda x: ~x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
}
_NO_ZERO: dict[str, Callable[..., int]] = {"divide": _quotient, "remainder": lambda x, y: x - _quotient(x, y) * y}


def computed(name: str, element: str, numbers: Sequence[int]) -> int | None:
    """Compute an op of known integers, as its type wraps it; None for other ops."""
    if element == "i1":
        name = {"add": "or", "multiply": "and", "subtract": "xor", "maximum": "or", "minimum": "and"}.get(name, name)
        if name not in ("and", "or", "xor", "not"):
            return None
    if name in _NO_ZERO and numbers[1] != 0:
        return wrap(_NO_ZERO[name](*numbers), element)
    if name == "not" and element.startswith("ui"):
        return wrap(~numbers[0], element)
    return wrap(COMPUTED[name](*numbers), element) if name in COMPUTED else None


def applied(table: Scalars, name: str, element: str, operands: Sequence[int]) -> int | None:
    """Apply the op ``name`` to integers of type ``element``: a known integer, or a function of an integer; or None."""
    if name == "clamp":
        first = applied(table, "maximum", element, operands[:2])
        return None if first is None else applied(table, "minimum", element, (first, operands[2]))
    if all(table.is_known(n) for n in operands):
        value = computed(name, element, [table.number(n) for n in operands])
        return None if value is None else table.integer(value)
    if not has_functions(element):
        return None
    if len(operands) == 1:
        return _over(table, element, operands, lambda lo, hi, x: _unary(table, name, element, lo, hi, x))
    if len(operands) != 2 or name not in ("add", "subtract", "maximum", "minimum", "and", "or", "xor", "multiply",
                                          "divide", "remainder"):  # fmt: skip
        return None
    return _over(table, element, operands, lambda lo, hi, x, y: _binary(table, name, element, lo, hi, x, y))


def compared(table: Scalars, direction: str, element: str, x: int, y: int) -> int | None:
    if table.is_known(x) and table.is_known(y):
        return table.integer(int(_COMPARE[direction](table.number(x), table.number(y))))
    if not has_functions(element):
        return None
    return _over(table, element, (x, y), lambda lo, hi, a, b: _compare(table, direction, lo, hi, a, b))


def selected(table: Scalars, which: int, x: int, y: int) -> int:
    """Return ``x`` where ``which`` is true, and ``y`` elsewhere."""
    if x == y:
        return x
    table.spend(TERM)
    if not table.is_known(which):
        base, rows = function(table, which, "i1")
        assert base is not None
        rows = _by_number(table, base, rows)
        options = [_function_of(table, n, base) for n in (x, y)]
        if any(o is not None and shift_of(table, c) is not None for o in options for _, c in o or ()):
            if any(o is None for o in options):
                return table.one(("select",), (which, x, y))
            own = [o for o in options if o is not None]
            flat = [(lo, a if table.number(c) else b) for lo, _, (c, a, b) in overlaid(table, base, [rows, *own])]
            return made(table, base, flat)
    return picked(table, which, "i1", lambda value: x if value else y)


def _function_of(table: Scalars, number: int, base: int) -> Segments | None:
    """Return ``number`` as a function of ``base``; None for other terms."""
    if table.is_known(number):
        return [(0, number)]
    if number == base:
        return [(table.ranges[base][0], shift(table, 0))]
    if table.head_of(number) not in (CHOICE, FUNCTION):
        return None
    own, rows = segments(table, number)
    whole = all(table.is_known(c) or shift_of(table, c) is not None for _, c in rows)
    return rows if own == base and whole else None


def _by_number(table: Scalars, base: int, rows: Segments) -> Segments:
    """Return truth values by ranges; where the integer is itself a truth value, each of its values is a range."""
    _, high = table.ranges[base]
    answer: Segments = []
    for (start, child), end in zip(rows, [*(s for s, _ in rows[1:]), high], strict=True):
        by = shift_of(table, child)
        values = range(start, end) if by is not None else ()
        table.spend(len(values))
        answer += [(v, table.integer(v + by)) for v in values] if by is not None else [(start, child)]
    return answer


def converted(table: Scalars, old: str, new: str, number: int, wraps: bool) -> int | None:
    """Convert an integer to another integer type: the same value, or the same bits with ``wraps``."""
    if table.is_known(number):
        value = table.number(number)
        return table.integer(int(value != 0) if new == "i1" and not wraps else wrap(value, new))
    if not (has_functions(old) and has_functions(new)):
        return None
    if new == "i1":
        return compared(table, "NE", old, number, table.integer(0))
    range_of(table, number, old)
    return _over(table, old, (number,), lambda lo, hi, x: _moved(table, new, lo, hi, x, 0))


# ---------------------------------------------------------------- one range


def _over(table: Scalars, element: str, operands: Sequence[int], each: Callable[..., Segments | None]) -> int | None:
    """Apply an op to functions of one integer, range by range."""
    functions = [function(table, n, element) for n in operands]
    bases = {base for base, _ in functions if base is not None}
    if len(bases) != 1:
        return None
    (base,) = bases
    table.spend(TERM)
    rows: Segments = []
    for lo, hi, children in overlaid(table, base, [f for _, f in functions]):
        answer = each(lo, hi, *children)
        if answer is None:
            return None
        rows += [(max(start, lo), child) for start, child in answer]
    return (
        made(table, base, rows) if any(shift_of(table, c) is not None for _, c in rows) else chosen(table, base, rows)
    )


def _unary(table: Scalars, name: str, element: str, lo: int, hi: int, x: int) -> Segments | None:
    if shift_of(table, x) is not None:
        few = name in ("sign", "abs") and hi - lo <= MOST_VALUES
        return _by_value(table, name, element, lo, hi, x) if few else None
    value = computed(name, element, [table.number(x)])
    return None if value is None else [(-(2**64), table.integer(value))]


def _binary(table: Scalars, name: str, element: str, lo: int, hi: int, x: int, y: int) -> Segments | None:
    rows = _in_one(table, name, element, lo, hi, x, y)
    short = name in _BY_VALUE and hi - lo <= MOST_VALUES  # as of an index that is clamped
    if rows is None and (element == "i1" or short):
        return _by_value(table, name, element, lo, hi, x, y)
    return rows


def _in_one(table: Scalars, name: str, element: str, lo: int, hi: int, x: int, y: int) -> Segments | None:
    """Apply the op to parts of [lo, hi) where it is constant or shifts the integer."""
    a, b = shift_of(table, x), shift_of(table, y)
    if a is None and b is None:
        value = computed(name, element, [table.number(n) for n in (x, y)])
        return None if value is None else [(lo, table.integer(value))]
    if element == "i1":  # on one truth value
        return None
    if a is not None and b is not None:
        if name == "subtract":
            return [(lo, table.integer(wrap(a - b, element)))]
        if name in ("maximum", "minimum"):
            return [(lo, shift(table, max(a, b) if name == "maximum" else min(a, b)))]
        return None
    if name == "subtract":
        if a is None:
            return None
        return _moved(table, element, lo, hi, x, -table.number(y))
    by, constant = (a, table.number(y)) if a is not None else (b, table.number(x))
    assert by is not None
    own = x if a is not None else y
    if name == "add":
        return _moved(table, element, lo, hi, own, constant)
    if name in ("maximum", "minimum"):
        cut = min(max(constant - by, lo), hi)
        below, above = (table.integer(constant), own) if name == "maximum" else (own, table.integer(constant))
        return _parts(lo, hi, [(lo, below), (cut, above)])
    return None


def _by_value(table: Scalars, name: str, element: str, lo: int, hi: int, *operands: int) -> Segments | None:
    """Apply the op to each number of [lo, hi) by itself."""
    answer: Segments = []
    table.spend(TERM * (hi - lo))
    for value in range(lo, hi):
        numbers = [by + value if (by := shift_of(table, n)) is not None else table.number(n) for n in operands]
        result = computed(name, element, numbers)
        if result is None:
            return None
        answer.append((value, table.integer(result)))
    return answer


def _moved(table: Scalars, element: str, lo: int, hi: int, x: int, by: int) -> Segments | None:
    """Return ``x + by``, wrapped to the type ``element``, for the numbers [lo, hi) of the integer."""
    own = shift_of(table, x)
    if own is None:
        return [(lo, table.integer(wrap(table.number(x) + by, element)))]
    total = own + by
    low, high = limits(element)
    if (hi - lo) // (high - low + 1) > MOST_WRAPS:
        return None
    answer, start = [], lo
    while start < hi:
        moved = wrap(start + total, element) - start
        answer.append((start, shift(table, moved)))
        start += _room(start + moved, element)
    return answer


def _room(value: int, element: str) -> int:
    """Return how many numbers follow from ``value`` on before the type wraps."""
    return limits(element)[1] - value + 1


def _compare(table: Scalars, direction: str, lo: int, hi: int, x: int, y: int) -> Segments | None:
    a, b = shift_of(table, x), shift_of(table, y)
    true, false = table.integer(1), table.integer(0)

    def word(value: bool) -> int:
        return true if value else false

    if a is not None and b is not None:
        return [(lo, word(_COMPARE[direction](a, b)))]
    if a is None and b is None:
        return [(lo, word(_COMPARE[direction](table.number(x), table.number(y))))]
    if a is None:
        a, y, direction = b, x, _TURNED[direction]
    assert a is not None
    limit = table.number(y) - a  # t < limit, and so on
    tests = _COMPARE[direction]
    return _parts(lo, hi, [(lo, word(tests(0, 1))), (limit, word(tests(0, 0))), (limit + 1, word(tests(1, 0)))])


def _parts(lo: int, hi: int, parts: Segments) -> Segments:
    """Return the ``parts`` that lie in [lo, hi)."""
    answer: Segments = []
    for (start, child), end in zip(parts, [*(s for s, _ in parts[1:]), hi], strict=True):
        first, last = max(start, lo), min(end, hi)
        if first < last:
            answer.append((first, child))
    return answer


def at_most(table: Scalars, element: str, number: int, most: int) -> int:
    """Clamp an index to [0, most], as an op does."""
    answer = applied(table, "clamp", element, (table.integer(0), number, table.integer(most)))
    return -1 if answer is None else answer
