"""Programs of test/lit/ops, each of which shows a rule: what shardpass makes of them is proved.

Faults in them are one change each; those that change results, by the reference interpreter, are not proved.
"""

from pathlib import Path

import pytest

import shardpass
from shardpass.diagnostics import collect
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.proving.verdict import OPEN
from test.unit.proving.pairs import side, verdict
from tools.prove.faults import Base, examine
from tools.prove.observing import Observer
from tools.prove.proof_faults import faults

OPS = Path(__file__).parents[3] / "test" / "lit" / "ops"
PROVED = (
    "case/branches-agree-on-one-split",
    "concatenate/roll",
    "convolution/contracted-spatial-dimension",
    "convolution/slid-over-gets-halo",
    "dot_general/contraction-reduce-scatter",
    "dot_general/padding-masked",
    "fft/transformed-dimension-moves-to-batch",
    "gather/indexed-dimension",
    "iota/counts-from-its-offset",
    "pad/rows-across-tiles",
    "reduce/padding-masked",
    "reduce_window/two-devices-one-permute",
    "reverse/uneven-tiles",
    "scatter/batching-dimension",
    "sort/beside-the-ordered-dimension",
    "triangular_solve/batch-and-columns",
    "while/carries-tiles",
)
SMALLER = {"dot_general/padding-masked": ("4095", "31")}  # shapes, of which faults leave as much
CHANGED = ("dot_general/padding-masked", "gather/indexed-dimension", "reverse/uneven-tiles", "while/carries-tiles")


def partitioned(name, shapes=("", "")):
    text = (OPS / f"{name}.mlir").read_text().replace(*shapes)
    with collect():
        return parse_module(text), shardpass.run_pipeline(text, "partition")


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", PROVED)
def test_what_shardpass_makes_is_proved(name):
    verdict = prove(*partitioned(name), refute=False)
    assert verdict.proved, str(verdict)


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", CHANGED)
def test_a_fault_is_not_proved(name):
    whole, local = partitioned(name, SMALLER.get(name, ("", "")))
    base, observer = Base(name, whole, local, list(faults(local))), Observer()
    outcomes = [o for fault in base.faults if (o := examine(base, fault, True, observer)) is not None]
    observer.close()
    assert [o for o in outcomes if o.verdict == "proved" and o.differs] == []
    assert sum(o.verdict == "unknown" for o in outcomes) >= 3


def split(body, element="f32"):
    """A program of one of two devices, of which each holds half of a vector."""
    return f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: tensor<2x{element}> {{mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<4x{element}>,
      shardpass.sharding = "{{devices=[2]<=[2]}}"}}) -> (tensor<2x{element}> {{mhlo.sharding = "{{manual}}",
      shardpass.global_type = tensor<4x{element}>, shardpass.sharding = "{{devices=[2]<=[2]}}"}}) {{
{body}
  }}
}}"""


LOOP = """    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %most = stablehlo.constant dense<TRIPS> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, SHAPE
     cond {
      %again = stablehlo.compare LT, %i, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %again : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %sine = stablehlo.sine %c : SHAPE
      stablehlo.return %next, %sine : tensor<i32>, SHAPE
    }
    return %r#1 : SHAPE"""


def loop(trips, shape):
    return LOOP.replace("TRIPS", str(trips)).replace("SHAPE", shape)


@pytest.mark.parametrize(("trips", "proved"), [(3, True), (4, False)])
def test_a_loop_runs_as_often(trips, proved):
    whole = f"module {{\n  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{loop(3, 'tensor<4xf32>')}\n  }}\n}}"
    verdict = prove(whole, split(loop(trips, "tensor<2xf32>")), refute=False)
    assert verdict.proved is proved
    assert proved or "condition" in verdict.unknown.why


@pytest.mark.parametrize(("element", "proved"), [("f32", True), ("i8", False)])
def test_bits_there_and_back_are_the_value(element, proved):
    """Of f32, yes. The greater of x and 1 as ui8 is -1 where x is -1, and as i8 it is 1."""
    body = {
        "f32": """    %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2xui32>
    %1 = stablehlo.bitcast_convert %0 : (tensor<2xui32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>""",
        "i8": """    %0 = stablehlo.bitcast_convert %x : (tensor<2xi8>) -> tensor<2xui8>
    %one = stablehlo.constant dense<1> : tensor<2xui8>
    %1 = stablehlo.maximum %0, %one : tensor<2xui8>
    %2 = stablehlo.bitcast_convert %1 : (tensor<2xui8>) -> tensor<2xi8>
    return %2 : tensor<2xi8>""",
    }[element]
    kind = f"tensor<4x{element}>"
    greater = f"""    %one = stablehlo.constant dense<1> : {kind}
    %r = stablehlo.maximum %x, %one : {kind}
    return %r : {kind}"""
    inner = greater if element == "i8" else f"    return %x : {kind}"
    whole = f"module {{\n  func.func @main(%x: {kind}) -> {kind} {{\n{inner}\n  }}\n}}"
    assert prove(whole, split(body, element), refute=False).proved is proved


