"""Models over axes of both kinds: the plans are one, where JAX accepts the model, and a wrong form would be noticed."""

import dataclasses

import jax
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from support.explicit_forms import MORE, REFUSED, REPAIRED, SAME, TYPED, lowered, outcome

from tools.bench.real_programs import real_programs


@pytest.mark.parametrize("name", ["attention_linear", "state_space", "rolling_features"])
def test_the_plans_are_one(name: str) -> None:
    assert outcome(real_programs()[name], effort=0).verdict == SAME


@pytest.mark.slow
@pytest.mark.parametrize("name", real_programs())
def test_no_plan_receives_more(name: str) -> None:
    program = real_programs()[name]
    if not program.available:
        pytest.skip(f"needs {program.needs}")
    assert name in TYPED or outcome(program, effort=0).verdict != MORE


def test_a_model_that_jax_refuses_is_repaired() -> None:
    program = real_programs()["matmul_3d"]
    refused = outcome(program, effort=0)
    assert refused.verdict == REFUSED
    assert refused.reason.startswith("linear_algebra.py:")
    repaired = outcome(program, effort=0, repair=True)
    assert repaired.verdict == REPAIRED
    assert repaired.explicit <= repaired.auto


def test_the_explicit_form_has_explicit_axes() -> None:
    program = real_programs()["attention_linear"]
    typed, auto = (lowered(program, kind).count("sharding_constraint") for kind in (AxisType.Explicit, AxisType.Auto))
    assert typed > auto  # JAX writes the type of each op


def test_a_form_that_gathers_more_is_noticed() -> None:
    program = real_programs()["attention_linear"]

    def whole(pin):
        case = program.build(pin)
        explicit = pin.mesh.axis_types[0] == AxisType.Explicit

        def function(*arguments):
            if explicit:
                arguments = jax.tree.map(lambda one: jax.reshard(one, P()), arguments)
            return case.function(*arguments)

        return dataclasses.replace(case, function=function)

    assert outcome(dataclasses.replace(program, build=whole), effort=0).verdict == MORE
