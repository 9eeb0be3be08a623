"""Name the partitioners: shardpass; XLA, as ``jax.jit`` compiles; and Shardy's own passes, as jaxlib has them."""

from __future__ import annotations

OURS, XLA, SHARDY = "shardpass", "xla", "shardy"
WAYS = (XLA, SHARDY)
