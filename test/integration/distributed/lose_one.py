"""Run in 2 processes: process 1 is lost between two steps, and process 0 goes on into a collective.

With the argument ``kill`` process 1 is killed, with ``raise`` it raises what nobody catches.
"""

import os
import signal
import sys

import jax

jax.distributed.initialize()  # finds the others as under Open MPI's launcher

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
    if sys.argv[1] == "raise":
        raise ValueError("the disk is full")
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    exe(np.zeros(4, np.float32))
