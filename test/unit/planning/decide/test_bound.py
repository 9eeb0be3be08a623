"""The decision says how near the best sharding of its tables it is, and is never dearer than a lower effort."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir
from support import daily

import shardpass
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import collect
from shardpass.ir.annotations import SHARDING
from shardpass.planning.decide import bound
from shardpass.planning.decide.bound import LEAST, Bound
from shardpass.planning.decide.search import Decision, decide
from shardpass.planning.plan.cost import price
from shardpass.planning.plan.planner import plan_program
from shardpass.program.table import table_of
from tools.bench.underspecified_programs import PROGRAMS
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


def test_an_op_that_takes_one_array_twice_pays_for_one_copy() -> None:
    """Both operands of the Gram matrices come in the same tile: the plan exchanges the array once, and so does the
    bound.
    """
    middle, batch = (f'{{mhlo.sharding = "{{devices=[{tiles}]<=[8]}}"}}' for tiles in ("1,8,1", "8,1,1"))
    kind, made = "tensor<64x16x8xf32>", "tensor<64x16x16xf32>"
    product = (
        f"dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [2] x [2] : ({kind}, {kind}) -> {made}"
    )
    body = f"%z = stablehlo.{product} return %z : {made}"
    main = f"func.func @main(%a: {kind} {middle}) -> ({made} {batch}) {{ {body} }}"
    found, price = efforts(f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}")[1]
    assert found.plan is not None
    assert len(found.plan.collectives) == 1
    assert found.bound is not None
    assert found.bound.least == pytest.approx(price)


def test_a_random_op_that_takes_one_array_twice_does_not_refute_the_bound() -> None:
    found = enumerate_all("random 5109", random_program(5109).text, 0, find_machine("h100"))
    assert found is not None
    assert not found.refuted, found


def test_a_way_of_equal_price_has_its_reshards_planned() -> None:
    """Of equal ways of the product at the end, the one that splits most was taken by the formula, for 70 us, not 50."""
    found = enumerate_all("random 40091", random_program(40091).text, 0, find_machine("h100"))
    assert found is not None
    assert found.is_least, found.makespan / found.allowed


def test_layers_that_are_not_decided_alike_do_not_refute_the_bound() -> None:
    """Two scalars that are named replicated, as they are, part one layer from its likes; it then costs less."""
    text = PROGRAMS["fsdp_transformer_4_forward"].in_form("free").lower().text
    machine, found = find_machine("h100"), []
    with collect():
        for named in ((), (177, 407)):
            module = shardpass.run_pipeline(text, "shardpass-import")
            with module.context:
                table = table_of(module, "propagate")
                for op in table.program.body.ops:
                    if not set(named).isdisjoint(op.results):
                        (value,) = op.results
                        assert table.program.array(value).shape == ()
                        attributes = table.handles.ops[op.number].attributes
                        attributes[SHARDING] = ir.StringAttr.get("{replicated}")
            module = shardpass.run_pipeline(str(module), "shardpass-import")
            with module.context:
                program = table_of(module, "propagate").program
                found.append(decide(program, {}, 1, machine))
    least, plan = found[0].bound, found[1].plan
    assert least is not None
    assert plan is not None
    assert least.least is not None
    assert least.least <= price(plan) * (1 + 1e-9)
    assert str(least).endswith(f"of {LEAST}, as equal layers are decided alike")


def test_too_many_layers_have_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = "tensor<64x64xf32>"
    body = "".join(f"%{n + 1} = stablehlo.tanh %{n} : {kind} " for n in range(12))
    main = f"func.func @main(%0: {kind} {ROWS}) -> {kind} {{ {body} return %12 : {kind} }}"
    text = f"module attributes {{mhlo.num_partitions = 8 : i32}} {{ {main} }}"
    whole = efforts(text)[1][0].bound
    monkeypatch.setattr(bound, "WHOLE", 0)
    none = efforts(text)[1][0].bound
    assert whole is not None
    assert str(whole) == f"at {LEAST}"
    assert str(none).startswith("not bounded, because equal layers are decided alike, and are too many")


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
    assert str(Bound.of(100.0, 100.0, 90.0, "", alike=True)).endswith(
        "of each annotated array, equal layers and states alike)"
    )
