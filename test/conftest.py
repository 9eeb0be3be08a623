"""Twelve virtual CPU devices for every test, set before JAX makes its backend: enough for 8 and for 2x2x3."""

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 12)
