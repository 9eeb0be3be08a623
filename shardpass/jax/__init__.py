"""shardpass inside JAX: ``with use(): ...`` partitions every ``jax.jit``; ``redistribute`` moves one array."""

from shardpass.jax.hook import FallbackWarning, install, stats, uninstall, use
from shardpass.jax.redistribute import redistribute

__all__ = ["FallbackWarning", "install", "redistribute", "stats", "uninstall", "use"]
