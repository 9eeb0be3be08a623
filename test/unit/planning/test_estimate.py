"""The price of a change beside that of the point where it leads, and how little of a dear change is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.planning.choose import Decided
from shardpass.planning.machine import DEFAULT
from shardpass.planning.moves import FAR, NEAR, Move
from shardpass.planning.prices import Prices
from shardpass.planning.search import Search
from shardpass.program.table import table_of
from shardpass.sharding import Sharding
from tools.bench.real_programs import real_programs

PROGRAMS = ("mlp_sgd", "attention_grouped", "lstm_train")


@pytest.fixture(params=PROGRAMS)
def search(request: pytest.FixtureRequest) -> Search:
    with collect():
        module = shardpass.run_pipeline(real_programs()[request.param].lower().text, "shardpass-import")
        with module.context:
            return Search(table_of(module, "propagate").program, {}, 1, DEFAULT)


def changes(search: Search, limit: float) -> Iterator[tuple[Move, float, float]]:
    """Of each move from the first point: the move, its estimate, and the price of the base where it leads."""
    search._rebase(search.first)
    priced = []
    for op in list(search.estimate.ops)[::7]:
        for move in search.moves.of_op(op, (*FAR, *NEAR)):
            search.engine.assign(move.splits, settle=move.settles)
            table, changed = search.found.table(), search.engine.changed()
            fresh: dict[int, Sharding] = {
                search.values[i]: search.found.sharding(i) for i in changed if i in search.values
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
                search = Search(program, {}, 1, DEFAULT, decided=own)
        before = len(search.decided.choices)
        search._rebase(search.first)
        for op in list(search.estimate.ops)[::7]:
            search._options(op, FAR, search.first.price + above)
        made.append(len(search.decided.choices) - before)
    assert made[0] < 0.8 * made[1]
