"""--check on NaN, infinities and -0: what is wrong is an error; what is XLA's, or cannot be compared, is a remark."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.cli import run
from shardpass.diagnostics import ShardpassError
from shardpass.element_types import element_type
from shardpass.ir.context import parse_module
from shardpass.runtime.hlo import has_float_extremes
from shardpass.runtime.inputs import SPECIAL_RUNS, random_inputs, special_inputs
from shardpass.runtime.interpreter import interpret
from shardpass.runtime.partitioned_signature import Boundary
from shardpass.runtime.run_report import Trial, try_out
from shardpass.runtime.special import mismatch
from shardpass.sharding import Sharding

ROWS = '{mhlo.sharding = "{devices=[2,1]<=[2]}"}'
COLUMNS = '{mhlo.sharding = "{devices=[1,2]<=[2]}"}'
WHOLE = '{mhlo.sharding = "{replicated}"}'
LEAST = "stablehlo.constant dense<0xFF800000> : tensor<f32>"


def program(arguments: str, result: str, body: str) -> str:
    """The body makes %r."""
    kind = result.split(" {")[0]
    return f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
  func.func public @main({arguments}) -> ({result}) {{
    {body}
    return %r : {kind}
  }}
}}"""


def extreme(columns: int) -> str:
    return program(
        f"%x: tensor<4x{columns}xf32> {COLUMNS}",
        f"tensor<4xf32> {WHOLE}",
        f"""%c = {LEAST}
    %r = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1]
      : (tensor<4x{columns}xf32>, tensor<f32>) -> tensor<4xf32>""",
    )


NEGATED = program(
    f"%x: tensor<8x4xf32> {ROWS}", f"tensor<8x4xf32> {ROWS}", "%r = stablehlo.negate %x : tensor<8x4xf32>"
)
NAN_ALONE = NEGATED.replace(
    "%r = ", "%nan = stablehlo.constant dense<0x7FC00000> : tensor<8x4xf32>\n    %n = "
).replace("return", "%r = stablehlo.add %n, %nan : tensor<8x4xf32>\n    return")
UNTIL = program(
    f"%x: tensor<8x4xf32> {ROWS}",
    f"tensor<8x4xf32> {ROWS}",
    """%two = stablehlo.constant dense<2.0> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r, %sum = stablehlo.while(%a = %x, %b = %zero) : tensor<8x4xf32>, tensor<f32>
      cond {
        %c = stablehlo.compare LT, %b, %two : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %n = stablehlo.negate %a : tensor<8x4xf32>
        %m = stablehlo.add %b, %two : tensor<f32>
        stablehlo.return %n, %m : tensor<8x4xf32>, tensor<f32>
      }""",
)
INTEGERS = NEGATED.replace("xf32", "xi32")
# the greatest and its column, as a program that never met NaN has it
OPEN = program(
    f"%x: tensor<2x512xf32> {COLUMNS}",
    f"tensor<2xi32> {WHOLE}",
    f"""%places = stablehlo.iota dim = 1 : tensor<2x512xi32>
    %c = {LEAST}
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %v, %r = stablehlo.reduce(%x init: %c), (%places init: %zero) across dimensions = [1]
      : (tensor<2x512xf32>, tensor<2x512xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
      reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {{
        %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
        %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
        stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
      }}""",
)


def tried(text: str, pipeline: str = "partition", interpreter: bool = False) -> Trial:
    return try_out(shardpass.run_pipeline(text, pipeline), original=text, interpreter=interpreter)


def said(trial: Trial) -> str:
    """The one remark; the check has passed."""
    assert trial.passed
    (remark,) = trial.check.special.remarks
    run._fail(trial, "x.mlir")
    return str(remark)


@pytest.mark.parametrize("interpreter", [False, True], ids=["xla", "interpreter"])
def test_what_is_right_is_compared_without_a_remark(interpreter: bool) -> None:
    trial = tried(NEGATED, interpreter=interpreter)
    assert (trial.check.special.compared, trial.check.special.remarks) == (1, ())
    assert trial.as_dict()["check"]["special_values"] == {"runs": 1, "differ": [], "remarks": []}


CHANGES = {
    "NaN": """%nan = stablehlo.compare NE, %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<4x4xf32>
    %y = stablehlo.select %nan, %zero, %x : tensor<4x4xi1>, tensor<4x4xf32>""",
    "an infinity": """%far = stablehlo.constant dense<1.0e30> : tensor<4x4xf32>
    %y = stablehlo.minimum %x, %far : tensor<4x4xf32>""",
}


