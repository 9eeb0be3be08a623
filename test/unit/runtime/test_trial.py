"""try_out: what shardpass-run reports, of right programs and of wrong ones."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from shardpass.cli import run
from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.runtime import run_report, specification
from shardpass.runtime.run_report import labels_of, try_out

BOUNDARY = (
    '{mhlo.sharding = "{manual}", shardpass.global_type = tensor<5xf32>, '
    'shardpass.sharding = "{devices=[2,2]<=[4] last_tile_dim_replicate}"}'
)
ORIGINAL = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<5xf32>) -> tensor<5xf32> {
    %0 = stablehlo.negate %x : tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}"""
PARTITIONED = f"""module attributes {{mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['rows'=2,'copies'=2]"}} {{
  func.func public @main(%x: tensor<3xf32> {BOUNDARY} loc("weights['a']")) -> (tensor<3xf32> {BOUNDARY}) {{
    %0 = stablehlo.negate %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }}
}}"""
# the padding of one tile leaks into another
LEAKING = PARTITIONED.replace(
    "%0 = stablehlo.negate %x : tensor<3xf32>",
    """%n = stablehlo.negate %x : tensor<3xf32>
    %0 = "stablehlo.collective_permute"(%n) {
      source_target_pairs = dense<[[0, 2], [1, 3], [2, 0], [3, 1]]> : tensor<4x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<3xf32>) -> tensor<3xf32>""",
)
WRONG = {
    "another op": (PARTITIONED.replace("negate", "abs"), "SP551"),
    "NaN from the padding": (LEAKING, "SP551"),
}
both = pytest.mark.parametrize("interpreter", [False, True], ids=["xla", "interpreter"])


@both
def test_right(interpreter):
    trial = try_out(parse_module(PARTITIONED), original=ORIGINAL, interpreter=interpreter, seed=3)
    assert trial.passed
    found = json.loads(json.dumps(trial.as_dict()))
    assert found["passed"]
    assert found["devices"] == 4
    assert found["arguments"] == [
        {
            "name": "weights['a']",
            "type": "tensor<5xf32>",
            "tile": "tensor<3xf32>",
            "sharding": "{devices=[2,2]<=[4] last_tile_dim_replicate}",
            "axes": "[{'rows'}]",
        }
    ]
    assert found["added_by_xla"] == (None if interpreter else [])
    run._fail(trial, "x.mlir")


@both
@pytest.mark.parametrize(("text", "code"), WRONG.values(), ids=WRONG)
def test_wrong(interpreter, text, code):
    trial = try_out(parse_module(text), original=ORIGINAL, interpreter=interpreter)
    assert not trial.passed
    json.dumps(trial.as_dict(), allow_nan=False)
    with pytest.raises(ShardpassError) as caught:
        run._fail(trial, "x.mlir")
    assert caught.value.code == code
    assert "1 of 1 results differ" in str(caught.value)


