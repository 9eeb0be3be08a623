"""Functions of one integer: each op on each number of a small type, with NumPy as the witness."""

import itertools

import numpy as np
import pytest

from shardpass.proving.scalars.choices import function, made, range_of
from shardpass.proving.scalars.integers import applied, compared, converted, selected
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.rows import shift, shift_of
from shardpass.proving.scalars.table import Scalars

TYPES = {"i8": np.int8, "ui8": np.uint8}
TYPES_LEAST = {"i8": -128, "ui8": 0, "i1": 0}
DIRECTIONS = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
              "GE": np.greater_equal}  # fmt: skip
BINARY = {"add": np.add, "subtract": np.subtract, "maximum": np.maximum, "minimum": np.minimum}


def values(table, number, base, numbers):
    """The term ``number`` at each of ``numbers`` of ``base``."""
    own, rows = function(table, number, "i32")
    assert own in (None, base)
    found = []
    for n in numbers:
        child = [c for start, c in rows if start <= n or own is None][-1]
        by = shift_of(table, child)
        found.append(n + by if by is not None else table.number(child))
    return np.array(found)


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("seed", range(8))
def test_random_ops_on_one_integer(element, seed):
    rng = np.random.default_rng(seed)
    table, dtype = Scalars(), TYPES[element]
    base = table.one("t")
    low, high = range_of(table, base, element)
    numbers = np.arange(low, high)
    terms = [(base, numbers.astype(dtype))]
    truths = [(table.integer(1), np.ones(len(numbers), bool))]
    known = 0
    for _ in range(60):
        constant = int(rng.integers(low, high))
        options = [*terms, (table.integer(constant), np.full(len(numbers), constant, dtype))]
        (x, wanted_x), (y, wanted_y) = (options[rng.integers(len(options))] for _ in range(2))
        what = rng.integers(4)
        if what == 0:
            name = rng.choice(list(BINARY))
            found, wanted = applied(table, name, element, (x, y)), BINARY[name](wanted_x, wanted_y)
        elif what == 1:
            direction = rng.choice(list(DIRECTIONS))
            found, wanted = compared(table, direction, element, x, y), DIRECTIONS[direction](wanted_x, wanted_y)
        elif what == 2:
            which, chosen = truths[rng.integers(len(truths))]
            found, wanted = selected(table, which, x, y), np.where(chosen, wanted_x, wanted_y)
        else:
            (which, one), (other, two) = (truths[rng.integers(len(truths))] for _ in range(2))
            found, wanted = applied(table, "and", "i1", (which, other)), one & two
        if found is None:
            continue
        known += 1
        assert (values(table, found, base, numbers) == wanted).all()
        (truths if wanted.dtype == bool else terms).append((found, wanted))
    assert known > 20


def test_a_place_less_a_clamped_one():
    """What is left of an index beyond the part of a device: a constant less the index, where that is clamped."""
    table = Scalars()
    base = table.one("t")
    range_of(table, base, "i32")
    clamped, within = (
        applied(table, "clamp", "i32", (table.integer(0), base, table.integer(most))) for most in (7, 31)
    )
    found = applied(table, "subtract", "i32", (clamped, within))
    numbers = np.arange(-3, 40)
    assert (values(table, found, base, numbers) == np.clip(numbers, 0, 7) - np.clip(numbers, 0, 31)).all()


def test_a_truth_value_chooses_a_function_of_itself():
    table = Scalars()
    base = table.one("p")
    range_of(table, base, "i1")
    shifted = applied(table, "xor", "i1", (base, table.integer(1)))
    found = selected(table, base, shifted, base)  # not p where p, p elsewhere: never
    assert (values(table, found, base, [0, 1]) == [0, 0]).all()


@pytest.mark.parametrize(("old", "new"), [("i8", "ui8"), ("ui8", "i8"), ("i8", "i32"), ("ui8", "i32")])
def test_other_types(old, new):
    table = Scalars()
    base = table.one("t")
    low, high = range_of(table, base, old)
    numbers = np.arange(low, high)
    found = converted(table, old, new, base, wraps=False)
    wanted = numbers.astype(TYPES[old]).astype({"i32": np.int32, **TYPES}[new])
    assert (values(table, found, base, numbers) == wanted).all()


@pytest.mark.parametrize("seed", range(30))
def test_equal_functions_are_one_table_however_they_are_cut(seed):
    """The function in random rows, constant or ``t + c``, and in one row for each number."""
    rng = np.random.default_rng(seed)
    table = Scalars()
    base = table.one("t")
    low, high = range_of(table, base, "i8")
    starts = sorted({low, *rng.integers(low, low + 9, 4).tolist()})
    numbers = rng.integers(-130, -118, len(starts)).tolist()
    shifts = rng.integers(-2, 3, len(starts)).tolist()
    rows = [
        (start, shift(table, by) if rng.random() < 0.5 else table.integer(number))
        for start, by, number in zip(starts, shifts, numbers, strict=True)
    ]
    single = []
    for (start, child), end in zip(rows, [*starts[1:], high], strict=True):
        by = shift_of(table, child)
        single += [(n, child if by is None else table.integer(n + by)) for n in range(start, end)]
    number = made(table, base, rows)
    assert number == made(table, base, single)
    wanted = np.array([table.number(child) for _, child in single])
    assert (values(table, number, base, np.arange(low, high)) == wanted).all()
    assert made(table, base, [(low, shift(table, 0))]) == base


@pytest.mark.parametrize("name", ["minimum", "maximum", "and", "or", "multiply"])
@pytest.mark.parametrize("element", ["i8", "ui8", "i1"])
def test_lists_of_integers_that_constants_bound_or_decide(name, element):
    """In whichever order and brackets: one number, with the value that NumPy computes."""
    dtype = {"i1": bool, **TYPES}[element]
    wanted = {"minimum": np.minimum, "maximum": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
              "multiply": np.multiply}[name]  # fmt: skip
    for constant in (0, 1) if element == "i1" else (0, 1, 7, -1 if element == "i8" else 255, TYPES_LEAST[element]):
        table = Scalars()
        pair = table.fresh("x", (2,)).tolist()
        number = table.integer(constant)
        first = applied(table, name, element, (pair[0], number))
        terms = [
            reduced(table, name, element, np.array([row]))[0]
            for row in (
                [*pair, number],
                [number, *pair[::-1]],
                *(([first, pair[1]], [pair[1], first]) if first else ()),
            )
        ]
        assert len(set(terms)) == 1
        key, operands = table.terms[terms[0]]
        for x, y in itertools.product((0, 1, 5, TYPES_LEAST[element]), repeat=2):
            given = np.array([x, y, constant]).astype(dtype)
            values_of = {pair[0]: given[0], pair[1]: given[1]}
            parts = np.array([values_of.get(n, table.number(n)) for n in operands], dtype)
            known = table.is_known(terms[0])
            result = table.number(terms[0]) if known else wanted.reduce(parts, dtype=dtype)
            assert dtype(result) == wanted.reduce(given, dtype=dtype), (key, x, y, constant)
