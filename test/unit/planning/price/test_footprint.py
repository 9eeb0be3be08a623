"""Bytes alive by values alone, beside the account of a plan."""

from __future__ import annotations

import pytest

import shardpass
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.fold import fold
from shardpass.planning.price.footprint import Footprint
from shardpass.program.program import Program
from shardpass.program.read import read_program
from shardpass.propagation.program import Propagated

CHAIN = """module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%x: tensor<64x32xf32> SAID, %w: tensor<32x16xf32>) -> tensor<64x16xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
    %1 = stablehlo.tanh %0 : tensor<64x16xf32>
    %2 = stablehlo.multiply %1, %0 : tensor<64x16xf32>
    return %2 : tensor<64x16xf32>
  }
}"""  # noqa: E501  IR is not wrapped
ROWS = '{mhlo.sharding = "{devices=[8,1]<=[8]}"}'
LOOP = """module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
    %n = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.negate %x : tensor<64xf32>
    %0:2 = stablehlo.while(%i = %n, %v = %a) : tensor<i32>, tensor<64xf32>
     cond {
      %m = stablehlo.constant dense<4> : tensor<i32>
      %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.sine %v : tensor<64xf32>
      %t = stablehlo.multiply %s, %v : tensor<64xf32>
      stablehlo.return %j, %t : tensor<i32>, tensor<64xf32>
    }
    return %0#1 : tensor<64xf32>
  }
}"""


AGAIN = """module attributes {mhlo.num_partitions = 8 : i32, shardpass.mesh = "mesh['d'=8]"} {
  func.func @main(%x: tensor<64x32xf32> ROWS) -> (tensor<64x16xf32> ROWS) {
    %0 = stablehlo.slice %x [0:64, 0:16] {mhlo.sharding = "{devices=[1,8]<=[8]}", shardpass.pinned}
        : (tensor<64x32xf32>) -> tensor<64x16xf32>
    return %0 : tensor<64x16xf32>
  }
}""".replace("ROWS", ROWS)


def read(text: str) -> Program:
    module = shardpass.run_pipeline(text, "import")
    with module.context:
        return read_program(module, "import")[0]


def footprint(program: Program) -> Footprint:
    return Footprint(program, fold(program, {}))


def test_a_chain_by_hand() -> None:
    """x is 8 KiB and w 2 KiB. The product has 4 KiB, and its tanh times itself takes its place: the result's."""
    program = read(CHAIN.replace("SAID", ""))
    assert footprint(program).peak({}) == (8 + 2 + 4) * 1024


def test_split_rows_by_hand() -> None:
    """Rows over 8: an eighth of all but w."""
    program = read(CHAIN.replace("SAID", ROWS))
    found = Propagated(program, {}).table()
    assert footprint(program).peak(found.of) == 2048 + (8 + 4) * 128


@pytest.mark.parametrize("text", [CHAIN.replace("SAID", ""), CHAIN.replace("SAID", ROWS), LOOP])
def test_the_peak_is_that_of_a_plan_that_reshards_nothing(text: str) -> None:
    program = read(text)
    found = Propagated(program, {}).table()
    plan = plan_program(program, found)
    assert plan.bytes_received == 0
    assert footprint(program).peak(found.of) == plan.alive.peak


def test_a_donated_argument_is_counted_once() -> None:
    """The result of 4 KiB lies in an argument that nothing else reads after it is made."""
    text = CHAIN.replace("SAID", "").replace("%x: tensor<64x32xf32> ", "%x: tensor<64x32xf32>, %y: DONATED")
    program = read(text.replace("DONATED", "tensor<64x16xf32> {jax.buffer_donor = true}"))
    assert program.donated == ((1, 0),)
    assert footprint(program).peak({}) == (8 + 4 + 2) * 1024


def test_a_copy_that_is_made_again_is_another_buffer() -> None:
    """The slice makes rows, its annotation moves them to columns, and the result is rows again.

    x is 1024 bytes and each of the three is 512. The first rows lie in the result's buffer.
    """
    program = read(AGAIN)
    alive = plan_program(program, Propagated(program, {}).table()).alive
    assert (alive.arguments, alive.results, alive.temporaries) == (1024, 512, 512)
