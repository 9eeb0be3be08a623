"""shardpass inside JAX: ``with use(): ...`` partitions every ``jax.jit``, ``partition`` one function.

``redistribute`` moves arrays.
"""

import os

from jax.extend import source_info_util

from shardpass.jax.hook import FallbackWarning, install, stats, uninstall, use
from shardpass.jax.partition import partition
from shardpass.jax.redistribute import redistribute

# an op that is traced by way of these files is of the user's line that called them, as with JAX's own
source_info_util.register_exclusion(os.path.dirname(__file__) + os.sep)

__all__ = ["FallbackWarning", "install", "partition", "redistribute", "stats", "uninstall", "use"]
