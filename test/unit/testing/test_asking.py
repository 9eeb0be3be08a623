"""Collectives of functions, beside arithmetic: a product whose inner dimension is split over 4 devices is a sum of
[8, 16] floats, of which a ring's device receives 2 * 3/4.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from shardpass.testing import CollectivesError, assert_collectives, collectives
from shardpass.testing.store import STORE

MESH = AbstractMesh((4,), ("model",), axis_types=(AxisType.Auto,))
X, W = jax.ShapeDtypeStruct((8, 32), jnp.float32), jax.ShapeDtypeStruct((32, 16), jnp.float32)
BYTES = 8 * 16 * 4 * 2 * 3 // 4
SPECS = (P(None, "model"), P("model"))


def product(x, w):
    return x @ w


@pytest.fixture
def store(tmp_path: Path):
    before = STORE.folder
    STORE.folder = tmp_path / "kept"
    yield STORE
    STORE.folder = before


def test_a_product_is_one_sum_and_is_compiled_once(store) -> None:
    compiled = store.compiled
    first = collectives(product, X, W, mesh=MESH, in_shardings=SPECS)
    (row,) = first.rows
    assert (row.kind, row.axes, row.count, row.bytes) == ("all_reduce", ("model",), 1, BYTES)
    assert (row.function, row.text) == ("product", "return x @ w")
    assert first.bytes_received == BYTES
    assert (
        assert_collectives(product, X, W, mesh=MESH, in_shardings=SPECS, expect={"all_reduce": 1}, at_most=BYTES)
        == first
    )
    store._known.clear()
    assert collectives(product, X, W, mesh=MESH, in_shardings=SPECS) == first  # from the file
    assert store.compiled == compiled + 1


def test_a_split_result_is_a_reduce_scatter_of_half_the_bytes() -> None:
    shardings = tuple(NamedSharding(MESH, spec) for spec in SPECS)
    split = jax.jit(product, in_shardings=shardings, out_shardings=NamedSharding(MESH, P("model")))
    lowered = split.trace(X, W).lower(lowering_platforms=("cpu",))
    assert collectives(lowered).by_key == {("reduce_scatter", ("model",)): (1, BYTES // 2)}


def test_a_failure_names_line_and_cause() -> None:
    with pytest.raises(CollectivesError) as error:
        assert_collectives(product, X, W, mesh=MESH, in_shardings=SPECS, never=[("all_reduce", "model")])
    shown = " ".join(str(error.value).split())
    assert "all_reduce over model: expected never, got 1 (768 B)" in shown
    line = product.__code__.co_firstlineno + 1
    assert f"test_asking.py:{line} in product: 1 x all_reduce over model" in shown


def test_a_failure_shows_the_edit_that_saves_where_findings_are_asked_for() -> None:
    given = {"mesh": MESH, "in_shardings": (P("model"), P()), "out_shardings": P()}
    with pytest.raises(CollectivesError) as error:
        assert_collectives(product, X, W, **given, never=["all_gather"], findings=True)
    assert "all_gather: expected never, got 1 (384 B)" in str(error.value)  # 3 tiles of [2, 16] floats
    assert "out_shardings" in str(error.value).rpartition("\n\n")[2]


def test_a_loop_multiplies() -> None:
    def loop(x, w):
        return jax.lax.fori_loop(0, 5, lambda _, v: jnp.tanh(v @ w @ w.T), x)

    program = collectives(loop, X, W, mesh=MESH, in_shardings=SPECS)
    assert sum(row.count for row in program.rows) % 5 == 0
    assert program.count("all_reduce", "model") >= 5


def test_shardpass_can_be_asked_too() -> None:
    given = {"mesh": MESH, "in_shardings": SPECS, "out_shardings": P()}
    program = collectives(product, X, W, partitioner="shardpass", **given)
    assert program.partitioner == "shardpass"
    assert program.by_key == {("all_reduce", ("model",)): (1, BYTES)}
