"""A proof of elements does work that is counted, and ends where there is too much."""

from pathlib import Path

import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.context import parse_module
from shardpass.proving import proof
from shardpass.proving.relations.calls import functions_of
from shardpass.proving.relations.evaluate import type_of
from shardpass.proving.relations.laws import Laws
from shardpass.proving.scalars import table as scalars
from shardpass.proving.scalars.proof import RULES, ElementProof
from shardpass.proving.scalars.relaxed import Relaxed
from shardpass.proving.scalars.table import Scalars, TooLarge
from shardpass.proving.scalars.values import Fields
from shardpass.proving.scalars.walk import ScalarWalk, Value
from shardpass.proving.signature import sides

WORK = 2**23
OPS = Path(__file__).parents[4] / "test" / "lit" / "ops"


def spent(count):
    """The work of the value of a sum of ``count`` products, no two of which share an operand."""
    table = Scalars()
    products = table.rows(("multiply", "f32"), [table.fresh(name, (count,)) for name in "xy"])
    total = table.one(("add", "f32"), tuple(products.tolist()), table.head(("add", "f32")))
    table.work = 0
    Fields(table).value(total)
    return table.work


def test_the_value_of_a_sum_takes_one_pass():
    """Four times as many summands take about four times the work, not sixteen times."""
    assert spent(256) <= 5 * spent(64)


def compared(count):
    """The work of a comparison of ``count`` sums with sums of other operands."""
    table = Scalars()
    x, y = (table.rows(("add", "f32"), [table.fresh(name, (count,)), table.fresh("z", (count,))]) for name in "xy")
    table.work = 0
    assert not Relaxed(table, Laws()).same(list(zip(x.tolist(), y.tolist(), strict=True)))
    return table.work


def test_one_pair_that_no_law_makes_equal_ends_the_comparison():
    assert compared(256) == compared(1) > 0


def elements(whole, local):
    arguments, results, devices = sides(whole, local)
    programs = [(proof._body(module), functions_of(module)) for module in (whole, local)]
    return ElementProof((*programs[0], 1), programs[1], arguments, results, devices)


@pytest.mark.parametrize(
    ("direction", "work", "ended"), [("LT", WORK, False), ("LE", WORK, False), ("LE", 2**20, True)]
)
def test_a_walk_makes_no_more_terms_than_its_work(direction, work, ended, monkeypatch):
    """16 sums of 4,095 products; a mask that is one too wide makes them other sums, with padding.

    What is spent is at least one for each term, and for each entry of a list.
    """
    monkeypatch.setattr(scalars, "WORK", work)
    text = (OPS / "dot_general" / "padding-masked.mlir").read_text()
    with collect():
        local = str(shardpass.run_pipeline(text, "partition")).replace("compare LT", f"compare {direction}")
    found = elements(parse_module(text), parse_module(local))
    made = sum(1 + len(operands) for _, operands in found.table.terms)
    assert made <= found.table.work <= 2 * WORK
    assert (found.table.work > work, found.proved(0)) == (ended, direction == "LT")


REPLACED = """module {
  func.func @main(%x: tensor<64x8xf32>, %i: tensor<100x1xi32>, %u: tensor<100x8xf32>) {
    %r = "stablehlo.scatter"(%x, %i, %u) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
      : (tensor<64x8xf32>, tensor<100x1xi32>, tensor<100x8xf32>) -> tensor<64x8xf32>
    return
  }
}"""


def test_choices_by_a_hundred_indices_end(monkeypatch):
    """Each element is one of the operand's or of 100 updates'; the walk makes fewer than 60,000 terms of these."""
    monkeypatch.setattr(scalars, "WORK", WORK)
    module, table = parse_module(REPLACED), Scalars()
    given = [Value(table.fresh(k, s)[None], e) for k, (s, e) in enumerate(map(type_of, proof._body(module).arguments))]
    with pytest.raises(TooLarge):
        ScalarWalk(table, 1, {}, RULES).block(proof._body(module), given)
    assert len(table.terms) < 60_000
