"""Programs as JAX and XLA write them by default, and programs that cannot be read."""

import json

import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.proving import prove
from shardpass.proving.xla import from_hlo

ROWS, WHOLE_ROWS = 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>', "sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>"
SHARDY = f"""module attributes {{mhlo.num_partitions = 4 : i32}} {{
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%x: tensor<8x6xf32> {{{ROWS}}}) -> (tensor<8x6xf32> {{{ROWS}}}) {{
    %0 = stablehlo.tanh %x : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }}
}}"""
NO_RESULT_SHARDING = SHARDY.replace(f"-> (tensor<8x6xf32> {{{ROWS}}})", "-> tensor<8x6xf32>")
# as jit(f).lower(x).compile().as_text() prints it, without metadata
COMPILED = """HloModule jit_f, is_scheduled=true, num_partitions=4

%fused (p: f32[2,6]) -> f32[2,6] {
  %p = f32[2,6]{1,0} parameter(0)
  ROOT %t = f32[2,6]{1,0} tanh(%p)
}

ENTRY %main (x: f32[2,6]) -> f32[2,6] {
  %x = f32[2,6]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT %f = f32[2,6]{1,0} fusion(%x), kind=kLoop, calls=%fused
}
"""
PASSED = """  %f = f32[2,6]{1,0} fusion(%x), kind=kLoop, calls=%fused
  ROOT %o = f32[2,6]{1,0} collective-permute(%f), channel_id=1, source_target_pairs={PAIRS}
"""
FUSED = "  ROOT %f = f32[2,6]{1,0} fusion(%x), kind=kLoop, calls=%fused\n"


def verdict(whole, hlo):
    module = parse_module(whole)
    return prove(module, from_hlo(hlo, module), refute=False)


@pytest.mark.parametrize("whole", [SHARDY, NO_RESULT_SHARDING])
def test_what_jax_writes_by_default_is_proved(whole):
    assert verdict(whole, COMPILED).proved


def test_a_wrong_fusion_is_not_proved():
    assert not verdict(SHARDY, COMPILED.replace("tanh(", "exponential(")).proved


def test_shardys_sharding_of_a_result_counts():
    """The tiles of the program lie in rows 2 and 3 on device 0, where the whole program says 0 and 1."""
    moved = COMPILED.replace(FUSED, PASSED.replace("PAIRS", "{1,0},{0,1},{2,2},{3,3}"))
    assert not verdict(SHARDY, moved).proved
    result = SHARDY.replace(f"-> (tensor<8x6xf32> {{{ROWS}}})", f"-> (tensor<8x6xf32> {{{WHOLE_ROWS}}})")
    with pytest.raises(ShardpassError, match="tile"):
        verdict(result, COMPILED)


def test_a_sharding_that_no_text_names_is_stated():
    assumed = verdict(NO_RESULT_SHARDING, COMPILED).assumed
    assert "result 0 begins at [0, 0] on device 0, at [2, 0] on device 1" in assumed[-1]
    assert verdict(SHARDY, COMPILED).assumed == assumed[:-1]
    moved = COMPILED.replace(FUSED, PASSED.replace("PAIRS", "{1,0},{0,1},{2,2},{3,3}"))
    assert "result 0 begins at [2, 0] on device 0" in verdict(NO_RESULT_SHARDING, moved).assumed[-1]


def test_tiles_that_are_not_the_whole_result_are_not_proved():
    """Devices 0 and 1 both have rows 0 and 1, and nobody has rows 2 and 3."""
    twice = COMPILED.replace(FUSED, PASSED.replace("PAIRS", "{1,0},{2,2},{3,3}"))
    assert not verdict(NO_RESULT_SHARDING, twice).proved
    broadcast = "collective-broadcast(%x), channel_id=1, replica_groups={{0,1,2,3}}"
    both = COMPILED.replace(
        "ROOT %f = f32[2,6]{1,0} fusion(%x)",
        f"%b = f32[2,6]{{1,0}} {broadcast}\n  ROOT %f = f32[2,6]{{1,0}} fusion(%b)",
    )
    assert not verdict(NO_RESULT_SHARDING, both).proved


@pytest.mark.parametrize(
    "text",
    [
        COMPILED.replace("parameter(0), sharding", "parameter(7), sharding"),
        "HloModule m\nENTRY %e () -> f32[] {\n  ROOT %c = f32[] " + "(" * 20_000 + "\n}\n",
    ],
)
def test_hlo_on_which_xla_ends_its_process_is_an_error(text):
    with pytest.raises(ShardpassError, match="SP952"):
        from_hlo(text, parse_module(SHARDY))


def test_the_verdict_names_its_object():
    compiled = verdict(SHARDY, COMPILED)
    assert "XLA's program after all its passes" in str(compiled)
    assert compiled.json()["object"] == "XLA's program after all its passes"
    partitioned = verdict(SHARDY, COMPILED.replace(" is_scheduled=true,", ""))
    assert str(partitioned).startswith("proved: XLA's program after SPMD partitioning computes the whole program")
    assert "not proved: XLA's passes after SPMD partitioning" in str(partitioned)
    assert "after SPMD partitioning" in json.dumps(partitioned.json()["not_covered"])


# ---------------------------------------------------------------- complex constants

