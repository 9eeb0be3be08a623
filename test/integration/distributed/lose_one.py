"""Run in 2 processes: process 1 is killed between two steps, and process 0 goes on into a collective."""

import os
import signal

from shardpass.runtime.processes import join

join()

import jax  # noqa: E402
import numpy as np  # noqa: E402

import shardpass  # noqa: E402

TEXT = """module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"})
      -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
    return %x : tensor<4xf32>
  }
}"""
exe = shardpass.compile(shardpass.run_pipeline(TEXT, "partition"))
exe(np.zeros(4, np.float32))
print("stepped", flush=True)
if jax.process_index() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    exe(np.zeros(4, np.float32))
