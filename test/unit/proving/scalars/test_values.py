"""Terms as numbers: what a rule makes of terms has the value that NumPy computes."""

from itertools import pairwise

import numpy as np

from shardpass.proving.scalars.elementwise import negated
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.numbers import PRIMES
from shardpass.proving.scalars.table import Scalars
from shardpass.proving.scalars.values import Fields

OPS = {
    "add": np.sum,
    "multiply": np.prod,
    "negated": lambda x: -x[0],
    "stablehlo.divide": lambda x: x[0] / x[1],
    "stablehlo.sqrt": lambda x: np.sqrt(x[0]),
    "stablehlo.exponential": lambda x: np.exp(x[0]),
    "stablehlo.log": lambda x: np.log(x[0]),
}


def value(table, number, arrays):
    """The number that a term is, where the elements of argument k are ``arrays[k]``."""
    key, operands = table.terms[number]
    if key[0] in arrays:
        return arrays[key[0]].ravel()[key[1]]
    if key[0] == "constant":
        return float(np.frombuffer(key[2], np.float32)[0])
    return OPS[key[0]]([value(table, n, arrays) for n in operands])


def equal_pairs(seed):
    """How many pairs of random terms have one value in the field; each has one value as floats, too."""
    rng = np.random.default_rng(seed)
    table, arrays = Scalars(), {"x": rng.uniform(1, 2, 3)}
    pool = table.fresh("x", (3,)).tolist()
    divide, root = (f"stablehlo.{name}" for name in ("divide", "sqrt"))
    for _ in range(60):
        few = rng.choice(pool[-8:] + pool[:3], 2).reshape(1, -1)
        kind = rng.integers(5)
        made = (
            reduced(table, "add", "f32", few),
            reduced(table, "multiply", "f32", few),
            table.rows((divide, (), "f32", ("f32", "f32")), [few[:, 0], few[:, 1]]),
            negated(table, "f32", few[:, 0]),
            table.rows((root, (), "f32", ("f32",)), [few[:, 0]]),
        )[kind]
        pool.append(int(made[0]))
    fields, groups = Fields(table), {}
    for number in dict.fromkeys(pool):
        groups.setdefault(fields.value(number), []).append(number)
    for group in groups.values():
        with np.errstate(all="ignore"):
            values = np.array([value(table, n, arrays) for n in group])
        values = values[np.isfinite(values)]  # 0 times a root of a negative number is no number
        assert np.allclose(values, values[:1], rtol=1e-9)
    return sum(len(group) - 1 for group in groups.values())


def test_terms_of_one_value_in_the_field_are_equal():
    assert sum(map(equal_pairs, range(60))) > 40


def nan_together(seed):
    """How many pairs of random terms of positive and negative numbers have one value in the field; none is NaN alone.

    No term is negated or divided: a - a is 0 and a / a is 1 by laws that the proof states, and NaN where a is.
    """
    rng = np.random.default_rng(seed)
    table, arrays = Scalars(), {"x": rng.uniform(-2, 2, 3)}
    pool = table.fresh("x", (3,)).tolist()
    for _ in range(40):
        few = rng.choice(pool[-8:] + pool[:3], 2).reshape(1, -1)
        name = rng.choice(["add", "multiply", "sqrt", "exponential", "log", "log"])
        if name in ("add", "multiply"):
            made = reduced(table, name, "f32", few)
        else:
            made = table.rows((f"stablehlo.{name}", (), "f32", ("f32",)), [few[:, 0]])
        pool.append(int(made[0]))
    fields, groups = Fields(table), {}
    for number in dict.fromkeys(pool):
        groups.setdefault(fields.value(number), []).append(number)
    for group in groups.values():
        with np.errstate(all="ignore"):
            values = np.array([value(table, n, arrays) for n in group])
        assert len(set(np.isnan(values))) == 1
    return sum(len(group) - 1 for group in groups.values())


def test_terms_of_one_value_are_nan_for_the_same_numbers():
    """exp(log(a)) is a only where a is not less than 0: prod(x) is no exp(sum(log(x)))."""
    assert sum(map(nan_together, range(60))) > 4


def test_each_prime_is_one_more_than_a_multiple_of_the_next():
    """So that exp is a power whose exponents are numbers modulo the next prime."""
    for p, q in pairwise(PRIMES):
        assert (p - 1) % q == 0
        assert pow(3, (p - 1) // q, p) != 1
    for p in PRIMES:
        assert p > 2**126
        assert all(pow(a, p - 1, p) == 1 for a in (2, 3, 5, 7, 11))
