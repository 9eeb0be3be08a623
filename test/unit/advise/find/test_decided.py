"""What the search decides, in sentences: witness is the program with the annotation, propagated alone."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.report.page import to_html

MESH = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def explained(f: Any, *arguments: Any, effort: int = 1, **shardings: Any) -> Any:
    return shardpass.explain(jax.jit(f, **shardings), *arguments, effort=effort)


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def named(*spec: Any) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


def deep(x: Any, w: Any) -> Any:
    for _ in range(3):
        h = jnp.tanh(x @ w)
        x = x + h
    return jnp.sum(x)


def constrained(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = x + jnp.tanh(jax.lax.with_sharding_constraint(x @ w, named(("data", "model"))))
    return jnp.sum(x)


def test_a_decision_is_a_sentence_with_its_annotation() -> None:
    """Rows of x are whole and rows of w split: propagation alone sums [512, 64] in each layer, the search does not."""
    given = {"in_shardings": (named(), named("data"))}
    report = explained(deep, array(512, 64), array(64, 64), **given)
    (one,) = report.decided
    assert one.words == "splitting dimension 0 of `x @ w` over data and model"
    assert one.code == "with_sharding_constraint(x @ w, P(('data', 'model')))"
    alone = [explained(f, array(512, 64), array(64, 64), effort=0, **given) for f in (deep, constrained)]
    assert [one.before, one.after] == [each.total_bytes_received for each in alone]
    line = f"test_decided.py:{deep.__code__.co_firstlineno + 2}: "
    said = " ".join(str(report).split())
    assert f"decided, beyond what propagation finds: {line}{one.words} saves " in said
    assert f"to have it in XLA: {one.code}" in said
    assert json.loads(report.json())["decided"][0]["code"] == one.code
    assert "to have it in XLA" in to_html(report)


def test_an_argument_that_nothing_annotates_is_named() -> None:
    rows = {"in_shardings": (None, named("data"))}
    report = explained(deep, array(512, 64), array(64, 64), **rows)
    (one,) = report.decided
    assert one.code == "in_shardings: x = P(('data', 'model'))"
    split = {"in_shardings": (named(("data", "model")), named("data"))}
    alone = [explained(deep, array(512, 64), array(64, 64), effort=0, **given) for given in (rows, split)]
    assert [one.before, one.after] == [each.total_bytes_received for each in alone]


def test_propagation_alone_decides_nothing() -> None:
    report = explained(deep, array(512, 64), array(64, 64), effort=0, in_shardings=(named(), named("data")))
    assert report.decided == ()
