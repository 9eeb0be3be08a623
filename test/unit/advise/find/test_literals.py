"""Which literal of a script places an array: the one that says its split, by the words around it."""

from __future__ import annotations

import pytest

from shardpass.advise.find.literals import literal
from shardpass.advise.find.source import SourceFile

DATA, MODEL, NONE = ("data",), ("model",), ()
RULES = """from jax.sharding import PartitionSpec as PS
rules = [
    ("feed_forward/w1/kernel", PS("data", "model")),
    ("feed_forward/w2/kernel", PS("data", "model")),
    ("lm_head/kernel", PS("model", "data")),
    (".*", PS(None)),
]
"""
LOGICAL = """import flax.linen as nn
class Mlp(nn.Module):
    def __call__(self, x):
        self.wi = nn.Dense(8, kernel_init=nn.with_logical_partitioning(self.init, ("embed", "mlp")))
        self.wo = nn.Dense(8, kernel_init=nn.with_logical_partitioning(self.init, ("embed", "mlp")))
"""
NUMBERED = """import flax.linen as nn
class MlpBlock(nn.Module):
    def __call__(self, x):
        x = nn.Dense(8, kernel_init=nn.with_logical_partitioning(self.init, ("embed", "mlp")))(x)
        return nn.Dense(4, kernel_init=nn.with_logical_partitioning(self.init, ("embed", "mlp")))(x)
"""
BATCH = """from jax.sharding import NamedSharding, PartitionSpec as P
def put(mesh, tokens, mask):
    tokens = jax.device_put(tokens, NamedSharding(mesh, P()))
    return tokens, jax.device_put(mask, NamedSharding(mesh, P()))
"""


@pytest.mark.parametrize(
    ("text", "name", "old", "new", "line"),
    [
        (
            RULES,
            "params['h'][0]['feed_forward']['w2']['kernel']",
            (DATA, MODEL),
            (MODEL, DATA),
            '    ("feed_forward/w2/kernel", PS("model", "data")),',
        ),
        (
            RULES,
            "params['lm_head']['kernel']",
            (MODEL, DATA),
            (NONE, DATA),
            '    ("lm_head/kernel", PS(None, "data")),',
        ),
        (
            LOGICAL,
            "params['mlp']['wo']['kernel']",
            (DATA, MODEL),
            (MODEL, DATA),
            '        self.wo = nn.Dense(8, kernel_init=nn.with_logical_partitioning(self.init, ("mlp", "embed")))',
        ),
        (
            NUMBERED,
            "params['MlpBlock_0']['Dense_1']['kernel']",
            (DATA, MODEL),
            (MODEL, DATA),
            '        return nn.Dense(4, kernel_init=nn.with_logical_partitioning(self.init, ("mlp", "embed")))(x)',
        ),
        (
            BATCH,
            "tokens",
            (NONE, NONE),
            (DATA, NONE),
            "    tokens = jax.device_put(tokens, NamedSharding(mesh, P('data')))",
        ),
    ],
    ids=["rule", "another axis", "logical", "numbered", "batch"],
)
def test_the_literal_that_is_meant(text: str, name: str, old: object, new: object, line: str) -> None:
    file = SourceFile("train.py", text)
    found = literal([file], [name], old, new)  # type: ignore[arg-type]
    assert found is not None
    before, after = text.splitlines(), file.changed([found[1]]).decode().splitlines()
    assert [two for one, two in zip(before, after, strict=True) if one != two] == [line]


@pytest.mark.parametrize(
    ("text", "name", "old", "new"),
    [
        (RULES, "params['head']", (NONE, DATA), (DATA, NONE)),  # no rule says so
        (RULES, "params['x']", (DATA, MODEL), (MODEL, DATA)),  # nothing tells two apart
        (LOGICAL, "params['wo']", (DATA, NONE), (NONE, DATA)),  # a logical axis that splits nothing is unknown
        (LOGICAL, "params['wo']", (DATA, MODEL), (("expert",), MODEL)),  # an axis without a logical name
        ("y = with_sharding_constraint(x, P('data'))\n", "x", (DATA,), (NONE,)),  # a constraint places nothing
    ],
    ids=["none", "several", "not split", "no name", "constraint"],
)
def test_no_literal_is_guessed(text: str, name: str, old: object, new: object) -> None:
    assert literal([SourceFile("train.py", text)], [name], old, new) is None  # type: ignore[arg-type]
