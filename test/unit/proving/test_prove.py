"""Proofs of small partitioned programs, and of what is made of them by one change.

The witness of each change is StableHLO's reference interpreter: the changed program differs from the whole one.
"""

import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import ShardpassError
from shardpass.runtime import interpret

DEVICES = 4

PRODUCT = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"},
                  %y: tensor<8x4xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.tanh %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
"""

BOUNDARY = 'mhlo.sharding = "{{manual}}", shardpass.global_type = tensor<{type}>, shardpass.sharding = "{sharding}"'
COLUMNS = BOUNDARY.format(type="8x8xf32", sharding="{devices=[1,4]<=[4]}")
ROWS = BOUNDARY.format(type="8x4xf32", sharding="{devices=[4,1]<=[4]}")
WHOLE = BOUNDARY.format(type="8x4xf32", sharding="{replicated}")

LOCAL = f"""module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: tensor<8x2xf32> {{{COLUMNS}}}, %y: tensor<2x4xf32> {{{ROWS}}}) -> (tensor<8x4xf32> {{{WHOLE}}}) {{
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    %1 = "stablehlo.all_reduce"(%0) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.tanh %1 : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }}
}}
"""


def differs(local: str) -> bool:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 8), (8, 4)))
    (found,) = interpret(local, x, y)
    return not np.allclose(found, np.tanh(x @ y), atol=1e-4)


def test_a_product_of_split_sums_is_proved():
    assert not differs(LOCAL)
    verdict = shardpass.prove(PRODUCT, LOCAL)
    assert verdict.proved, str(verdict)
    assert bool(verdict)


CHANGES = {
    "the sum is of two devices": (
        "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>",
        "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>",
    ),
    "the maximum instead of the sum": ("stablehlo.add %a, %b", "stablehlo.maximum %a, %b"),
    "the sum is left out": ("stablehlo.tanh %1", "stablehlo.tanh %0"),
    "tanh before the sum": ('"stablehlo.all_reduce"(%0)', '"stablehlo.all_reduce"(%t)'),
    "another op": ("stablehlo.tanh %1", "stablehlo.exponential %1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_program_is_not_proved(change):
    old, new = CHANGES[change]
    assert old in LOCAL
    local = LOCAL.replace(old, new)
    if "%t" in local:
        tanh = "    %t = stablehlo.tanh %0 : tensor<8x4xf32>\n"
        local = local.replace('    %1 = "', tanh + '    %1 = "').replace("return %2", "return %1")
    assert differs(local)
    verdict = shardpass.prove(PRODUCT, local)
    assert not verdict.proved
    assert verdict.unknown is None
    assert verdict.refuted.op.startswith("stablehlo.")
    assert "result 0 differs: at [" in verdict.refuted.why


def test_another_signature_is_an_error():
    other = PRODUCT.replace("%y: tensor<8x4xf32>", "%y: tensor<8x6xf32>").replace("8x4", "8x6")
    with pytest.raises(ShardpassError, match=r"argument 1 .*SP951"):
        shardpass.prove(other, LOCAL)


def test_equal_arguments_are_not_interchanged():
    """Two arguments of one type and sharding are two values."""
    whole = """module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.subtract %x, %y : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}"""
    rows = BOUNDARY.format(type="8xf32", sharding="{devices=[4]<=[4]}")
    local = f"""module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%x: tensor<2xf32> {{{rows}}}, %y: tensor<2xf32> {{{rows}}}) -> (tensor<2xf32> {{{rows}}}) {{
    %0 = stablehlo.subtract %x, %y : tensor<2xf32>
    return %0 : tensor<2xf32>
  }}
}}"""
    assert shardpass.prove(whole, local).proved
    assert shardpass.prove(whole, local.replace("subtract %x, %y", "subtract %y, %x")).refuted
    assert shardpass.prove(whole, local.replace("{devices=[4]<=[4]}", "{devices=[4]3,2,1,0}", 1)).refuted


@pytest.mark.parametrize("name", ["mlp_train_step", "transformer_block", "format_blocks", "format_rows"])
def test_examples_are_proved(name, pytestconfig):
    text = (pytestconfig.rootpath / "examples" / f"{name}.mlir").read_text()
    verdict = shardpass.prove(text, shardpass.run_pipeline(text, "partition"))
    assert verdict.proved, str(verdict)


HALVES = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<2x5xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %i: tensor<3xi32>)
      -> (tensor<3x2xf32> {mhlo.sharding = "{replicated}"}) {
    %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x5xf32>) -> tensor<5x2xf32>
    %p:2 = "stablehlo.sort"(%t, %t) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    }) {dimension = 1 : i64} : (tensor<5x2xf32>, tensor<5x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>)
    %r = "stablehlo.gather"(%p#0, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}
      : (tensor<5x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
    return %r : tensor<3x2xf32>
  }
}
"""


def test_rows_by_indices_of_a_table_in_uneven_halves():
    """Devices hold 3 and 2 of 5 rows; a mask that is one too wide reads padding, or another row, and is seen."""
    local = str(shardpass.run_pipeline(HALVES, "partition"))
    assert shardpass.prove(HALVES, local, refute=False).proved
    changed = [
        local.replace(old, new)
        for old, new in (("GE", "GT"), ("LT, ", "LE, "), ("dense<3> : tensor<i32>", "dense<2> : tensor<i32>"))
        if old in local
    ]
    changed = [text for text in changed if text != local]
    assert changed
    for text in changed:
        try:
            x, i = np.arange(10, dtype=np.float32).reshape(2, 5), np.array([0, 2, 4], np.int32)
            differs = not np.array_equal(*(interpret(t, x, i, padding=7)[0] for t in (local, text)))
        except ShardpassError:
            differs = True
        if differs:
            assert not shardpass.prove(HALVES, text, refute=False).proved


def test_what_is_too_large_for_its_elements_is_unknown():
    """2**20 elements in four tiles, of which the tanh is left out."""
    text = PRODUCT.replace("8x8xf32", "8x131072xf32").replace("8x4xf32>", "131072x4xf32>", 1)
    text = text.replace("tensor<8x131072xf32>, tensor<8x4xf32>)", "tensor<8x131072xf32>, tensor<131072x4xf32>)")
    local = str(shardpass.run_pipeline(text, "partition"))
    assert shardpass.prove(text, local, refute=False).proved
    changed = local.replace("stablehlo.tanh", "stablehlo.exponential")
    assert changed != local
    assert shardpass.prove(text, changed, refute=False).unknown