@pytest.mark.parametrize("interpreter", [False, True], ids=["xla", "interpreter"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_lost_value_is_an_error(change: str, interpreter: bool) -> None:
    """Ordinary numbers come out right."""
    text = str(shardpass.run_pipeline(NEGATED, "partition")).replace("%arg0", "%x")
    changed = text.replace("stablehlo.negate %x", "stablehlo.negate %y").replace("%0 = ", CHANGES[change] + "\n%0 = ")
    trial = try_out(parse_module(changed), original=NEGATED, interpreter=interpreter)
    assert not trial.check.failed
    assert not trial.passed
    with pytest.raises(ShardpassError, match=r"1 of 1 results differ .* result 0 at ") as caught:
        run._fail(trial, "x.mlir")
    assert caught.value.code == "SP554"


def test_what_collectives_of_xla_lose_is_a_remark_that_names_them() -> None:
    told = said(tried(extreme(64)))
    assert "[SP555]" in told
    assert "the collectives are all_reduce over axis_0" in told
    assert "nan=exact" in told
    assert tried(extreme(64), "partition{nan=exact}").check.special.remarks == ()
    assert tried(extreme(64), interpreter=True).check.special.remarks == ()


def test_what_xla_loses_on_one_device_is_a_remark() -> None:
    """4096 elements on one device, and 2048 on each of two."""
    assert "[SP557]" in said(tried(extreme(1024), "partition{nan=exact}"))


MASKED = program(
    f"%x: tensor<8x4xf32> {ROWS}, %m: tensor<8x4xi1> {ROWS}",
    f"tensor<8x4xf32> {ROWS}",
    """%f = stablehlo.convert %m : (tensor<8x4xi1>) -> tensor<8x4xf32>
    %r = stablehlo.multiply %x, %f : tensor<8x4xf32>""",
)


def test_a_product_with_a_mask_is_a_choice_to_xla() -> None:
    """0 * NaN is NaN by the specification, which the interpreter keeps; XLA chooses x or 0, where it sees the mask."""
    local = str(shardpass.run_pipeline(MASKED, "partition"))
    hidden = local.replace("%1 = stablehlo", "%b = stablehlo.optimization_barrier %0 : tensor<4x4xf32>\n%1 = stablehlo")
    hidden = hidden.replace("multiply %arg0, %0", "multiply %arg0, %b")
    assert "[SP557]" in said(try_out(parse_module(hidden), original=MASKED))
    assert bool(shardpass.prove(MASKED, hidden, strict=True))
    x, mask = np.full((8, 4), np.nan, np.float32), np.arange(32).reshape(8, 4) % 2 > 0
    for module in (local, hidden):
        assert np.isnan(interpret(module, x, mask)[0]).all()


NOT_COMPARED = {
    "NaN alone": (NAN_ALONE, "the unpartitioned program itself gives NaN alone"),
    "a loop": (UNTIL, "the loop at -:5:16 runs until a condition holds"),
    "open": (OPEN, "`stablehlo.reduce` at -:6:30 compares floats by an order in which NaN has no place"),
}


@pytest.mark.parametrize(("text", "reason"), NOT_COMPARED.values(), ids=NOT_COMPARED)
def test_what_cannot_be_compared_is_a_remark(text: str, reason: str) -> None:
    told = said(tried(text))
    assert "[SP556]" in told
    assert reason in told


def test_a_reference_that_loses_nan_tells_nothing() -> None:
    """A program with a manual region is compared with XLA's partitioner, whose collectives are XLA's too."""
    mesh = jax.make_mesh((2,), ("a",), devices=jax.devices()[:2])
    rows = NamedSharding(mesh, P("a"))

    def f(x: jax.Array) -> jax.Array:
        return jax.shard_map(jnp.negative, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(x).max(0)

    lowered = jax.jit(f).lower(jax.ShapeDtypeStruct((4, 64), jnp.float32, sharding=rows))
    told = said(tried(str(lowered.compiler_ir()), "partition{nan=exact}"))
    assert "[SP556]" in told
    assert "the reference, partitioned by XLA, loses NaN" in told


def test_no_floats_no_special_runs() -> None:
    special = tried(INTEGERS).check.special
    assert (special.compared, special.remarks) == (0, ())


# ---------------------------------------------------------------- inputs


def boundary(kind: str, *shape: int) -> Boundary:
    return Boundary("argument", element_type(kind), shape, Sharding.replicated())


HAVE = {  # by the documents of the types
    "f64": "nan inf -inf -0",
    "bf16": "nan inf -inf -0",
    "f8E5M2": "nan inf -inf -0",
    "f8E4M3FN": "nan -0",
    "f8E8M0FNU": "nan",
    "f4E2M1FN": "-0",
    "complex<f32>": "nan inf -inf -0",
}


@pytest.mark.parametrize("kind", HAVE)
def test_each_type_has_what_it_can_hold(kind: str) -> None:
    (inputs,) = special_inputs([boundary(kind, 16, 16)])
    numbers = np.asarray(inputs[0]).real.astype(np.float64)
    held = {
        "nan": np.isnan(numbers).any(),
        "inf": np.isposinf(numbers).any(),
        "-inf": np.isneginf(numbers).any(),
        "-0": ((numbers == 0) & np.signbit(numbers)).any(),
    }
    assert " ".join(name for name, there in held.items() if there) == HAVE[kind]


def test_one_run_for_each_array_of_floats() -> None:
    kinds = [boundary("f32", 4, 4), boundary("i32", 4), boundary("f32"), boundary("bf16", 9), boundary("f32", 0)]
    ordinary = random_inputs(kinds, 5)
    trials = special_inputs(kinds, 5)
    changed = [
        [k for k, (mine, plain) in enumerate(zip(inputs, ordinary, strict=True)) if mine.tobytes() != plain.tobytes()]
        for inputs in trials
    ]
    assert changed == [[0], [3]]
    again = special_inputs(kinds, 5)
    assert [[a.tobytes() for a in inputs] for inputs in again] == [[a.tobytes() for a in inputs] for inputs in trials]
    assert len(special_inputs([boundary("f32", 4)] * 11)) == SPECIAL_RUNS
    assert len(special_inputs([boundary("f32")])) == 1
    assert special_inputs([boundary("i32", 4), boundary("i1", 4)]) == []


# ---------------------------------------------------------------- comparing


@pytest.mark.parametrize(
    ("found", "wanted", "first"),
    [
        ([1, np.nan, np.inf], [1, np.nan, np.inf], None),
        ([1, 2, np.inf], [1, np.nan, np.inf], (1,)),
        ([1, np.nan, np.inf], [1, 2, np.inf], (1,)),
        ([1, np.inf, -np.inf], [1, np.inf, np.inf], (2,)),
        ([1, np.inf, 3], [1, np.inf, np.inf], (2,)),
        ([1.0, 1e-6, -0.0], [1.0, 0.0, 0.0], None),
        ([1.0, 1e-4, np.nan], [1.0, 0.0, np.nan], (1,)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_mismatch(found: list[float], wanted: list[float], first: tuple[int, ...] | None, dtype: type) -> None:
    result = mismatch(3, np.array(found, dtype), np.array(wanted, dtype))
    assert (None if result is None else result.element) == first
    assert result is None or str(result).startswith(f"result 3 at {list(first or ())} is ")


def test_mismatch_of_other_types() -> None:
    assert mismatch(0, np.array([1, 2]), np.array([1, 2])) is None
    assert mismatch(0, np.array([1, 3]), np.array([1, 2])).element == (1,)
    narrow = np.array([np.nan, 1.0]).astype(ml_dtypes.float8_e4m3fn)
    assert mismatch(0, narrow, narrow) is None
    # what was far greater in the first run may have an error of that size
    assert mismatch(0, np.float32([1e-3]), np.float32([0]), scale=1e3) is None


HLO = """
%region_0.1 (a.1: f32[], b.1: f32[]) -> f32[] {{
  %a.1 = f32[] parameter(0)
  ROOT %m.1 = {0}[] {1}(%a.1, %b.1)
}}

ENTRY %main (p: f32[8]) -> f32[8] {{
  ROOT %all-reduce.1 = f32[8]{{0}} all-reduce(%p), channel_id=1, replica_groups={{{{0,1}}}}, to_apply=%region_0.1
}}
"""


@pytest.mark.parametrize(
    ("kind", "op", "has"),
    [("f32", "maximum", True), ("bf16", "minimum", True), ("f32", "add", False), ("s32", "maximum", False)],
)
def test_extremes_of_hlo(kind: str, op: str, has: bool) -> None:
    assert has_float_extremes(HLO.format(kind, op)) is has
    assert not has_float_extremes(HLO.format(kind, op).replace("all-reduce(", "negate("))
