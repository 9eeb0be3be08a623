"""The named pipelines."""

from __future__ import annotations

from collections.abc import Mapping

NAMED: Mapping[str, str] = {
    "import": "shardpass-import",
    "propagate": "shardpass-import,shardpass-propagate",
    "check": "shardpass-import,shardpass-propagate,shardpass-check",
    "partition": "shardpass-import,shardpass-propagate,shardpass-check,shardpass-partition,"
    "shardpass-defer,shardpass-hoist,shardpass-redistribute,canonicalize,cse,shardpass-collective-matmul,"
    "shardpass-combine,cse,shardpass-join,shardpass-keep-nan",
}
