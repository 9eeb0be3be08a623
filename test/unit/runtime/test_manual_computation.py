"""``compile`` hands XLA a manual region: nothing is said on stderr, and each device runs what the module says."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from shardpass.ir.context import parse_module
from shardpass.ir.tensors import every_op, operation
from shardpass.runtime import compile
from shardpass.runtime.manual_computation import over_devices

SUM = """"stablehlo.all_reduce"({}) ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }}) {{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}} : (tensor<2xi32>) -> tensor<2xi32>"""
SAID = 'mhlo.sharding = "{{manual}}", shardpass.global_type = {}, shardpass.sharding = "{}"'.format
ROWS = SAID("tensor<15xi32>", "{devices=[8]<=[8]}")
# marks on functions that main calls, ops that take nothing, a scalar that one device holds, and tiles of 15 rows over 8
PROGRAM = f"""module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func private @sum(%x: tensor<2xi32> {{mhlo.sharding = "{{manual}}"}})
      -> (tensor<2xi32> {{mhlo.sharding = "{{manual}}"}}) {{
    %0 = {SUM.format("%x")}
    return %0 : tensor<2xi32>
  }}
  func.func public @main(%x: tensor<2xi32> {{{ROWS}, jax.result_info = "x"}})
      -> (tensor<2xi32> {{{ROWS}}}, tensor<ui32> {{{SAID("tensor<ui32>", "{maximal device=5}")}}}) {{
    %0 = func.call @sum(%x) : (tensor<2xi32>) -> tensor<2xi32>
    %i = stablehlo.partition_id {{mhlo.sharding = "{{manual}}"}} : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %2 = stablehlo.convert %1 : (tensor<2xui32>) -> tensor<2xi32>
    %3 = func.call @sum(%2) : (tensor<2xi32>) -> tensor<2xi32>
    %4 = stablehlo.subtract %0, %2 : tensor<2xi32>
    %5 = stablehlo.add %3, %4 : tensor<2xi32>
    return %5, %i : tensor<2xi32>, tensor<ui32>
  }}
}}"""


def test_marks_everywhere() -> None:
    rows, one = compile(PROGRAM)(np.arange(15, dtype=np.int32))
    even, odd = sum(range(0, 15, 2)), sum(range(1, 15, 2))  # the last odd place is padding, and 0
    ids = sum(range(8))
    expected = np.array([[even + ids - d, odd + ids - d] for d in range(8)], np.int32).ravel()[:15]
    np.testing.assert_array_equal(np.asarray(rows), expected)
    assert int(one) == 5


def test_what_is_around_the_region() -> None:
    module = parse_module(PROGRAM)
    over_devices(module, 8)
    module.operation.verify()
    main = next(op for op in module.body.operations if str(op.attributes.get("sym_name")) == '"main"')
    kind = main.attributes["function_type"].value
    assert [str(type_) for type_ in (*kind.inputs, *kind.results)] == [
        "tensor<16xi32>",
        "tensor<16xi32>",
        "tensor<ui32>",
    ]
    assert [op.name for op in map(operation, main.regions[0].blocks[0].operations)] == [
        "sdy.manual_computation",
        "func.return",
    ]
    rows = [row for name in ("arg_attrs", "res_attrs") for row in main.attributes[name]]
    split, whole = '#sdy.sharding<@shardpass_mesh, [{"devices"}]>', "#sdy.sharding<@shardpass_mesh, []>"
    said = [str(row["sdy.sharding"]) for row in rows]
    assert said == [split, split, whole]  # tiles in a row; the scalar is everywhere
    text = str(module)
    assert "mhlo.sharding" not in text
    assert "shardpass.sharding" not in text
    assert 'jax.result_info = "x"' in text
    assert not any("mhlo.sharding" in op.attributes for op in every_op(module.operation))


CHILD = """
import sys
{}
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
import numpy as np
given = sys.stdin.read()
module = shardpass.run_pipeline(given, "partition") if "shardpass.sharding" not in given else given
step = shardpass.compile(module)
step(*[np.ones(b.shape, b.dtype) for b in step.signature.arguments])
"""
UNPARTITIONED = """module attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%x: tensor<16x16xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"})
      -> (tensor<16x16xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }
}"""


@pytest.mark.parametrize(
    ("text", "imports"),
    [(PROGRAM, "import jax, shardpass"), (UNPARTITIONED, "import shardpass; shardpass.run_pipeline; import jax")],
    ids=["by-hand", "partitioned, jaxlib before jax"],
)
def test_nothing_on_stderr(text: str, imports: str) -> None:
    """XLA's log goes to the file of number 2, and a process says by its environment how much of it there is."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(imports)],
        input=text,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_op_that_shardy_cannot_take_through_hlo() -> None:
    """The high half of a product: XLA has no StableHLO for it, so the program goes without a manual region."""
    kind = "tensor<2xi32>"
    text = f"""module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: {kind} {{{ROWS}}}) -> ({kind} {{{ROWS}}}) {{
    %0 = "chlo.mulhi"(%x, %x) : ({kind}, {kind}) -> {kind}
    return %0 : {kind}
  }}
}}"""
    x = np.arange(15, dtype=np.int32) * 100_000_007
    (found,) = compile(text)(x)
    np.testing.assert_array_equal(np.asarray(found), (x.astype(np.int64) ** 2 >> 32).astype(np.int32))