# XLA of jax 0.10 merges the two slices on one device, and loses the first clamp: elements 6 and 7 for 4 and 5
MERGES = jax.__version_info__ < (0, 12)
CLAMPED = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<8xf32>, %i: tensor<i32>) -> tensor<2xf32> {
    %far = stablehlo.constant dense<100> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %k = stablehlo.maximum %i, %far : tensor<i32>
    %0 = stablehlo.dynamic_slice %x, %k, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    %j = stablehlo.minimum %i, %zero : tensor<i32>
    %1 = stablehlo.dynamic_slice %0, %j, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}"""


def whole(kind):
    return f'{{mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{{replicated}}"}}'


def sliced(start):
    """The partitioned program that takes two elements from ``start`` on."""
    x, i, y = "tensor<8xf32>", "tensor<i32>", "tensor<2xf32>"
    return f"""module attributes {{mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"}} {{
  func.func @main(%x: {x} {whole(x)}, %i: {i} {whole(i)}) -> ({y} {whole(y)}) {{
    %0 = stablehlo.slice %x [{start}:{start + 2}] : ({x}) -> {y}
    return %0 : {y}
  }}
}}"""


@both
@pytest.mark.parametrize(("start", "passes"), [(4, True), (6, False), (3, False)])
def test_the_specification_judges_where_xla_differs(interpreter, start, passes):
    """Start 4 is what StableHLO says; start 6 is what XLA makes of it on one device."""
    trial = try_out(parse_module(sliced(start)), original=CLAMPED, interpreter=interpreter)
    assert trial.passed == passes
    assert trial.check.reference == specification.NAME
    remarks = trial.as_dict()["check"]["remarks"]
    assert len(remarks) == MERGES
    differs = "XLA on one device differs from StableHLO's specification in 1 of 1 results"
    assert all(remark.startswith(differs) for remark in remarks)


@pytest.mark.skipif(not MERGES, reason="XLA of jax 0.12 keeps the clamp on one device")
def test_a_run_that_xla_breaks_as_it_does_on_one_device_is_judged_by_the_interpreter(monkeypatch):
    """XLA loses the same clamp in the partitioned program, which is right."""
    monkeypatch.setattr(run_report, "_placing", lambda executable: lambda inputs: [inputs[0][6:]])
    assert try_out(parse_module(sliced(4)), original=CLAMPED).passed
    assert not try_out(parse_module(sliced(6)), original=CLAMPED).passed
    monkeypatch.setattr(run_report, "_placing", lambda executable: lambda inputs: [inputs[0][3:5]])
    assert not try_out(parse_module(sliced(4)), original=CLAMPED).passed


@pytest.mark.parametrize(
    ("apart", "own", "passes"), [(1.5, 1.5, True), (1.5, 0, True), (1.5, 4, False), (2.5, 1.2, False)]
)
def test_rounding_of_xla_is_no_fault(monkeypatch, apart, own, passes):
    """XLA is ``apart`` tolerances of 1e-5 from the interpreter, as after eight layers of tanh; the run is ``own``."""
    specified, placing = run_report._specified, run_report._placing

    def rounded(original, inputs):
        interpreted, results = specified(original, inputs)
        return interpreted, [result * np.float32(1 + apart * 1e-5) for result in results]

    def placed(executable):
        run = placing(executable)
        return lambda inputs: [result * np.float32(1 + (apart - own) * 1e-5) for result in run(inputs)]

    monkeypatch.setattr(run_report, "_specified", rounded)
    monkeypatch.setattr(run_report, "_placing", placed)
    trial = try_out(parse_module(PARTITIONED), original=ORIGINAL)
    assert trial.check.reference == specification.NAME
    assert trial.passed == passes
    assert [one.tolerance for one in trial.check.differences] == [1e-5 * (2 if apart < 2 else 1)]
    assert len(trial.check.remarks) == (apart > 2)


LARGE = (
    ORIGINAL.replace("5xf32", "1048577xf32"),
    PARTITIONED.replace("5xf32", "1048577xf32").replace("3xf32", "524289xf32"),
)
NARROW = ORIGINAL.replace("f32", "bf16"), PARTITIONED.replace("f32", "bf16")


@pytest.mark.parametrize("texts", [LARGE, NARROW], ids=["large", "narrow"])
def test_xla_is_the_reference_where_the_interpreter_is_not_asked(texts):
    original, text = texts
    trial = try_out(parse_module(text), original=original)
    assert trial.passed
    assert trial.as_dict()["check"]["reference"] == run_report.ONE_DEVICE
    assert trial.as_dict()["check"]["remarks"] == []


def test_same_seed_same_inputs_as_the_reference(capsys):
    """The report is printed whole, and says PASS, of a file with every kind of boundary."""
    text = Path(__file__).resolve().parents[3] / "examples" / "format_rows.mlir"
    assert run.main([str(text), "partition", "--check", "--devices", "12"]) == 0
    said = capsys.readouterr().out
    assert "PASS: greatest difference 0 (must be equal)" in said
    assert np.char.count(said, "4x3xi32") == 3


@pytest.mark.parametrize(
    ("escaped", "name"),
    [
        (r"caf\C3\A9", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
        (r"x[\22a\\b\22]", 'x["a\\b"]'),
        (r"\\22", "\\22"),
        (r"a\0Ab\09", "a\nb\t"),
    ],
)
def test_names_of_arguments_have_the_escapes_of_mlir(escaped, name):
    module = parse_module(PARTITIONED.replace("weights['a']", escaped))
    assert labels_of(module)[0] == name
