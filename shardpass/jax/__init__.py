"""shardpass inside JAX: ``with use(): ...`` partitions every ``jax.jit``, ``partition`` one function.

``redistribute`` moves arrays.
"""

from shardpass.jax.hook import FallbackWarning, install, stats, uninstall, use
from shardpass.jax.partition import partition
from shardpass.jax.redistribute import redistribute

__all__ = ["FallbackWarning", "install", "partition", "redistribute", "stats", "uninstall", "use"]
