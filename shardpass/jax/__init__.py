"""Use shardpass from JAX: ``with use(): ...`` partitions every jitted function, ``partition`` a single one.

``pin`` adds shardpass's sharding constraints and lets XLA partition. ``redistribute`` moves arrays between shardings.
"""

import os

from shardpass.ir import jax_private
from shardpass.jax.hook import FallbackWarning, install, stats, uninstall, use
from shardpass.jax.partition import partition
from shardpass.jax.pin import pin
from shardpass.jax.redistribute import redistribute

jax_private.leave_out_of_places(os.path.dirname(__file__) + os.sep)

__all__ = ["FallbackWarning", "install", "partition", "pin", "redistribute", "stats", "uninstall", "use"]


def __dir__() -> list[str]:
    return __all__
