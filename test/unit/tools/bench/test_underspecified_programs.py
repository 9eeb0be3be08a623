"""The underspecified programs: each lowers in both forms, which compute one function, and every name is used."""

from collections import Counter

import jax
import pytest
from jax.sharding import PartitionSpec
from support import daily

from shardpass.runtime import compile_single
from tools.bench.real_programs import differences
from tools.bench.underspecified_programs import FORMS, KINDS, PROGRAMS

MESHES = {(8,), (4, 2), (2, 2, 2)}
TODAY = daily.drawn(list(PROGRAMS), 6)


def equations(jaxpr):
    """Names and result types of all equations, also of inner functions, but of those that only say a sharding."""
    for equation in jaxpr.eqns:
        if equation.primitive.name not in ("sharding_constraint", "reshard"):
            yield equation.primitive.name, *(str(variable.aval) for variable in equation.outvars)
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            if hasattr(inner, "eqns"):
                yield from equations(getattr(inner, "jaxpr", inner))


@pytest.mark.parametrize("name", TODAY)
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


def spread(tree, values):
    """The PartitionSpecs of ``tree``, which may stand for subtrees, one for each leaf of ``values``."""

    def leaf(x):
        return x is None or isinstance(x, PartitionSpec)

    whole = jax.tree.map(lambda spec, below: jax.tree.map(lambda _: (spec,), below), tree, values, is_leaf=leaf)
    return [spec for (spec,) in jax.tree.leaves(whole, is_leaf=lambda x: isinstance(x, tuple) and len(x) == 1)]


@pytest.mark.parametrize("name", TODAY)
def test_the_expert_says_more_and_nothing_else(name):
    """What the user fixed stays: no search may change it, and a better form that does is no measure of one."""
    case = PROGRAMS[name].build()
    free, expert = case.free, case.expert
    assert not free.pins
    assert free != expert
    said = [(f, e) for f, e in zip(*(spread(form.specs, case.arguments) for form in (free, expert)), strict=True)]
    assert [f for f, _ in said if f is not None] == [e for f, e in said if f is not None]


@pytest.mark.parametrize("name", TODAY)
def test_results_that_the_user_fixed_stay(name):
    program = PROGRAMS[name]
    case = program.build()
    if case.free.results is not None:
        results = program.in_form("free").jitted()[0].eval_shape(*case.arguments)
        said = zip(*(spread(form.results, results) for form in (case.free, case.expert)), strict=True)
        assert all(free is None or free == expert for free, expert in said)


def test_the_table():
    assert len(PROGRAMS) >= 30
    assert {tuple(n for _, n in program.axes) for program in PROGRAMS.values()} <= MESHES
    assert all(program.summary for program in PROGRAMS.values())
    assert {program.kind for program in PROGRAMS.values()} == {kind.__name__.rsplit(".", 1)[-1] for kind in KINDS}
