"""What a program annotates, and the sentences about annotations that differ."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from shardpass.report.collectives import Annotation
from shardpass.testing import collectives
from shardpass.testing.annotations import changed, read_annotation
from shardpass.testing.budget import budget_of, causes, excesses

MESH = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
H = Annotation("constraint of h", "f16[8,4] P('data', None)", ("train.py:9", "train.py:20"))
W = Annotation("argument w", "f16[4,4] P('data', None)")
CAST = Annotation("cast of x[1: 3] at", "f16 to f32", ("train.py:9",))


def split(x, *axes):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*axes)))


def test_annotations_are_read_back_from_their_text() -> None:
    for one in (H, W, CAST, Annotation("result[0]['a: b']", "f32[]")):
        assert read_annotation(str(one)) == one
    assert [one.kind for one in (H, W, CAST)] == ["constraint", "argument", "cast"]
    assert Annotation("result[0]['w']", "f32[]").kind == "result"


@pytest.mark.parametrize(
    ("now", "sentences"),
    [
        ([H, W], ()),
        ([W, Annotation("constraint of hidden", H.says, ("b.py:1",))], ()),  # renamed and moved
        ([H, Annotation(W.what, "f16[4,4] P()")], ("argument w: f16[4,4]: P('data', None) became P()",)),
        ([H, Annotation(W.what, "f32[4,4] P('data', None)")], ("argument w: f16[4,4] became f32[4,4]",)),
        ([H, Annotation(W.what, "f16[4,4]")], ("argument w: f16[4,4]: P('data', None) became no spec",)),
        ([W], ("train.py:9, train.py:20: constraint of h: f16[8,4] P('data', None) is gone",)),
        ([H, H, W], ("train.py:9, train.py:20: constraint of h: f16[8,4] P('data', None) is new",)),
        ([W, CAST, H], ("train.py:9: cast of x[1: 3] at: f16 to f32 is new",)),
    ],
)
def test_differences(now: list[Annotation], sentences: tuple[str, ...]) -> None:
    assert changed([H, W], now) == sentences


def test_those_with_lines_come_first() -> None:
    assert [one.partition(":")[0] for one in changed([], [W, CAST, H])] == [
        "train.py",
        "train.py",
        "argument w",
    ]
    assert "constraint" in changed([], [W, CAST, H])[0]


def before(x, w):
    h = split(x @ w, "data", "model")
    return split(h * 2, "data", "model")


def after(x, w):
    h = split(x @ w, "data")
    return split(h * 2, "data", "model")


def test_a_program_over_its_budget_is_shown_with_the_line_of_the_constraint_that_changed() -> None:
    shapes = (jax.ShapeDtypeStruct((16, 32), jnp.float32), jax.ShapeDtypeStruct((32, 64), jnp.float32))
    given = {"mesh": MESH, "in_shardings": (P("data"), P(None, "model"))}
    base, program = collectives(before, *shapes, **given), collectives(after, *shapes, **given)
    line = before.__code__.co_firstlineno
    assert str(base.annotations[0]) == "argument x: f32[16,32] P('data', None)"
    assert str(base.annotations[1]) == "argument w: f32[32,64] P(None, 'model')"
    split_line = split.__code__.co_firstlineno + 1
    assert base.annotations[3].lines == (f"test_annotations.py:{split_line}", f"test_annotations.py:{line + 1}")
    budget = budget_of(base)
    assert excesses(program, budget)
    line = after.__code__.co_firstlineno + 1
    (cause,) = causes(program, budget)
    assert cause == (
        f"test_annotations.py:{split_line}, test_annotations.py:{line}: constraint of x @ w: "
        "f32[16,64]: P('data', 'model') became P('data', None)"
    )
    assert causes(program, budget_of(program)) == ()


def test_a_cast_to_a_wider_float_is_an_annotation_and_one_to_a_narrower_is_none() -> None:
    def cast(x):
        wide = x.astype(jnp.float32)
        return wide.sum(0), x.astype(jnp.float32).astype(jnp.float16)

    program = collectives(cast, jax.ShapeDtypeStruct((16, 32), jnp.float16), mesh=MESH, in_shardings=P("data"))
    first = cast.__code__.co_firstlineno + 1
    casts = {one.lines: one.says for one in program.annotations if one.kind == "cast"}
    assert casts == {(f"test_annotations.py:{line}",): "f16 to f32" for line in (first, first + 1)}
