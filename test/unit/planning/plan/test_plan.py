"""A program's plan as a value: what it lists, what it sums up, and what it leaves out."""

from __future__ import annotations

import pytest

from shardpass.diagnostics import collect
from shardpass.pipeline.plan import plan_module
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.steps import ConstraintPlan, LeftOutPlan, SplitPlan

ROWS, COLUMNS, WHOLE = "{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}", "{replicated}"


def plan(body: str, arguments: str, results: str, *, devices: int = 2) -> ProgramPlan:
    main = f"func.func @main({arguments}) -> ({results}) {{ {body} }}"
    text = f"module attributes {{mhlo.num_partitions = {devices} : i32}} {{ {main} }}"
    with collect():
        return plan_module(text)


def matrix(sharding: str, name: str = "") -> str:
    return f'{name}tensor<8x8xf32> {{mhlo.sharding = "{sharding}"}}'


def test_a_contraction_is_summed_where_its_result_is_split() -> None:
    """x @ y over a split contraction: each device holds a partial f32[8,8], 256 bytes; half of it is received."""
    body = "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> return %0 : tensor<8x8xf32>"  # noqa: E501
    arguments = f"{matrix(COLUMNS, '%x: ')}, {matrix(ROWS, '%y: ')}"
    scattered, summed = plan(body, arguments, matrix(ROWS)), plan(body, arguments, matrix(WHOLE))
    assert [(s.kind, s.bytes, s.axes) for s in scattered.collectives] == [("reduce_scatter", 128, "axis_0")]
    assert [(s.kind, s.bytes, s.axes) for s in summed.collectives] == [("all_reduce", 256, "axis_0")]
    assert summed.bytes_received == 256
    assert summed.bytes_by_axes == {"axis_0": 256}
    assert summed.seconds("pod") == pytest.approx(5e-6 + 256 / 150e9)  # both devices are of one host


def test_bytes_are_added_up_by_device() -> None:
    """f32[8,8] from device 0 to 7 others, in rounds of permutes: each receives its 256 bytes once."""
    found = plan("return %x : tensor<8x8xf32>", matrix("{maximal device=0}", "%x: "), matrix(WHOLE), devices=8)
    assert len(found.collectives) > 1
    assert {sent.bytes for sent in found.collectives} == {256}
    assert found.bytes_received == 256
    assert set(found.bytes_by_axes.values()) == {256}


def test_a_halo_is_received_by_those_that_have_a_neighbour() -> None:
    """Each of 3 devices has 3 of 9 rows of 4 KiB; windows of three rows take one more from above and one from below."""
    body = """%zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3, 1>,
        padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32>
        }) : (tensor<9x1024xf32>, tensor<f32>) -> tensor<9x1024xf32>
      return %0 : tensor<9x1024xf32>"""
    rows = 'tensor<9x1024xf32> {mhlo.sharding = "{devices=[3,1]<=[3]}"}'
    found = plan(body, f"%x: {rows}", rows, devices=3)
    assert {sent.bytes for sent in found.collectives} == {4096}
    assert sorted(sent.receivers or () for sent in found.collectives) == [(0, 1), (1, 2)]
    assert found.bytes_received == 8192


def test_a_loops_body_counts_as_often_as_it_runs() -> None:
    """12 times round, a gather of f32[8,8] from rows: 128 bytes each time, as the value changes in the loop."""
    body = """%c = stablehlo.constant dense<0> : tensor<i32> %n = stablehlo.constant dense<12> : tensor<i32>
      %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<8x8xf32>
      cond { %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> }
      do { %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32>
        %w = stablehlo.custom_call @Sharding(%v) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %d = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
        %e = stablehlo.custom_call @Sharding(%d) {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
        stablehlo.return %j, %e : tensor<i32>, tensor<8x8xf32> }
      return %0#1 : tensor<8x8xf32>"""  # noqa: E501
    found = plan(body, matrix(ROWS, "%x: "), matrix(ROWS))
    assert [(s.kind, s.bytes, s.times, s.times_known) for s in found.collectives] == [("all_gather", 128, 12, True)]
    assert found.bytes_received == 12 * 128
    assert found.seconds("paper") == pytest.approx(12 * 128)  # that profile counts a byte as a second
    assert "x12" in str(found)


def test_a_constraint_is_the_same_array_and_is_brought_once() -> None:
    body = """%0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>"""  # noqa: E501
    found = plan(body, matrix(ROWS, "%x: "), f"{matrix(WHOLE)}, {matrix(WHOLE)}")
    assert [type(p) for p in found.body.ops] == [ConstraintPlan, ConstraintPlan]
    assert [(s.kind, s.bytes) for s in found.collectives] == [("all_gather", 128)]


def test_a_wider_value_is_computed_again_from_the_narrow_one() -> None:
    """f16 -> f32 is wanted whole: 64 bytes of f16 are received, not 128 of f32."""
    body = """%0 = stablehlo.convert %x : (tensor<8x8xf16>) -> tensor<8x8xf32>
      %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>"""  # noqa: E501
    argument = f'%x: tensor<8x8xf16> {{mhlo.sharding = "{ROWS}"}}'
    found = plan(body, argument, f"{matrix(WHOLE)}, {matrix(ROWS)}")
    assert [(s.kind, s.bytes) for s in found.collectives] == [("all_gather", 64)]


def test_what_nothing_uses_is_left_out() -> None:
    """The constraint gathers %0 for nobody; the result reads %0 as it was computed."""
    body = """%0 = stablehlo.tanh %x : tensor<8x8xf32> %1 = stablehlo.exponential %0 : tensor<8x8xf32>
      %2 = stablehlo.custom_call @Sharding(%1) {mhlo.sharding = "{replicated}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>"""
    found = plan(body, matrix(ROWS, "%x: "), matrix(ROWS))
    assert [type(p) for p in found.body.ops] == [SplitPlan, LeftOutPlan, ConstraintPlan]
    assert found.collectives == ()


def test_bytes_alive() -> None:
    """x, its sort and the sort's transposed are tiles of 128 bytes; the tanh is never written."""
    body = """%0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = stablehlo.tanh %0 : tensor<8x8xf32>
      %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %2 : tensor<8x8xf32>"""
    found = plan(body, matrix(ROWS, "%x: "), matrix("{devices=[1,2]<=[2]}")).alive
    assert (found.arguments, found.results, found.temporaries, found.donated) == (128, 128, 128, 0)
    assert found.at == ((0, 3 * 128), (2, 3 * 128), (-1, 2 * 128))
    assert (found.peak, found.peak_op) == (3 * 128, 0)


@pytest.mark.parametrize("said", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"])
def test_a_donated_argument_has_the_result(said: str) -> None:
    """Tiles of 128 bytes. The tanh overwrites x, where x is donated; a result in another sharding has no such tile."""
    body = "%0 = stablehlo.tanh %x : tensor<8x8xf32> return %0 : tensor<8x8xf32>"
    argument = f'%x: tensor<8x8xf32> {{mhlo.sharding = "{ROWS}", {said}}}'
    found = plan(body, argument, matrix(ROWS)).alive
    assert (found.arguments, found.results, found.donated, found.peak) == (128, 128, 128, 128)
    other = plan(body, argument, matrix(WHOLE)).alive
    assert (other.arguments, other.results, other.donated) == (128, 256, 0)
