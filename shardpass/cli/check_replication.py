"""shardpass-check-replication: outputs of manual regions that claim to be replicated and may not be."""

from __future__ import annotations

from collections.abc import Sequence

from shardpass.cli.common import argument_parser, guarded, read_input
from shardpass.diagnostics import Severity, ShardpassError

PIPELINE = "shardpass-import,shardpass-check-replication"


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 any error, 2 bad usage."""
    return guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = argument_parser(
        "shardpass-check-replication",
        "Check that every output of a manual region (shard_map) is replicated over the mesh axes that its sharding "
        "leaves out: errors, with the way back to where devices first differ, on stderr. Takes SDY's regions and "
        "GSPMD's.",
    )
    parser.add_argument("module", metavar="MODULE", help="MLIR text or bytecode with StableHLO; - is stdin")
    args = parser.parse_args(argv)
    data, file = read_input(args.module)
    from shardpass.cli.check import run_and_collect
    from shardpass.cli.findings import summary

    found = run_and_collect(data, file, PIPELINE)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise ShardpassError(*errors)
    print(f"{file}: {summary(errors)}")
    return 0
