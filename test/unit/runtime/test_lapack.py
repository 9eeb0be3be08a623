"""LAPACK's routines in a module that did not come from JAX in this process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = '''
import numpy as np
import jax
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
import shardpass

text = """
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4x2x2xf32> {mhlo.sharding = "{devices=[2,1,1]<=[2]}"}) -> tensor<4x2x2xf32> {
    %0:2 = "stablehlo.custom_call"(%a) {call_target_name = "lapack_spotrf_ffi", backend_config = {uplo = 76 : ui8},
      api_version = 4 : i32, mhlo.frontend_attributes = {num_batch_dims = "1"},
      operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
      result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>],
      output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0,
      operand_tuple_indices = []>]} : (tensor<4x2x2xf32>) -> (tensor<4x2x2xf32>, tensor<4xi32>)
    return %0#0 : tensor<4x2x2xf32>
  }
}
"""
a = np.array([[4, 2], [2, 5]], np.float32) * np.arange(1, 5, dtype=np.float32)[:, None, None]
(found,) = shardpass.compile(shardpass.run_pipeline(text, "partition"))(a)
np.testing.assert_allclose(np.tril(np.asarray(found)), np.linalg.cholesky(a), rtol=1e-6)
'''


def test_a_module_from_a_file_may_call_lapack() -> None:
    """In a process that wrote no such call: the routines' addresses were null there, and the process died."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
