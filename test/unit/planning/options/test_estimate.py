"""The price of a change beside that of the point where it leads, and how little of a dear change is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from support.programs import read

import shardpass
from shardpass.cost.machine import IDEAL
from shardpass.diagnostics import collect
from shardpass.planning.decide.search import Search, decide
from shardpass.planning.options.choose import Decided
from shardpass.planning.options.moves import FAR, NEAR, Move
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.prices import Prices
from shardpass.program.table import table_of
from shardpass.sharding import Sharding
from tools.bench.real_programs import real_programs

PROGRAMS = ("mlp_sgd", "attention_grouped", "lstm_train")


@pytest.fixture(params=PROGRAMS)
def search(request: pytest.FixtureRequest) -> Search:
    with collect():
        module = shardpass.run_pipeline(real_programs()[request.param].lower().text, "shardpass-import")
        with module.context:
            return Search(table_of(module, "propagate").program, {}, 1, IDEAL)


def changes(search: Search, limit: float) -> Iterator[tuple[Move, float, float]]:
    """Of each move from the first point: the move, its estimate, and the price of the base where it leads."""
    search._rebase(search.first)
    priced = []
    for op in list(search.estimate.ops)[::7]:
        for move in search.moves.of_op(op, (*FAR, *NEAR)):
            search.engine.assign(move.splits, settle=move.settles)
            table, changed = search.propagated.table(), search.engine.changed()
            fresh: dict[int, Sharding] = {
                search.values[i]: search.propagated.sharding(i) for i in changed if i in search.values
            }
            priced.append((move, search.estimate.change(fresh, table.results, limit), table))
            search.engine.take_back()
    for move, found, table in priced:
        yield move, found, search.estimate.rebase(table.of, table.results)


def test_a_change_costs_what_the_point_where_it_leads_costs(search: Search) -> None:
    rows = list(changes(search, math.inf))
    assert len(rows) > 5
    for _, found, price in rows:
        assert found == pytest.approx(price)


def test_above_the_limit_less_is_looked_at(search: Search) -> None:
    """What is dearer than the first point need not be known; what is not is exact."""
    limit = search.first.price * 1.01
    few = list(changes(search, limit))
    assert any(found > limit for _, found, _ in few)
    for _, found, price in few:
        assert found <= price * (1 + 1e-9)
        assert found > limit or found == pytest.approx(price)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_limit_spares_choices(name: str) -> None:
    made = []
    for above in (0.0, math.inf):
        with collect():
            module = shardpass.run_pipeline(real_programs()[name].lower().text, "shardpass-import")
            with module.context:
                program = table_of(module, "propagate").program
                own = Decided(Prices(program.mesh.num_devices))  # not what other programs have decided
                search = Search(program, {}, 1, IDEAL, decided=own)
        before = len(search.decided.choices)
        search._rebase(search.first)
        for op in list(search.estimate.ops)[::7]:
            search._options(op, FAR, search.first.price + above)
        made.append(len(search.decided.choices) - before)
    assert made[0] < 0.8 * made[1]


def stack(count: int) -> str:
    """FSDP: layers whose weights, in rows, are gathered for a batch in rows, all over 8 devices."""
    rows = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
    weight, batch = "tensor<64x64xf32>", "tensor<4096x64xf32>"
    weights = ", ".join(f"%w{i}: {weight} {rows}" for i in range(count))
    body = "\n".join(
        f"""%d{i} = stablehlo.dot_general %x{i}, %w{i}, contracting_dims = [1] x [0] : ({batch}, {weight}) -> {batch}
        %x{i + 1} = stablehlo.tanh %d{i} : {batch}"""
        for i in range(count)
    )
    return (
        f"func.func @main({weights}, %x0: {batch} {rows}) -> ({batch} {rows}) {{ {body} return %x{count} : {batch} }}"
    )


@pytest.mark.parametrize("count", [3, 12, 48])
def test_a_weight_that_stands_for_many_is_gathered_for_each(count: int) -> None:
    """The least sum of the estimate is that of the plan.

    Of each layer a gather of 7/8 of a weight, a product, and a tanh that reads the product and writes as much.
    """
    search = Search(read(stack(count)), {}, 1, IDEAL)
    gather, product, tanh = (7 * 64 * 64 * 4 // 8 + 512) / 50e9, 2 * 512 * 64 * 64 / 6.4e12, 2 * 4 * 512 * 64 / 1e12
    search.run()
    assert search.solved is not None
    assert search.solved.price == pytest.approx(count * (gather + product + tanh))
    search._rebase(search.first)
    if count > 3:  # fewer have no layer in the middle
        assert search.estimate.price == pytest.approx(search.first.price)
    decided = decide(read(stack(count)), {}, 1)
    sent = plan_program(read(stack(count)), decided.shardings).bytes_received
    assert sent == count * 7 * 64 * 64 * 4 // 8


def test_an_op_that_takes_one_of_many_moves_that_one() -> None:
    """Four tables are one value of the folded program; what is made of them stands in four places of one array."""
    table, joined = "tensor<64x64xf32>", "tensor<256x64xf32>"
    tables = ", ".join(f'%t{i}: {table} {{mhlo.sharding = "{{devices=[8,1]<=[8]}}"}}' for i in range(4))
    steps = (("a", "abs", "t"), ("b", "tanh", "a"), ("c", "sine", "b"))
    chain = "\n".join(f"%{to}{i} = stablehlo.{op} %{of}{i} : {table}" for i in range(4) for to, op, of in steps)
    parts, types = ", ".join(f"%c{i}" for i in range(4)), ", ".join([table] * 4)
    concatenation = f"%all = stablehlo.concatenate {parts}, dim = 0 : ({types}) -> {joined}"
    program = read(f"func.func @main({tables}) -> {joined} {{ {chain} {concatenation} return %all : {joined} }}")
    search = Search(program, {}, 1, IDEAL)
    (value,) = {search.folded.of[argument] for argument in program.body.arguments}
    lookups = [op.number for op in search.folded.program.body.ops if value in op.operands]
    assert [search.estimate.often(value, lookups[:count]) for count in (1, 2, 4)] == [1, 2, 4]
