"""shardpass-prove: prove that a program of one device computes its part of a whole program."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from shardpass.cli.color import show
from shardpass.cli.common import MODULE_HELP, add_target, add_timeout, argument_parser, command, module_at, use_target
from shardpass.cli.findings import written
from shardpass.cli.progress import progress

PROVED, REFUTED, UNKNOWN = 0, 1, 3

EXAMPLES = """examples:
  shardpass prove train.py:step --partitioner xla
  shardpass prove whole.mlir local.mlir"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0 proved, 1 refuted or bad input, 2 bad usage, 3 unknown."""
    parser = argument_parser(
        "prove",
        "Prove that a partitioned program computes a whole program: for every device, each result is followed back to "
        "the whole program's values. Exit status 0: proved; 1: refuted; 3: unknown, with the op where the proof ends.",
        EXAMPLES,
    )
    parser.add_argument("whole", metavar="WHOLE", help=f"the whole program: {MODULE_HELP}")
    parser.add_argument(
        "local",
        metavar="LOCAL",
        nargs="?",
        help="the program of one device, as the pipeline partition writes it, or XLA's HLO after SPMD partitioning",
    )
    parser.add_argument("--partitioner", choices=("xla",), help="instead of LOCAL: prove XLA's program for WHOLE")
    parser.add_argument(
        "--format", choices=("text", "json", "sarif"), default="text", help="text (default), json, or sarif 2.1.0"
    )
    parser.add_argument(
        "--no-run",
        action="store_true",
        help="do not run the programs: without a proof the verdict is unknown, never refuted",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="use no laws that floats keep only in part, such as x + 0 = x; without this option, a proof lists the "
        "laws that it uses",
    )
    add_timeout(parser)
    add_target(parser)
    args = parser.parse_args(argv)
    use_target(args)
    if args.target is not None and args.local is None:
        args.partitioner = "xla"
    if (args.local is None) == (args.partitioner is None):
        parser.error("give either LOCAL or --partitioner xla")
    from shardpass.ir.context import parse_module
    from shardpass.proving import prove
    from shardpass.proving.xla import from_hlo, is_hlo, partitioned_by_xla

    whole = parse_module(*module_at(args.whole, args.timeout, args.target))
    if args.local is None:
        with progress("compiling by xla"):
            local = partitioned_by_xla(whole, args.target)
    else:
        given, *more = module_at(args.local, args.timeout)
        text = given.decode(errors="replace") if isinstance(given, bytes) else ""
        local = from_hlo(text, whole) if is_hlo(text) else parse_module(given, *more)
    with progress("proving", passes=False):
        verdict = prove(whole, local, refute=not args.no_run, strict=args.strict)
    if args.format == "json":
        print(json.dumps(verdict.json(), indent=1))
    elif args.format == "sarif":
        finding = verdict.diagnostic()
        print(written("sarif", args.local or args.whole, () if finding is None else (finding,), "shardpass-prove"))
    else:
        show(verdict, sys.stdout if verdict.proved else sys.stderr)
    return PROVED if verdict.proved else REFUTED if verdict.refuted else UNKNOWN
