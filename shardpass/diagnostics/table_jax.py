"""SP6xx: hooks into JAX."""

from __future__ import annotations

from shardpass.diagnostics.core import code

FALLBACK = code("SP601")
STRICT = code("SP607")
UNEVEN = code("SP604")
NO_AXES = code("SP605")
OTHER_SHARDING = code("SP606")
NOT_A_SHARDING = code("SP610")
OTHER_TREE = code("SP612")
INDIVISIBLE = code("SP611")
OTHER_JOB = code("SP616")
TRANSFER_FAILED = code("SP617")
CONSTRAINTS_OF_PIPELINE = code("SP613")
NOT_PINNED = code("SP614")
NOTHING_TO_PIN = code("SP615")
