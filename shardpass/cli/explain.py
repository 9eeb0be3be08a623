"""shardpass-explain: each collective of the partitioned module, its bytes, its line, and its reason."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardpass.cli.common import MODULE_HELP, argument_parser, guarded, read_module, write_output

if TYPE_CHECKING:
    from shardpass.report.collectives import Explanation


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 bad input, 2 bad usage."""
    return guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = argument_parser(
        "shardpass-explain",
        "Partition a module and list its collectives: kind, axes, bytes that each device receives, "
        "the line of the program that needs it, and why. A partitioned module is taken as it is.",
    )
    parser.add_argument("module", nargs="?", metavar="MODULE", help=MODULE_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="FILE", help="write a page of HTML that needs no other file")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="FOLDER",
        help="quote lines of the program from files below FOLDER in the page too, not only below the working "
        "directory; may be given several times",
    )
    parser.add_argument(
        "--sort",
        choices=("program", "bytes"),
        default="program",
        help="sort the rows by place in the program (default) or by bytes",
    )
    args = parser.parse_args(argv)

    from shardpass.report import collectives as report

    found = explain(*read_module(parser, args.module), by_bytes=args.sort == "bytes")
    if args.html is not None:
        folders = [Path.cwd(), *map(Path, args.source)]
        write_output(args.html, report.to_html(found, folders))
    if args.json:
        print(report.to_json(found))
    elif args.html != "-":
        print(report.text(found, _width()))
    return 0


def _width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def explain(data: bytes, file: str, by_bytes: bool = False) -> Explanation:
    """The collectives of the module ``data``, partitioned first where it is not.

    Raises ShardpassError where it does not parse or cannot be partitioned.
    """
    from shardpass.ir.annotations import MESH, get_text, num_devices
    from shardpass.ir.collectives import collectives
    from shardpass.ir.context import parse_module
    from shardpass.pipeline.run import run_in_place
    from shardpass.report.collectives import Explanation

    module = parse_module(data, file)
    if not is_partitioned(module):
        run_in_place(module, "partition")
    uses = collectives(module)
    if by_bytes:
        uses.sort(key=lambda use: -use.bytes_received)
    mesh = get_text(module.operation, MESH) or ""
    return Explanation(file, num_devices(module) or 1, mesh, tuple(uses))


def is_partitioned(module: Any) -> bool:
    """Whether @main's arguments or results say what they are tiles of."""
    from shardpass.ir.annotations import TILED_SHARDING, Signature, main_of

    signature = Signature(main_of(module))
    return any(TILED_SHARDING in row for row in (*signature.arguments, *signature.results))
