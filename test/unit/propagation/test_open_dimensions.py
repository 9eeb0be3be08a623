"""Open dimensions and axes to be left alone, however they are written: they reach propagation, and hold."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.differential import check_text

import shardpass
from shardpass.ir.annotations import SHARDING, Signature, main_of
from shardpass.sharding import parse_sharding

SDY = """
sdy.mesh @m = <["x"=2, "y"=3]>
func.func @main(%x: tensor<6x6xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}, {{"y"}}]>}},
    %w: tensor<6x6xf32> {{sdy.sharding = #sdy.sharding<@m, [{{?}}, {{?}}]{kept}>}}) -> tensor<6x6xf32> {{
  %0 = stablehlo.add %x, %w : tensor<6x6xf32>
  return %0 : tensor<6x6xf32>
}}
"""
NAMED = """
module attributes {{mhlo.num_partitions = 6 : i32}} {{
func.func @main(%x: tensor<6x6xf32> {{mhlo.sharding = "{{mesh['x'=2,'y'=3], [{{'x'}}, {{'y'}}]}}"}},
    %w: tensor<6x6xf32> {{mhlo.sharding = "{{mesh['x'=2,'y'=3], [{{?}}, {{?}}]{kept}}}"}}) -> tensor<6x6xf32> {{
  %0 = stablehlo.add %x, %w : tensor<6x6xf32>
  return %0 : tensor<6x6xf32>
}}
}}
"""


def counts(text: str) -> tuple[int, ...]:
    """The tile counts that propagation gives ``%w``."""
    module = shardpass.run_pipeline(text, "propagate")
    with module.context:
        row: dict[str, Any] = Signature(main_of(module)).arguments[1]
        said = parse_sharding(row[SHARDING].value)
    return tuple(int(n) for n in said.tile_counts(2))  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "quote"), [(SDY, '"'), (NAMED, "'")])
@pytest.mark.parametrize(("kept", "expected"), [((), (2, 3)), (("x",), (1, 3)), (("y",), (2, 1)), (("x", "y"), (1, 1))])
def test_replicated_axes_are_left_alone(
    text: str, quote: str, kept: tuple[str, ...], expected: tuple[int, ...]
) -> None:
    axes = ", ".join(f"{quote}{name}{quote}" for name in kept)
    said = f", replicated={{{axes}}}" if kept else ""
    assert counts(text.format(kept=said)) == expected


def test_a_part_of_an_axis_may_be_kept() -> None:
    """Of an axis of 4 the major half is kept: that does not split the value, the minor half does."""
    text = """
sdy.mesh @m = <["x"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x":(1)2}]>},
    %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x":(2)2}]>},
    %w: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}], replicated={"x":(1)2}>}) -> (tensor<8xf32>) {
  %0 = stablehlo.add %OTHER, %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    for other, expected in (("x", 1), ("y", 2)):
        module = shardpass.run_pipeline(text.replace("%OTHER", f"%{other}"), "propagate")
        with module.context:
            said = parse_sharding(Signature(main_of(module)).arguments[2][SHARDING].value)
        assert said.tile_counts(1) == (expected,)  # type: ignore[union-attr]


def test_results_are_those_of_one_device() -> None:
    rng = np.random.default_rng(3)
    given = [rng.standard_normal((6, 6)).astype(np.float32) for _ in range(2)]
    seen = check_text(NAMED.format(kept=", replicated={'y'}"), given)
    (found,) = shardpass.compile(seen.module)(*given)
    np.testing.assert_array_equal(np.asarray(found), given[0] + given[1])


def test_what_a_callee_says_of_its_argument_is_kept() -> None:
    """An open dimension of a callee's argument is open in the body that takes the call's place."""
    text = """
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
  %0 = call @f(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @f(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
    module = shardpass.run_pipeline(text, "propagate")
    assert str(module).count('mhlo.sharding = "{devices=[2,2]<=[4]}"') >= 3  # the argument, the constraint, the op
    assert "replicate" not in str(module)


WHO_IS_FIRST = """
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [DIMENSIONS]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize(
    ("dimensions", "split"),
    [("{?}p1, {?}", 1), ("{?}, {?}p1", 0), ("{?}p2, {?}p1", 1), ("{?}, {}", 0), ("{}, {?}", 1), ("{?}, {?}", 0)],
)
def test_an_open_dimension_waits_for_its_turn(dimensions: str, split: int) -> None:
    """Rows of one operand and columns of the other want the one axis: the result gives it to whose turn comes first.

    Shardy's own propagation is asked too.
    """
    text = WHO_IS_FIRST.replace("DIMENSIONS", dimensions)
    module = shardpass.run_pipeline(text, "shardpass-import,shardpass-propagate{effort=0}")
    said = re.search(r'stablehlo\.add.*mhlo\.sharding = "(.*?)"', str(module))
    assert said is not None
    found = parse_sharding(said[1]).tile_counts(2)  # type: ignore[union-attr]
    assert [int(n) for n in found] == [2 if dim == split else 1 for dim in range(2)]
    theirs = shardpass.run_pipeline(text, "builtin.module(sdy-propagation-pipeline)")
    dims = '{"x"}, {}' if split == 0 else '{}, {"x"}'
    assert f"stablehlo.add %arg0, %arg1 {{sdy.sharding = #sdy.sharding_per_value<[<@m, [{dims}]>]>}}" in str(theirs)


REGION = """
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {?}]>}) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}, {?}], replicated={"c"}>]
      out_shardings=[<@m, [{"a"}, {?}], replicated={"c"}>] manual_axes={"a"} (%tile: tensor<4x8xf32>) {
    %2 = stablehlo.negate %tile {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"b", "c"}]>]>} : tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.abs %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""


def test_free_axes_leave_a_region_but_for_those_it_keeps() -> None:
    """Columns over b and c inside: b splits the region's result outside too, c is to replicate it."""
    module = shardpass.run_pipeline(REGION, "shardpass-import,shardpass-propagate{effort=0}")
    said = re.search(r'stablehlo\.abs.*mhlo\.sharding = "(.*?)"', str(module))
    assert said is not None
    expected = shardpass.Sharding.tiled(shardpass.Mesh([("a", 2), ("b", 2), ("c", 2)]), [("a",), ("b",)])
    assert parse_sharding(said[1]) == expected
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    (made,) = shardpass.compile(shardpass.run_pipeline(REGION, "partition"))(x)
    np.testing.assert_array_equal(np.asarray(made), x)
