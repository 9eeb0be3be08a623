"""The decision says how near the best sharding of its tables it is, and is never dearer than a lower effort."""

from __future__ import annotations

import pytest
from support import daily

import shardpass
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import collect
from shardpass.planning.decide.bound import LEAST, Bound
from shardpass.planning.decide.search import Decision, decide
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.planner import plan_program
from shardpass.program.table import table_of
from tools.prove.attack import attack, enumerate_all
from tools.prove.cheapest.random_programs import random_program

ROWS = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'


def efforts(text: str) -> list[tuple[Decision, float]]:
    """The decision at each effort, and the price of its plan."""
    out = []
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            program = table_of(module, "propagate").program
            for effort in (0, 1, 2):
                found = decide(program, {}, effort)
                out.append((found, price(plan_program(program, found.shardings))))
    return out


@pytest.mark.turns(2)
@pytest.mark.parametrize("seed", range(12))
def test_no_effort_is_dearer_than_a_lower_one(seed: int) -> None:
    zero, one, two = efforts(random_program(seed).text)
    assert two[1] <= one[1] * (1 + 1e-9) <= zero[1] * (1 + 1e-9) ** 2
    assert zero[0].bound is None
    assert one[0].bound is not None
    assert one[0].bound.plan == pytest.approx(one[1])


@pytest.mark.parametrize("machine", ["ideal", "h100"])
@pytest.mark.parametrize("seed", daily.drawn(range(60), 2))
def test_no_shardings_that_a_user_can_write_refute_the_bounds(seed: int, machine: str) -> None:
    found = attack(f"random {seed}", random_program(seed).text, 5, seed, find_machine(machine))
    assert found is not None
    assert not found.refuted, found


@pytest.mark.parametrize("seed", daily.drawn((0, 2, 5, 9), 1))
def test_enumeration_has_no_makespan_below_the_bound(seed: int) -> None:
    found = enumerate_all(f"random {seed}", random_program(seed).text, 0, find_machine("h100"))
    assert found is not None
    assert not found.refuted, found


def test_a_program_that_sends_nothing_is_the_best() -> None:
    kind = "tensor<64x64xf32>"
    body = f"%z = stablehlo.add %a, %b : {kind} return %z : {kind}"
    main = f"func.func @main(%a: {kind} {ROWS}, %b: {kind} {ROWS}) -> ({kind} {ROWS}) {{ {body} }}"
    bound = efforts(f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}")[1][0].bound
    assert bound is not None
    assert str(bound) == f"at {LEAST}"
    assert bound.price == pytest.approx(3 * 4 * 64 * 64 / 8 / 1e12)  # an eighth of the elements: two read, one written


def test_a_sharding_group_is_a_table() -> None:
    """The other members would be whole, as their users are: it is the group that splits them as %a is."""
    kind = "tensor<64x64xf32>"
    text = f"""
    sdy.mesh @m = <["x"=8]>
    func.func @main(%a: {kind} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}, {{}}]>}}, %b: {kind}) -> ({kind} {{sdy.sharding = #sdy.sharding<@m, [{{}}, {{}}]>}}) {{
      sdy.sharding_group %a group_id = 0 : {kind}
      %0 = stablehlo.tanh %b : {kind}
      sdy.sharding_group %0 group_id = 0 : {kind}
      %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}
      return %1 : {kind}
    }}
    """  # noqa: E501  IR is not wrapped
    zero, one, two = efforts(text)
    for found, _ in (zero, one, two):
        assert found.shardings.of[2] == found.shardings.of[0]
    bound = one[0].bound
    assert bound is not None
    assert bound.least is not None
    assert bound.least <= min(zero[1], one[1], two[1]) * (1 + 1e-9)


def test_joined_slices_have_no_bound() -> None:
    kind, tail, head = "tensor<64x64xf32>", "tensor<63x64xf32>", "tensor<1x64xf32>"
    body = (
        f"%t = stablehlo.slice %a [1:64, 0:64] : ({kind}) -> {tail} "
        f"%h = stablehlo.slice %a [0:1, 0:64] : ({kind}) -> {head} "
        f"%z = stablehlo.concatenate %t, %h, dim = 0 : ({tail}, {head}) -> {kind} return %z : {kind}"
    )
    main = f"func.func @main(%a: {kind} {ROWS}) -> ({kind}) {{ {body} }}"
    bound = efforts(f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}")[1][0].bound
    assert bound is not None
    assert bound.gap is None
    assert str(bound).startswith("not bounded, because slices that are joined again")


def test_the_bound_of_a_chain_is_near_its_makespan() -> None:
    """Nothing runs beside the sum of a product that main returns: all of it is exposed, and added to the work."""
    rows, columns = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}', '{mhlo.sharding = "{devices=[1,8]<=[8]}"}'
    kind, whole = "tensor<8192x8192xbf16>", '{mhlo.sharding = "{replicated}"}'
    product = f"stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}"
    body = f"%z = {product} return %z : {kind}"
    main = f"func.func @main(%a: {kind} {columns}, %b: {kind} {rows}) -> ({kind} {whole}) {{ {body} }}"
    with collect():
        module = shardpass.run_pipeline(f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}", "import")
        with module.context:
            program = table_of(module, "propagate").program
            bound = decide(program, {}, 1, find_machine("h100")).bound
    assert bound is not None
    assert bound.makespan == pytest.approx(bound.plan)
    assert bound.makespan_gap is not None
    assert bound.makespan_gap < 0.02
    assert "of a bound of the makespan; " in str(bound) or str(bound).startswith("at a bound of the makespan; ")


def test_words() -> None:
    assert str(Bound(100.0, 100.0, 99.6)) == (
        "within 0.4% of the least sum of communication and work "
        "(whole axes, at most one shared copy of each annotated array)"
    )
    assert str(Bound(100.0, 100.0, 90.0, "200 backtracks were spent")) == (
        f"within 10.0% of {LEAST}, as 200 backtracks were spent"
    )
    above = Bound(125.0, 100.0, 100.0)
    assert above.gap == 0.2
    assert str(above).endswith(f"within 20.0% of {LEAST}, as the plan brings arrays otherwise than the tables do")
    shared = Bound.of(90.0, 100.0, 99.0, "")
    assert shared.least is None
    assert str(shared).startswith("not bounded, because ops share a copy")
    assert Bound.of(98.9999, 100.0, 99.0, "").least == 98.9999
    assert str(Bound(90.0, 100.0, 100.0)) == f"at {LEAST}"
