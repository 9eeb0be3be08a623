"""The greatest elements of rows, and of the greatest of their parts: equal terms, and each with NumPy's value."""

import itertools

import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.proving import prove
from shardpass.proving.scalars.ranks import Order, ranked
from shardpass.proving.scalars.table import Scalars

ORDER = Order("i8", ("chlo.top_k",))
LEAST = -128


def best(row, rank):
    """The position of the element after ``rank`` others, the first of equal ones first."""
    return int(np.argsort(-np.array(row, np.int64), kind="stable")[rank])


def chain(table, sizes, kept, rank, padded):
    """The term of the best of parts, and the term of the whole row: of values and of places."""
    numbers = table.fresh("x", (sum(sizes),)).tolist()
    places = [table.integer(i) for i in range(len(numbers))]
    whole = [ranked(table, ORDER, rank, list(zip(numbers, own, strict=True))) for own in (numbers, places)]
    row, start = [], 0
    for size in sizes:
        values, labels = numbers[start : start + size], places[start : start + size]
        if padded and start + size == len(numbers):
            values, labels = [*values, table.integer(LEAST)], [*labels, table.integer(999)]
        for j in range(min(kept, len(values))):
            value = ranked(table, ORDER, j, list(zip(values, values, strict=True)))
            row.append((value, ranked(table, ORDER, j, list(zip(values, labels, strict=True)))))
        start += size
    of_values = ranked(table, ORDER, rank, [(value, value) for value, _ in row])
    return whole, [of_values, ranked(table, ORDER, rank, row)]


@pytest.mark.parametrize("sizes", [(3, 3), (2, 2, 2), (4, 1), (1, 1, 2)])
@pytest.mark.parametrize("padded", [False, True])
def test_the_best_of_the_best_of_parts_are_those_of_the_row(sizes, padded):
    for kept, rank in itertools.product(range(1, 4), range(3)):
        if rank >= sum(min(kept, size) for size in sizes):
            continue
        whole, parts = chain(Scalars(), sizes, kept, rank, padded)
        enough = kept > rank or kept >= max(sizes)
        assert whole == parts if enough else padded or whole != parts


def evaluated(table, number, x):
    if table.is_known(number):
        return table.number(number)
    key, operands = table.terms[number]
    if key[0] == "x":
        return int(x[key[1]])
    assert key[0] == "ranked"
    values = [evaluated(table, n, x) for n in operands[::2]]
    return evaluated(table, operands[1::2][best(values, key[2])], x)


@pytest.mark.parametrize("seed", range(20))
def test_each_term_has_the_value_that_it_stands_for(seed):
    """Rows of what earlier rows gave, of constants and of the least element, whichever law they meet."""
    rng = np.random.default_rng(seed)
    table = Scalars()
    x = rng.integers(-3, 3, 5)
    pool = [(n, int(v)) for n, v in zip(table.fresh("x", (5,)).tolist(), x, strict=True)]
    pool += [(table.integer(v), v) for v in (LEAST, LEAST, 1)]
    for _ in range(40):
        row = [pool[i] for i in rng.integers(len(pool), size=rng.integers(1, 5))]
        labels = [pool[i] for i in rng.integers(len(pool), size=len(row))] if rng.random() < 0.5 else row
        ranks = range(len(row)) if rng.random() < 0.7 else [int(rng.integers(len(row)))]
        for rank in ranks:
            number = ranked(table, ORDER, rank, [(v, n) for (v, _), (n, _) in zip(row, labels, strict=True)])
            wanted = labels[best([value for _, value in row], rank)][1]
            assert evaluated(table, number, x) == wanted
            pool.append((number, wanted))


FIRST = Order("f32", ("argmax", "first"))
NUMBERS = (-np.inf, np.nan, 0.0, 1.0)


def first(row):
    """The label that a row has by argmax: of NaN, else of the greatest; the first of those."""
    (value, label), *rest = row
    for v, other in rest:
        if v > value or (np.isnan(v) and not np.isnan(value)):
            value, label = v, other
    return label


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_rows_that_hold_the_least_element_have_the_label_of_the_first(size):
    """Of all rows of the numbers and of -inf as a constant: the row that the term keeps has the same first label."""
    least = -np.inf
    for constants in itertools.product([False, True], repeat=size):
        table = Scalars()
        constant = table.one(("constant", "f32", np.float32(least).tobytes()))
        own = np.where(constants, constant, table.fresh("x", (size,))).tolist()
        number = ranked(table, FIRST, 0, [(n, table.integer(k)) for k, n in enumerate(own)])
        kept = range(1) if table.is_known(number) else [table.number(label) for label in table.ranked[number].labels]
        assert len(kept) == max(1, size - sum(constants[1:]))
        for x in itertools.product(NUMBERS, repeat=size):
            row = list(zip(np.where(constants, least, x), range(size), strict=True))
            assert first(row) == first([row[k] for k in kept])


TOP = """module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<{n}x{t}> {{mhlo.sharding = "{{devices=[4]<=[4]}}"}}) -> (tensor<3x{t}>, tensor<3xi32>) {{
    %v, %i = chlo.top_k(%x, k = 3) : tensor<{n}x{t}> -> (tensor<3x{t}>, tensor<3xi32>)
    return %v, %i : tensor<3x{t}>, tensor<3xi32>
  }}
}}"""


@pytest.mark.parametrize(("size", "element"), [(400, "f32"), (398, "f32"), (385, "i32")])
def test_a_split_top_k_is_proved_and_not_with_other_places(size, element):
    text = TOP.format(n=size, t=element)
    with collect():
        local = str(shardpass.run_pipeline(text, "partition"))
    assert prove(text, local, refute=False).proved
    assert local.count("= chlo.top_k(") == 2
    wrong = local.replace("stablehlo.add", "stablehlo.subtract", 1)
    assert wrong != local
    assert not prove(text, wrong, refute=False).proved
