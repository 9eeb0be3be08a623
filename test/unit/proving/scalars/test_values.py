"""Terms as numbers: what a rule makes of terms has the value that NumPy computes."""

import numpy as np

from shardpass.proving.scalars.elementwise import negated
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.partial import summed
from shardpass.proving.scalars.table import Scalars

OPS = {
    "add": np.sum,
    "multiply": np.prod,
    "negated": lambda x: -x[0],
    "stablehlo.divide": lambda x: x[0] / x[1],
    "stablehlo.sqrt": lambda x: np.sqrt(x[0]),
}


def value(table, number, arrays):
    """The number that a term is, where the elements of argument k are ``arrays[k]``."""
    key, operands = table.terms[number]
    if key[0] in arrays:
        return arrays[key[0]].ravel()[key[1]]
    if key[0] == "constant":
        return float(np.frombuffer(key[2], np.float32)[0])
    return OPS[key[0]]([value(table, n, arrays) for n in operands])


def put_together(seed):
    """How many of 8 random sums are put together; each keeps its value."""
    rng = np.random.default_rng(seed)
    table, arrays = Scalars(), {"x": rng.uniform(1, 2, 6)}
    pool = table.fresh("x", (6,)).tolist()
    divide = ("stablehlo.divide", (), "f32", ("f32", "f32"))
    for _ in range(25):
        few = rng.choice(pool[-12:] + pool[:6], rng.integers(2, 4)).reshape(1, -1)
        kind = rng.integers(4)
        made = (
            reduced(table, "add", "f32", few),
            reduced(table, "multiply", "f32", few),
            table.rows(divide, [few[:, 0], few[:, 1]]),
            negated(table, "f32", few[:, 0]),
        )[kind]
        pool.append(int(made[0]))
    rows = rng.choice(pool, (8, 5))
    found = summed(table, "f32", rows, 6)
    plain = reduced(table, "add", "f32", rows)
    for number, row in zip(found.tolist(), rows.tolist(), strict=True):
        parts = [value(table, n, arrays) for n in row]
        assert np.isclose(value(table, number, arrays), np.sum(parts), rtol=1e-9, atol=1e-9 * np.abs(parts).max())
    return int((found != plain).sum())


def test_sums_over_devices_that_are_put_together_keep_their_value():
    """Summands are products, quotients and negatives that share operands, so several forms fit each."""
    assert sum(map(put_together, range(40))) > 80
