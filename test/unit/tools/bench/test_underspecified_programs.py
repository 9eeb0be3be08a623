"""The underspecified programs: each lowers in both forms, which compute one function, and every name is used."""

import math
from collections import Counter

import jax
import pytest

from shardpass.runtime import compile_single
from tools.bench.real_programs import differences
from tools.bench.underspecified_programs import FORMS, KINDS, PROGRAMS

MESHES = {(8,), (4, 2), (2, 2, 2)}


def equations(jaxpr):
    """Names and result types of all equations, also of inner functions, but of those that only say a sharding."""
    for equation in jaxpr.eqns:
        if equation.primitive.name not in ("sharding_constraint", "reshard"):
            yield equation.primitive.name, *(str(variable.aval) for variable in equation.outvars)
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            if hasattr(inner, "eqns"):
                yield from equations(getattr(inner, "jaxpr", inner))


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_forms_lower_and_compute_the_same(name):
    program = PROGRAMS[name]
    computed = {}
    for form in FORMS:
        lowered = program.in_form(form).lower()
        assert not set(lowered.pin.pins) - lowered.pin.used, "names that the function never asks for"
        jitted, case, _ = program.in_form(form).jitted()
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in lowered.arguments]
        traced = jitted.trace(*jax.tree.unflatten(jax.tree.structure(case.arguments), shapes))
        computed[form] = Counter(equations(traced.jaxpr))  # in any order: constraints may change it
        assert lowered.text.count("sdy.sharding") > 0
    assert computed["free"] == computed["expert"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_forms_give_the_same_numbers(name):
    """On one device, where shardings mean nothing."""
    program = PROGRAMS[name]
    free, expert = (program.in_form(form).lower() for form in FORMS)
    results = [compile_single(one.text)(*one.arguments) for one in (free, expert)]
    assert max(differences(*results)) <= program.tolerance


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_expert_says_more(name):
    case = PROGRAMS[name].build()
    assert case.free != case.expert
    assert math.isfinite(PROGRAMS[name].tolerance)


def test_the_table():
    assert {tuple(n for _, n in program.axes) for program in PROGRAMS.values()} <= MESHES
    assert all(program.summary for program in PROGRAMS.values())
    assert {program.kind for program in PROGRAMS.values()} == {kind.__name__.rsplit(".", 1)[-1] for kind in KINDS}
