"""The named pipelines."""

from __future__ import annotations

from collections.abc import Mapping

BEHIND_PROPAGATION = (
    "shardpass-check,shardpass-partition,shardpass-defer,shardpass-hoist,shardpass-redistribute,canonicalize,cse,"
    "shardpass-collective-matmul,shardpass-combine,cse,shardpass-join,shardpass-keep-nan,shardpass-prove"
)

NAMED: Mapping[str, str] = {
    "import": "shardpass-import",
    "propagate": "shardpass-import,shardpass-propagate",
    "check": "shardpass-import,shardpass-propagate,shardpass-check",
    "partition": f"shardpass-import,shardpass-propagate,{BEHIND_PROPAGATION}",
}
