"""Twelve virtual CPU devices for every test, set before JAX makes its backend: enough for 8 and for 2x2x3.

Programs are small ones that stand for large ones: they are decided for the machine ``ideal``, also in the commands that
tests start.

Ctrl-C works: a shell that starts the tests in the background has it ignored in them, and in all that they start.
"""

import os
import signal

import jax
from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["SHARDPASS_MACHINE"] = "ideal"
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 12)

# A test that counts seconds fails on a machine that is busy.
settings.register_profile("shardpass", deadline=None)
settings.load_profile("shardpass")
