"""Terms as numbers: what a rule makes of terms has the value that NumPy computes."""

import numpy as np

from shardpass.ir.context import parse_module
from shardpass.proving.proof import _body
from shardpass.proving.scalars.elementwise import negated
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.partial import summed
from shardpass.proving.scalars.proof import RULES
from shardpass.proving.scalars.table import Scalars
from shardpass.proving.scalars.walk import ScalarWalk, Value

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


V, X = "tensor<2xf32>", "tensor<5x2xf32>"
HOW = "{epsilon = 0.25 : f32, feature_index = 1 : i64}"
NORMS = f"""module {{
  func.func @main(%x: {X}, %s: {V}, %o: {V}, %y: {X}) -> ({X}, {V}, {V}, {X}, {X}, {V}, {V}) {{
    %n:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {HOW} : ({X}, {V}, {V}) -> ({X}, {V}, {V})
    %i = "stablehlo.batch_norm_inference"(%x, %s, %o, %n#1, %n#2) {HOW} : ({X}, {V}, {V}, {V}, {V}) -> {X}
    %g:3 = "stablehlo.batch_norm_grad"(%x, %s, %n#1, %n#2, %y) {HOW} : ({X}, {V}, {V}, {V}, {X}) -> ({X}, {V}, {V})
    return %n#0, %n#1, %n#2, %i, %g#0, %g#1, %g#2 : {X}, {V}, {V}, {X}, {X}, {V}, {V}
  }}
}}"""


def test_batch_norms():
    """The gradient is that of sum(y * norm(x)), by central differences."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 2, (2, 5, 2))
    scale, offset = rng.uniform(1, 2, (2, 2))

    def norm(x, scale):
        return (x - x.mean(0)) / np.sqrt(x.var(0) + 0.25) * scale + offset

    def slope(of, at):
        found = np.empty_like(at)
        for index in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[index] = 1e-5
            found[index] = (of(at + step) - of(at - step)) / 2e-5
        return found

    wanted = [norm(x, scale), x.mean(0), x.var(0), norm(x, scale), slope(lambda x: (y * norm(x, scale)).sum(), x),
              slope(lambda s: (y * norm(x, s)).sum(), scale), y.sum(0)]  # fmt: skip
    table, arrays = Scalars(), dict(enumerate((x, scale, offset, y)))
    given = [Value(table.fresh(k, a.shape)[None], "f32") for k, a in arrays.items()]
    module = parse_module(NORMS)
    found = ScalarWalk(table, 1, {}, RULES).block(_body(module), given)
    for have, want in zip(found, wanted, strict=True):
        numbers = [value(table, n, arrays) for n in have.ids.ravel().tolist()]
        assert np.allclose(np.reshape(numbers, want.shape), want, rtol=1e-6, atol=1e-6)
