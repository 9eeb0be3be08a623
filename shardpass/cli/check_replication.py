"""shardpass-check-replication: outputs of manual regions that claim to be replicated and may not be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardpass.cli.common import MODULE_HELP, add_timeout, argument_parser, command, read_module
from shardpass.cli.findings import FORMATS, summary, written
from shardpass.diagnostics import Severity, collect
from shardpass.diagnostics.printable import joined, on_one_line
from shardpass.diagnostics.table_passes import NOT_REPLICATED

if TYPE_CHECKING:
    from shardpass.ir.doors import Given

PIPELINE = "shardpass-import,shardpass-check-replication"

EXAMPLES = """examples:
  shardpass check-replication examples/shard_map_matmul.mlir --print-varying"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 any error, 2 bad usage."""
    parser = argument_parser(
        "check-replication",
        "Check that every output of a manual region (shard_map) is replicated over the mesh axes that its sharding "
        "leaves out: errors, with the way back to where devices first differ, on stderr. Takes SDY's regions and "
        "GSPMD's.",
        EXAMPLES,
    )
    parser.add_argument("module", nargs="?", metavar="MODULE", help=MODULE_HELP)
    add_timeout(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="text (default), json, or sarif 2.1.0")
    parser.add_argument(
        "--print-varying", action="store_true", help="also print over which axes of the mesh each value may vary"
    )
    args = parser.parse_args(argv)
    if args.print_varying and args.format != "text":
        parser.error(f"--print-varying and --format {args.format} both write to stdout")
    data, file = read_module(parser, args.module, args.timeout)
    from shardpass.cli.check import run_and_collect

    errors = [d for d in run_and_collect(data, file, PIPELINE) if d.severity is Severity.ERROR]
    if args.print_varying and all(d.code == NOT_REPLICATED.id for d in errors):
        print(joined(_varying(data, file)))
    if args.format != "text":
        print(written(args.format, file, errors, "shardpass-check-replication"))
    elif errors:
        print("\n".join(map(str, errors)), file=sys.stderr)
    else:
        print(f"{on_one_line(file)}: {summary(errors)}")
    return int(bool(errors))


def _varying(data: Given, file: str) -> list[str]:
    from shardpass.ir.annotations import main_of, mesh_of, num_devices
    from shardpass.pipeline.run import run_pipeline
    from shardpass.replication.check import varying

    with collect():  # diagnostics of the import are those that the check has printed
        module = run_pipeline(data, "shardpass-import", filename=file)
    with module.context:
        devices, mesh = num_devices(module), mesh_of(module)
        assert devices is not None  # import writes both
        assert mesh is not None
        return list(varying(main_of(module), devices, mesh))
