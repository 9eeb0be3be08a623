"""partition{nan=exact}: max and min across devices are those of StableHLO, NaN and signed zeros among them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.collectives import collectives
from shardpass.runtime import interpret

DEVICES = 4
ROWS = 2 * DEVICES  # so that sending what each device reduced is cheaper than sending rows
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
MAX, MIN = "maximum", "minimum"
INFINITY = {  # no bits: the initial value of the reduction
    "f16": ("0xFC00", "0x7C00"),
    "bf16": ("0xFF80", "0x7F80"),
    "f32": ("0xFF800000", "0x7F800000"),
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
}


def program(element: str, combiner: str, columns: int, *, split: bool) -> str:
    """The max or min of each column of a matrix whose rows are split; ``split``: the result is split too."""
    result = f"{{devices=[{DEVICES}]<=[{DEVICES}]}}" if split else "{replicated}"
    initial = INFINITY[element][combiner == MIN]
    return f"""module attributes {{mhlo.num_partitions = {DEVICES} : i32}} {{
  func.func @main(%x: tensor<{ROWS}x{columns}x{element}> {{mhlo.sharding = "{{devices=[{DEVICES},1]<=[{DEVICES}]}}"}})
      -> (tensor<{columns}x{element}> {{mhlo.sharding = "{result}"}}) {{
    %c = stablehlo.constant dense<{initial}> : tensor<{element}>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{combiner} across dimensions = [0]
      : (tensor<{ROWS}x{columns}x{element}>, tensor<{element}>) -> tensor<{columns}x{element}>
    return %0 : tensor<{columns}x{element}>
  }}
}}"""


def of_column(values: np.ndarray, combiner: str) -> float:
    """IEEE 754-2019, 9.6: NaN where there is one, and -0 is less than +0."""
    numbers = [float(v) for v in values]
    if any(np.isnan(numbers)):
        return np.nan
    return (max if combiner == MAX else min)(numbers, key=lambda v: (v, np.copysign(1, v)))


def specials(dtype: type) -> np.ndarray:
    """[rows, columns]: NaN, infinities, zeros and other numbers on each device, against all others."""
    info = ml_dtypes.finfo(dtype)
    tiny, greatest = float(info.smallest_normal), float(info.max)  # XLA's CPU client takes subnormals for 0
    numbers = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, tiny, -tiny, greatest, -greatest]
    columns = []
    for device in range(DEVICES):
        for one in numbers:
            for rest in numbers:
                columns.append([one if d == device else rest for d in range(DEVICES) for _ in range(ROWS // DEVICES)])
    return np.array(columns).T.astype(dtype)


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    found = np.asarray(found)
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(wanted)], np.signbit(wanted)[~np.isnan(wanted)])


@pytest.mark.parametrize("split", [False, True], ids=["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("combiner", [MAX, MIN])
@pytest.mark.parametrize("element", TYPES)
def test_as_ieee_says(element: str, combiner: str, split: bool) -> None:
    x = specials(TYPES[element])
    text = program(element, combiner, x.shape[1], split=split)
    exact = shardpass.run_pipeline(text, "partition{nan=exact}")
    plain = shardpass.run_pipeline(text, "partition")
    (found,) = shardpass.compile(exact)(x)
    wanted = np.array([of_column(column, combiner) for column in x.T])
    assert found.dtype == x.dtype
    assert_same(found, wanted)
    kind = "reduce_scatter" if split else "all_reduce"
    assert [(use.kind, use.bytes_received) for use in collectives(exact)] == [
        (use.kind, use.bytes_received) for use in collectives(plain)
    ]
    assert [use.kind for use in collectives(exact)] == [kind]
    # what the option is for: where this fails, XLA keeps NaN, and the pages that say otherwise are out of date
    (lost,) = shardpass.compile(plain)(x)
    assert (np.isnan(wanted) & ~np.isnan(np.asarray(lost).astype(np.float64))).any()


@pytest.mark.parametrize("combiner", [MAX, MIN])
def test_every_order_of_16_bits(combiner: str) -> None:
    """Random bits, among them NaN of every payload and subnormal numbers, on the reference interpreter."""
    bits = np.random.default_rng(0).integers(0, 2**16, (ROWS, 512), np.uint16)
    x = bits.view(np.float16)
    module = shardpass.run_pipeline(program("f16", combiner, 512, split=False), "partition{nan=exact}")
    (found,) = interpret(module, x)
    assert_same(found, np.array([of_column(column, combiner) for column in x.T]))


def test_off_unless_asked_for() -> None:
    text = program("f32", MAX, 4, split=False)
    plain = str(shardpass.run_pipeline(text, "partition"))
    assert str(shardpass.run_pipeline(text, "partition{nan=xla}")) == plain
    assert "bitcast_convert" not in plain


def test_sums_and_integers_are_left_alone() -> None:
    text = program("f32", MAX, 4, split=False)
    sums = text.replace("maximum", "add").replace("0xFF800000", "0.0")
    integers = text.replace("xf32", "xi32").replace("<f32>", "<i32>").replace("0xFF800000", "0")
    for other in (sums, integers):
        assert "bitcast_convert" not in str(shardpass.run_pipeline(other, "partition{nan=exact}"))


USERS = """func.func @main(%x: tensor<8x{0}>) -> tensor<8x{0}> {{
  %0 = "stablehlo.all_reduce"(%x) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{
  ^bb0(%a: tensor<{0}>, %b: tensor<{0}>):
    %m = stablehlo.maximum %a, %b : tensor<{0}>
    stablehlo.return %m : tensor<{0}>
  }}) : (tensor<8x{0}>) -> tensor<8x{0}>
  return %0 : tensor<8x{0}>
}}"""


def test_other_floats_stay_with_a_remark() -> None:
    text = USERS.format("f8E4M3FN")
    with collect() as remarks:
        module = shardpass.run_pipeline(text, "shardpass-keep-nan{nan=exact}")
    assert str(module) == str(shardpass.run_pipeline(text, "shardpass-keep-nan"))
    (remark,) = remarks
    assert (remark.code, remark.severity) == ("SP315", "remark")
    assert "f8E4M3FN" in remark.message


def test_a_choice_that_there_is_not() -> None:
    with pytest.raises(ShardpassError, match=r"'both' is not a way to treat NaN \[SP316\]") as caught:
        shardpass.run_pipeline(USERS.format("f32"), "shardpass-keep-nan{nan=both}")
    assert "xla, exact" in caught.value.diagnostics[0].remedy
