"""shardpass-check: report problems of a program's shardings without changing the program.

Text: findings on stderr, the summary on stdout. JSON and SARIF: one document on stdout, with findings or without.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from shardpass.cli.color import show
from shardpass.cli.common import (
    MODULE_HELP,
    add_target,
    add_timeout,
    argument_parser,
    command,
    read_module,
    use_target,
    write_output,
)
from shardpass.cli.findings import FORMATS, summary, written
from shardpass.cli.onnx_input import add_onnx_options, is_model, model_of
from shardpass.cli.progress import progress
from shardpass.diagnostics import Diagnostic, Severity, ShardpassError, collect
from shardpass.diagnostics.printable import joined, on_one_line
from shardpass.ir.whole_file import Pieces

if TYPE_CHECKING:
    from shardpass.ir.doors import Given, LargeFile

NEXT = (
    "next: shardpass run --check compares a run with one device, "
    "shardpass prove --partitioner xla proves XLA's program, "
    "shardpass explain prices collectives by line"
)

EXAMPLES = """examples:
  shardpass check train.py:step
  shardpass check examples/mlp_train_step.mlir --format sarif
  shardpass check model.onnx --mesh data=4 --sharding 'x=P("data")'"""


def _parser() -> argparse.ArgumentParser:
    parser = argument_parser(
        "check",
        "Check every sharding of a program, and print problems with places and remedies. Takes MLIR modules "
        "and ONNX models.",
        EXAMPLES,
    )
    parser.add_argument("module", nargs="?", metavar="MODULE", help=f"{MODULE_HELP}; or an ONNX model")
    add_timeout(parser)
    add_target(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        help="report an error instead of a remark if shardings agree only after a redistribution",
    )
    parser.add_argument(
        "--perf",
        "--remarks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="modules: also report sizes that devices do not divide evenly, full gathers, repeated work and "
        "replicated arguments (default)",
    )
    parser.add_argument(
        "--partitioner",
        choices=("xla", "shardy"),
        help="modules: compile the program with XLA's partitioner or Shardy's passes, and report annotations whose "
        "edit reduces cost, each compiled too",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="text (default), json, or sarif 2.1.0")
    parser.add_argument(
        "--print-inferred", action="store_true", help="print the sharding of every value and its origin"
    )
    parser.add_argument(
        "-o", metavar="FILE", dest="output", help="write the program with every missing sharding; - is stdout"
    )
    parser.add_argument(
        "--extended",
        action="store_true",
        help="ONNX: apply the rules of a group to ops that the specification does not list but that evidently "
        "belong to the group",
    )
    parser.add_argument(
        "--stablehlo",
        metavar="FILE",
        help="ONNX: also write the program as StableHLO with the same shardings, for the other commands",
    )
    parser.add_argument(
        "--propagate",
        action="store_true",
        help="ONNX: infer the outputs of ops without rules by shardpass's own propagation",
    )
    add_onnx_options(parser)
    return parser


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 any error, 2 bad usage."""
    parser = _parser()
    args = parser.parse_args(argv)
    use_target(args)
    for_stdout = {
        "-o -": args.output == "-",
        "--stablehlo -": args.stablehlo == "-",
        "--print-inferred": args.print_inferred,
        f"--format {args.format}": args.format != "text",
    }
    wanted = [name for name, given in for_stdout.items() if given]
    if len(wanted) > 1:
        parser.error(f"{' and '.join(wanted)} both write to stdout; give the output a file")
    data, file = read_module(parser, args.module, args.timeout, args.target)
    diagnostics = _check_onnx(parser, data, file, args) if is_model(data, file) else _check_module(data, file, args)
    errors = any(d.severity is Severity.ERROR for d in diagnostics)
    if args.format != "text":
        print(written(args.format, file, diagnostics, "shardpass-check"))
        return int(errors)
    for diagnostic in diagnostics:
        show(diagnostic, sys.stderr)
    if not errors:
        print(
            f"{on_one_line(file)}: {summary(diagnostics)}",
            file=sys.stderr if "-" in (args.output, args.stablehlo) else sys.stdout,
        )
        if not is_model(data, file):
            print(NEXT, file=sys.stderr)
    return int(errors)


def _check_onnx(
    parser: argparse.ArgumentParser, data: bytes | LargeFile, file: str, args: argparse.Namespace
) -> Sequence[Diagnostic]:
    from shardpass import onnx
    from shardpass.onnx import check_model, completed_model
    from shardpass.onnx.check import summary_lines

    beyond = onnx.propagated if args.propagate else None
    try:
        model = model_of(parser, data, file, args)
        report = check_model(model, strict=args.strict, extended=args.extended, beyond=beyond)
    except ShardpassError as error:
        return error.diagnostics
    if args.print_inferred:
        print(joined(summary_lines(model, report)))
    if args.output is not None:
        write_output(args.output, completed_model(model, report))
    if args.stablehlo is not None and not any(d.severity is Severity.ERROR for d in report.findings):
        from shardpass.onnx.stablehlo.bridge import to_stablehlo

        write_output(args.stablehlo, to_stablehlo(model).text)
    return report.findings


def _check_module(data: Given, file: str, args: argparse.Namespace) -> Sequence[Diagnostic]:
    from shardpass.cli.check_module import check_module

    checked = check_module(data, file, strict=args.strict, perf=args.perf, inferred=args.print_inferred)
    edits: Sequence[Diagnostic] = ()
    if args.perf and (args.partitioner or args.target) and checked.module is not None:
        from shardpass.cli.check_module import edits_that_save

        with progress("looking for edits", passes=False):
            edits = edits_that_save(data, file, args.partitioner or "xla", args.target)
    if args.print_inferred:
        print(joined(checked.inferred))
    if args.output is not None and checked.module is not None:
        write_output(args.output, partial(_print_to, module=checked.module))
    return (*checked.findings, *edits)


def _print_to(pieces: Pieces, module: Any) -> None:
    """Write the module with every sharding, in pieces."""
    from shardpass.ir import streamed

    streamed.print_to(pieces, module, enable_debug_info=True)


def run_and_collect(data: Given, file: str, pipeline: str) -> list[Diagnostic]:
    """Run ``pipeline`` on the module ``data`` and return every diagnostic, errors first."""
    from shardpass.pipeline.run import run_pipeline

    with collect() as diagnostics:
        try:
            run_pipeline(data, pipeline, filename=file)
        except ShardpassError as error:
            return [*error.diagnostics, *diagnostics]
    return diagnostics
