"""``shardpass-propagate{trace=true}`` and its places."""

import shardpass

# each operand of the call is a step of its own to propagation, and a search moves one
CALL = """
module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
  func.func @main(%a: tensor<2x2xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"},
                  %b: tensor<2x2xi32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
    %0 = stablehlo.slice %a [0:1, 0:2] : (tensor<2x2xi32>) -> tensor<1x2xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x2xi32>) -> tensor<2xi32>
    %2 = stablehlo.slice %b [0:2, 0:1] : (tensor<2x2xi32>) -> tensor<2x1xi32>
    %3 = stablehlo.reshape %2 : (tensor<2x1xi32>) -> tensor<2xi32>
    stablehlo.custom_call @xla_ffi_partitioned_python_cpu_callback(%1, %3) {has_side_effect = true}
        : (tensor<2xi32>, tensor<2xi32>) -> ()
    %4 = stablehlo.slice %a [1:2, 0:2] : (tensor<2x2xi32>) -> tensor<1x2xi32>
    %5 = stablehlo.reshape %4 : (tensor<1x2xi32>) -> tensor<2xi32>
    %6 = stablehlo.slice %b [0:2, 1:2] : (tensor<2x2xi32>) -> tensor<2x1xi32>
    %7 = stablehlo.reshape %6 : (tensor<2x1xi32>) -> tensor<2xi32>
    stablehlo.custom_call @xla_ffi_partitioned_python_cpu_callback(%5, %7) {has_side_effect = true}
        : (tensor<2xi32>, tensor<2xi32>) -> ()
    return
  }
}
"""


def test_parts_of_an_op_stand_at_its_line(capsys):
    shardpass.run_pipeline(CALL, "shardpass-import,shardpass-propagate{trace=true verbose=true}")
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith("-:9:5: stablehlo.custom_call: ") for line in told)
