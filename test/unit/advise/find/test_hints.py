"""Hints: of programs that lack one constraint, the first is that constraint, or one as good."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from support import daily
from support.missing_constraints import PROGRAMS, Verdict, judge

import shardpass

TODAY = daily.drawn(list(PROGRAMS), 8)


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    return {}


def verdict_on(name: str, verdicts: dict[str, Verdict]) -> Verdict:
    return verdicts[name] if name in verdicts else verdicts.setdefault(name, judge(PROGRAMS[name]))


@pytest.mark.parametrize("name", TODAY)
def test_the_first_hint_is_as_good_as_what_is_lacking(name: str, verdicts: dict[str, Verdict]) -> None:
    """Bytes with all constraints come from the program that has them, lowered by JAX."""
    verdict = verdict_on(name, verdicts)
    assert verdict.good or not verdict.proves, verdict


def test_there_are_twenty_and_most_are_dearer_without(verdicts: dict[str, Verdict]) -> None:
    """A planner that needs no constraint where one is lacking is no worse: but then the programs prove little."""
    assert len(PROGRAMS) == 20
    assert sum(verdict_on(name, verdicts).proves for name in TODAY) >= len(TODAY) - 5


def test_a_hint_that_is_written_saves_what_it_says() -> None:
    """The first hint for this program is the constraint itself: JAX's program with it is as dear as planned."""
    program = PROGRAMS["gradient_of_two_layers"]
    (first, *_) = shardpass.explain(program.lower(complete=False), effort=0, hints=True).hints or ()
    assert first.code == "with_sharding_constraint(x, P('d'))"
    written = shardpass.explain(program.lower(complete=True), effort=0)
    assert first.after == written.plan.bytes_received
    assert first.before == shardpass.explain(program.lower(complete=False), effort=0).plan.bytes_received


def test_no_hint_where_nothing_is_sent() -> None:
    def f(x: Any) -> Any:
        return jnp.tanh(x)

    mesh = jax.sharding.AbstractMesh((8,), ("d",))
    spec = jax.sharding.PartitionSpec("d")
    found = shardpass.explain(f, jax.ShapeDtypeStruct((64,), jnp.float32), mesh=mesh, in_shardings=spec, hints=True)
    assert found.hints == ()
    assert "no single annotation was found that saves" in str(found)
