"""Twelve virtual CPU devices for every test, set before JAX makes its backend: enough for 8 and for 2x2x3.

Ctrl-C works: a shell that starts the tests in the background has it ignored in them, and in all that they start.
"""

import signal

import jax
from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 12)

# A test that counts seconds fails on a machine that is busy.
settings.register_profile("shardpass", deadline=None)
settings.load_profile("shardpass")