def test_the_configuration_of_a_call_counts():
    """Two calls of one library routine that differ in its configuration alone."""
    how = "{{mhlo.backend_config = {{uplo = {uplo} : ui8}}}}"
    call = f"    %0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {how} : ({{t}}) -> {{t}}"
    whole_type = "tensor<4x3x3xf32>"
    whole = f"module {{\n  func.func @main(%x: {whole_type}) -> {whole_type} {{\n{call.format(uplo=76, t=whole_type)}\n    return %0 : {whole_type}\n  }}\n}}"  # noqa: E501
    for uplo, proved in ((76, True), (85, False)):
        body = call.format(uplo=uplo, t="tensor<2x3x3xf32>") + "\n    return %0 : tensor<2x3x3xf32>"
        local = split(body, "f32").replace("tensor<2xf32> {", "tensor<2x3x3xf32> {").replace("4xf32", "4x3x3xf32")
        local = local.replace("{devices=[2]<=[2]}", "{devices=[2,1,1]<=[2]}")
        assert prove(whole, local, refute=False).proved is proved


@pytest.mark.parametrize("name", ["shard_map_matmul", "shard_map_matmul_reduce_scatter"])
def test_a_manual_region_is_a_program_of_each_device(name):
    text = (OPS.parents[2] / "examples" / f"{name}.mlir").read_text()
    with collect():
        local = shardpass.run_pipeline(text, "partition")
    assert prove(text, local, refute=False).proved
    other = str(local).replace("stablehlo.add", "stablehlo.maximum")
    assert other == str(local) or not prove(text, other, refute=False).proved


@pytest.mark.parametrize(("element", "proved"), [("f32", True), ("i32", False)])
def test_a_sum_moves_past_a_division_of_floats_alone(element, proved):
    """7 / 2 + 7 / 2 is 6 in integers, and (7 + 7) / 2 is 7."""
    zero, two = ("0.0", "2.0") if element == "f32" else ("0", "2")
    total = """    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<SIZExT>, tensor<T>) -> tensor<T>"""
    constants = f"""    %zero = stablehlo.constant dense<{zero}> : tensor<T>
    %two = stablehlo.constant dense<{two}> : tensor<T>
"""
    whole = f"""module {{
  func.func @main(%x: tensor<4xT>) -> tensor<T> {{
{constants}{total.replace("SIZE", "4")}
    %1 = stablehlo.divide %0, %two : tensor<T>
    return %1 : tensor<T>
  }}
}}"""
    body = f"""{constants}{total.replace("SIZE", "2")}
    %1 = stablehlo.divide %0, %two : tensor<T>
    %2 = "stablehlo.all_reduce"(%1) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<T>, %b: tensor<T>):
      %s = stablehlo.add %a, %b : tensor<T>
      stablehlo.return %s : tensor<T>
    }}) : (tensor<T>) -> tensor<T>
    return %2 : tensor<T>"""
    local = split(body, element)
    before, after = local.split("->", 1)
    for size in (2, 4):
        after = after.replace(f"tensor<{size}x{element}>", f"tensor<{element}>", 1)
    local = f"{before}->{after.replace('{devices=[2]<=[2]}', '{replicated}', 1)}"
    programs = [text.replace("xT>", f"x{element}>").replace("<T>", f"<{element}>") for text in (whole, local)]
    assert prove(*programs, refute=False).proved is proved


def test_what_one_result_is_may_follow_from_the_size_of_another():
    """Random bits advance their state by as many as they are."""
    state = side("tensor<2xui64>")

    def drawn(count):
        kinds = f"tensor<2xui64>, tensor<{count}xui32>"
        return f"""    %r, %b = stablehlo.rng_bit_generator %x0, algorithm = THREE_FRY : (tensor<2xui64>) -> ({kinds})
    return %r : tensor<2xui64>"""

    assert verdict(drawn(8), drawn(8), [state], [state]).proved
    assert not verdict(drawn(8), drawn(4), [state], [state]).proved


def test_conversions_that_the_specification_leaves_open_are_listed():
    numbers = side("tensor<4xf32>", "tensor<2xf32>", "{devices=[2]<=[2]}")
    whole = side("tensor<4xi32>", "tensor<2xi32>", "{devices=[2]<=[2]}")
    bits = side("tensor<4xi1>", "tensor<2xi1>", "{devices=[2]<=[2]}")

    def converted(size, kind):
        return f"""    %r = stablehlo.convert %x0 : (tensor<{size}xf32>) -> tensor<{size}x{kind}>
    return %r : tensor<{size}x{kind}>"""

    found = verdict(converted(4, "i32"), converted(2, "i32"), [numbers], [whole])
    assert found.proved
    assert found.assumed[-1].startswith(f"{OPEN} (1 place: ")
    assert OPEN not in str(verdict(converted(4, "i1"), converted(2, "i1"), [numbers], [bits]).assumed)
