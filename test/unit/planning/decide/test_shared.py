"""What programs of one process share: the second of two that are alike makes no decision anew, and decides the same."""

from __future__ import annotations

import pytest
from support.machines import switched

import shardpass
from shardpass.cost.machine import IDEAL, Machine
from shardpass.diagnostics import collect
from shardpass.planning.decide import search
from shardpass.planning.decide.search import Decision
from shardpass.planning.options import choose
from shardpass.planning.options.choose import decided_on
from shardpass.planning.plan.planner import plan_program
from shardpass.program.program import Program
from shardpass.program.table import table_of
from shardpass.propagation import joins

WIDE, TALL = (f'{{mhlo.sharding = "{{devices=[{tiles}]<=[8]}}"}}' for tiles in ("1,8", "8,1"))


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    for kept in (choose._kept_on, joins._kept):
        kept.cache_clear()


def read(rows: int = 128) -> Program:
    """``tanh(x @ w) @ v`` with its halves exchanged, read anew: slices that meet stay as they were propagated."""
    half = f"tensor<{rows // 2}x64xf32>"
    text = f"""
    module attributes {{mhlo.num_partitions = 8 : i32}} {{
      func.func @main(%x: tensor<{rows}x64xf32> {TALL}, %w: tensor<64x128xf32> {WIDE}, %v: tensor<128x64xf32> {WIDE})
          -> tensor<{rows}x64xf32> {{
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<{rows}x64xf32>, tensor<64x128xf32>) -> tensor<{rows}x128xf32>
        %1 = stablehlo.tanh %0 : tensor<{rows}x128xf32>
        %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
          : (tensor<{rows}x128xf32>, tensor<128x64xf32>) -> tensor<{rows}x64xf32>
        %3 = stablehlo.slice %2 [0:{rows // 2}, 0:64] : (tensor<{rows}x64xf32>) -> {half}
        %4 = stablehlo.slice %2 [{rows // 2}:{rows}, 0:64] : (tensor<{rows}x64xf32>) -> {half}
        %5 = stablehlo.concatenate %4, %3, dim = 0 : ({half}, {half}) -> tensor<{rows}x64xf32>
        return %5 : tensor<{rows}x64xf32>
      }}
    }}"""
    with collect():
        module = shardpass.run_pipeline(text, "shardpass-import")
        with module.context:
            return table_of(module, "propagate").program


def decide(program: Program) -> Decision:
    return search.decide(program, {}, 1)


def sizes(program: Program) -> tuple[int, ...]:
    decided, table = decided_on(program.mesh), joins.joins(program.mesh.sizes)
    return len(decided.choices), len(decided.splits), len(table.outcomes)


def test_an_equal_program_adds_nothing() -> None:
    first = decide(read())
    known = sizes(read())
    again = decide(read())
    assert min(known) > 0
    assert sizes(read()) == known
    assert first.shardings == again.shardings


def test_another_program_adds_what_is_its_own() -> None:
    decide(read())
    known = sizes(read())
    found = decide(read(256)).shardings
    assert all(more > few for more, few in zip(sizes(read()), known, strict=True))
    choose._kept_on.cache_clear()
    joins._kept.cache_clear()
    assert decide(read(256)).shardings == found


def test_full_tables_are_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    program = read()
    decide(program)
    before = decided_on(program.mesh), joins.joins(program.mesh.sizes)
    monkeypatch.setattr(choose, "MOST_CHOICES", 0)
    monkeypatch.setattr(joins, "MOST_OUTCOMES", 0)
    assert decided_on(program.mesh) is not before[0]
    assert joins.joins(program.mesh.sizes) is not before[1]


def test_a_machine_has_its_own_decisions() -> None:
    """Ops cost otherwise on another machine, whatever was decided for the first."""
    program, slow = read(), switched("slow", 1e-3, 1e9, 1e11)

    def price(machine: Machine) -> float:
        return plan_program(program, search.decide(program, {}, 1, machine).shardings, machine=machine).price

    before = price(slow)
    assert price(IDEAL) < before == price(slow)
    assert decided_on(program.mesh, slow) is not decided_on(program.mesh, IDEAL)
