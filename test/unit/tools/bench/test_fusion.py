"""The benchmark of fusions: HLO that is counted by hand, and a program that XLA compiles."""

from __future__ import annotations

import shardpass
from shardpass.diagnostics import collect
from shardpass.runtime.reference import compile_single
from tools.bench.fusion import Miss, compared, predicted, total
from tools.bench.hlo_values import Size, Value, values_in

HLO = """HloModule jit_f, is_scheduled=true

%fused (param_0: f32[8,4]) -> f32[8,4] {
  %param_0 = f32[8,4]{1,0} parameter(0)
  %negate.1 = f32[8,4]{1,0} negate(%param_0)
  ROOT %tanh.1 = f32[8,4]{1,0} tanh(%negate.1)
}

%body (p.1: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %p.1 = (s32[], f32[8,4]{1,0}) parameter(0)
  %get-tuple-element.1 = f32[8,4]{1,0} get-tuple-element(%p.1), index=1
  %sine.1 = f32[8,4]{1,0} sine(%get-tuple-element.1), metadata={op_name="jit(f)/while/body/sin"}
  ROOT %tuple.1 = (s32[], f32[8,4]{1,0}) tuple(%p.1, %sine.1)
}

%expanded (p.2: (s32[], f32[8,4], s32[3])) -> (s32[], f32[8,4], s32[3]) {
  %p.2 = (s32[], f32[8,4]{1,0}, s32[3]{0}) parameter(0)
  ROOT %cosine.1 = (s32[], f32[8,4]{1,0}, s32[3]{0}) custom-call(%p.2)
}

ENTRY %main.1 (x.1: f32[8,4], /*index=5*/y.1: f32[2]) -> f32[4,8] {
  %x.1 = f32[8,4]{1,0} parameter(0), metadata={op_name="x[\\'a\\']"}
  %constant.1 = s32[] constant(0)
  %negate_tanh_fusion.12 = f32[8,4]{1,0} fusion(%x.1), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/tanh"}
  %tuple.2 = (s32[], f32[8,4]{1,0}) tuple(%constant.1, %negate_tanh_fusion.12)
  %while.1 = (s32[], /*index=1*/f32[8,4]{1,0}) while(%tuple.2), body=%body, metadata={op_name="jit(f)/while"}
  %get-tuple-element.2 = f32[8,4]{1,0} get-tuple-element(%while.1), index=1
  %while.2 = (s32[], f32[8,4]{1,0}, s32[3]{0}) while(%tuple.2), body=%expanded, metadata={op_name="jit(f)/scatter-add"}
  %get-tuple-element.3 = f32[8,4]{1,0} get-tuple-element(%while.2), index=1
  %copy.1 = f32[8,4]{0,1} copy(%get-tuple-element.3)
  ROOT %bitcast.1 = f32[4,8]{1,0} bitcast(%copy.1)
}
"""

ARRAY = Size("f32", 32)


def test_values_are_those_of_the_entry_and_of_the_loops_of_the_program() -> None:
    assert sorted(values_in(HLO, {"jit(f)/while"}), key=lambda value: value.name) == [
        Value(ARRAY, "", "copy"),
        Value(ARRAY, "jit(f)/scatter-add", "while"),
        Value(ARRAY, "jit(f)/tanh", "fusion negate_tanh_fusion"),
        Value(ARRAY, "jit(f)/while/body/sin", "sine"),
    ]


def test_a_size_has_the_bytes_of_its_elements() -> None:
    assert (Size("bf16", 10).bytes, Size("pred", 10).bytes, Size("c64", 10).bytes) == (20, 10, 80)


def test_values_are_equal_by_type_and_size_and_named_by_op_name() -> None:
    small = Size("f32", 2)
    theirs = [Value(ARRAY, "a", "add"), Value(ARRAY, "", "copy"), Value(small, "b", "reduce")]
    ours = [
        Value(ARRAY, "a", "stablehlo.add"),
        Value(small, "c", "stablehlo.reduce"),
        Value(small, "b", "stablehlo.sort"),
    ]
    row, misses = compared("p", theirs, ours)
    assert (row.written, row.predicted, row.both, row.named) == (3, 3, 2, 2)
    assert (row.written_bytes, row.predicted_bytes, row.both_bytes, row.copied_bytes) == (264, 144, 136, 128)
    assert misses == [Miss("p", "XLA", "copy", "", 128), Miss("p", "the table", "stablehlo.reduce", "c", 8)]
    assert total([row, row]).both_bytes == 272


PROGRAM = """module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<64x32xf32>, %b: tensor<32xf32>, %w: tensor<32x16xf32>) -> tensor<64x16xf32> {
    %c = stablehlo.constant dense<2.0> : tensor<64x32xf32>
    %0 = stablehlo.multiply %x, %c : tensor<64x32xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<64x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<64x32xf32>
    %3 = stablehlo.tanh %2 : tensor<64x32xf32>
    %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0]
      : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
    return %4 : tensor<64x16xf32>
  }
}"""


def test_a_program_is_fused_as_the_table_says() -> None:
    with collect():
        module = shardpass.run_pipeline(PROGRAM, "shardpass-import")
        text = compile_single(module).hlo_text()
        with module.context:
            ours, loops = predicted(module)
    row, misses = compared("p", values_in(text, loops), ours)
    assert misses == []
    assert (row.written, row.predicted, row.both) == (2, 2, 2)