NUMBERS = (np.arange(8) - 3).astype(np.complex64) * np.complex64(1 + 2j)
SIDE = 'mhlo.sharding = "{manual}", shardpass.global_type = tensor<8xcomplex<f32>>, shardpass.sharding = '


def complex_program(numbers, *, local):
    listed = ", ".join(f"({n.real:.6e},{n.imag:.6e})" for n in numbers)
    kind = f"tensor<{len(numbers)}xcomplex<f32>>"
    side = f'{kind} {{{SIDE}"{{replicated}}"}}' if local else kind
    head = "module attributes {mhlo.num_partitions = 2 : i32}" if local else "module"
    return f"""{head} {{
  func.func @main(%x: {side}) -> ({side}) {{
    %c = stablehlo.constant dense<[{listed}]> : {kind}
    %0 = stablehlo.add %x, %c : {kind}
    return %0 : {kind}
  }}
}}"""


def test_complex_constants():
    whole = complex_program(NUMBERS, local=False)
    assert prove(whole, complex_program(NUMBERS, local=True)).proved
    other = NUMBERS.copy()
    other[5] = other[5].conjugate()
    assert not prove(whole, complex_program(other, local=True), refute=False).proved


def test_a_complex_constant_of_bits_is_one_of_numbers():
    bits = NUMBERS.tobytes().hex().upper()
    listed = complex_program(NUMBERS, local=True)
    start, end = listed.index("dense<"), listed.index("]>") + 2
    assert prove(complex_program(NUMBERS, local=False), f'{listed[:start]}dense<"0x{bits}">{listed[end:]}').proved


# ---------------------------------------------------------------- recursion

CIRCLE = """
  func.func private @f(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %0 = func.call @g(%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
  func.func private @g(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %0 = func.call @f(%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}"""


def test_functions_in_a_circle_are_an_error():
    calls = SHARDY.replace("stablehlo.tanh %x :", "func.call @f(%x) : (tensor<8x6xf32>) ->")
    with pytest.raises(ShardpassError, match=r"@f -> @g -> @f.*SP205"):
        verdict(calls.rstrip().removesuffix("}") + CIRCLE, COMPILED)


def test_a_function_that_is_called_twice_is_no_circle():
    function = """
  func.func private @f(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %0 = stablehlo.tanh %x : tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}"""
    call = "%0 = func.call @f(%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>\n"
    whole = SHARDY.replace("%0 = stablehlo.tanh %x", f"{call}    %1 = func.call @f(%x)").replace(
        "%1 = func.call @f(%x) :", "%1 = func.call @f(%x) : (tensor<8x6xf32>) ->"
    )
    assert verdict(whole.rstrip().removesuffix("}") + function, COMPILED).proved


def test_nests_that_are_too_deep_are_an_error():
    kind = "(%x: tensor<8x6xf32>) -> tensor<8x6xf32>"
    step = "%0 = func.call @f{} (%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>\n    return %0 : tensor<8x6xf32>"
    bodies = [*(step.format(k + 1) for k in range(2000)), "return %x : tensor<8x6xf32>"]
    chain = "".join(f"  func.func private @f{k}{kind} {{\n    {body}\n  }}\n" for k, body in enumerate(bodies))
    calls = SHARDY.replace("stablehlo.tanh %x :", "func.call @f0(%x) : (tensor<8x6xf32>) ->")
    with pytest.raises(ShardpassError, match="SP124"):
        verdict(calls.rstrip().removesuffix("}") + chain + "}", COMPILED)


# ---------------------------------------------------------------- bitcasts, whose layouts decide

BITCAST = """HloModule jit_f, is_scheduled=true, num_partitions=4

ENTRY %main (x: f32[2,6]) -> f32[RESULT] {
  %x = f32[2,6]{SOURCE} parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT %b = f32[RESULT]{TARGET} bitcast(%x)
}
"""


@pytest.mark.parametrize(
    ("op", "shape", "source", "result", "target", "right"),
    [
        ("transpose %x, dims = [1, 0]", "6x8", "1,0", "6,2", "0,1", True),
        ("transpose %x, dims = [1, 0]", "6x8", "0,1", "6,2", "1,0", True),
        ("transpose %x, dims = [1, 0]", "6x8", "1,0", "6,2", "1,0", False),
        ("reshape %x", "8x2x3", "1,0", "2,2,3", "2,1,0", True),
        ("reshape %x", "8x2x3", "1,0", "2,2,3", "2,0,1", False),
        ("reshape %x", "8x2x3", "0,1", "2,2,3", "2,1,0", False),
    ],
)
def test_a_bitcast_is_what_its_layouts_say(op, shape, source, result, target, right):
    """Elements stay where they are in memory: f32[2,6]{1,0} as f32[6,2]{0,1} is its transpose, as {1,0} it is not."""
    whole = f"""module attributes {{mhlo.num_partitions = 4 : i32}} {{
  func.func @main(%x: tensor<8x6xf32> {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}}) -> tensor<{shape}xf32> {{
    %0 = stablehlo.{op} : (tensor<8x6xf32>) -> tensor<{shape}xf32>
    return %0 : tensor<{shape}xf32>
  }}
}}"""
    hlo = BITCAST.replace("RESULT", result).replace("SOURCE", f"{{{source}}}").replace("TARGET", f"{{{target}}}")
    hlo = hlo.replace("{{", "{").replace("}}", "}")
    assert verdict(whole, hlo).proved is right
