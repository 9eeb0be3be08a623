"""shardpass-opt: run passes on a module and print the result, compatible with mlir-opt."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from shardpass.cli.common import MODULE_HELP, add_timeout, argument_parser, command, number_of

_SINGLE_DASH = re.compile(r"-[a-z][a-z]+(-[a-z]+)*(=.*)?", re.DOTALL)

EXAMPLES = """examples:
  shardpass opt examples/mlp_train_step.mlir partition
  shardpass opt examples/mlp_train_step.mlir shardpass-import,cse -o imported.mlir
  shardpass opt --list-passes"""


def _parser() -> argparse.ArgumentParser:
    parser = argument_parser("opt", "Run passes on a module and print the result.", EXAMPLES, pipeline=True)
    add = parser.add_argument
    add("module", nargs="?", default="-", metavar="MODULE", help=MODULE_HELP)
    add("pipeline", nargs="?", metavar="PIPELINE", help="the passes to run; without it, parse and print the module")
    add_timeout(parser)
    add(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="the file to write if all passes succeed; - is stdout (default)",
    )
    add("--pass-pipeline", metavar="PIPELINE", help="another way to give PIPELINE")
    add("--list-passes", action="store_true", help="list the passes and the named pipelines, and exit")
    add("--split-input-file", action="store_true", help="read a module from each part between lines '// -----'")
    add("--verify-diagnostics", action="store_true", help="compare diagnostics with expected-* comments")
    add("--mlir-print-ir-before-all", action="store_true", help="print the module before each pass")
    add("--mlir-print-ir-after-all", action="store_true", help="print the module after each pass")
    add("--mlir-print-ir-after-failure", action="store_true", help="print the module after a failed pass")
    add("--mlir-print-ir-before", action="append", default=[], metavar="PASS", help="print the module before PASS")
    add("--mlir-print-ir-after", action="append", default=[], metavar="PASS", help="print the module after PASS")
    add("--mlir-print-ir-after-change", action="store_true", help="print the module after each pass that changed it")
    add("--mlir-print-ir-tree-dir", metavar="FOLDER", help="print modules into files below FOLDER, one for each pass")
    add("--mlir-print-op-generic", action="store_true", help="print ops in MLIR's generic form")
    add(
        "--mlir-elide-elementsattrs-if-larger",
        type=number_of("elements", 0, 10**18),
        metavar="N",
        help="print only constants of at most N elements",
    )
    add("--mlir-pass-pipeline-crash-reproducer", metavar="FILE", help="write the module and pipeline if a pass fails")
    add("--run-reproducer", action="store_true", help="take the pipeline that such a FILE names")
    add("--dump-pass-pipeline", action="store_true", help="print the pipeline with all its passes on stderr")
    add("--verify-each", type=_truth, nargs="?", const=True, default=True, metavar="BOOL", help="default: true")
    add("--allow-unregistered-dialect", action="store_true", help="take ops of dialects that jaxlib does not have")
    add("--show-dialects", action="store_true", help="list the dialects that jaxlib has, and exit")
    add("--mlir-timing", action="store_true", help="print the time that each pass took")
    add("--mlir-print-debuginfo", action="store_true", help="print the location of each op")
    add(
        "--emit-bytecode",
        action="store_const",
        dest="emit",
        const=("bytecode", ""),
        default=argparse.SUPPRESS,
        help="as --emit bytecode",
    )
    add(
        "--emit",
        type=_form,
        default=("stablehlo", ""),
        metavar="FORM",
        help="what to write: stablehlo, which is MLIR text (default); bytecode; vhlo, a portable StableHLO artefact, "
        "of an older version as in vhlo=1.8.0; or hlo, which is HLO text",
    )
    return parser


def _form(text: str) -> tuple[str, str]:
    """Return the format and version requested by --emit."""
    form = re.fullmatch(r"(stablehlo|bytecode|vhlo|hlo)|vhlo=([0-9]{1,9}(?:\.[0-9]{1,9}){2})", text)
    if form is None:
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise argparse.ArgumentTypeError(f"{shown!r} is none of stablehlo, bytecode, vhlo, vhlo=1.8.0, hlo")
    return form[1] or "vhlo", form[2] or ""


def _truth(text: str) -> bool:
    """Read a flag's truth value in the spellings of LLVM."""
    if text.lower() not in ("true", "1", "false", "0"):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is neither true nor false")
    return text.lower() in ("true", "1")


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 bad input, 2 bad usage."""
    parser = _parser()
    # mlir-opt takes its long flags with one dash too
    args = parser.parse_intermixed_args(["-" + a if _SINGLE_DASH.fullmatch(a) else a for a in argv])
    if args.list_passes:
        from shardpass.cli.list_passes import list_passes

        print(list_passes())
        return 0
    if args.show_dialects:
        from shardpass.ir.context import dialects

        print("Available Dialects: " + ", ".join(dialects()))
        return 0
    if args.run_reproducer and (args.pipeline is not None or args.pass_pipeline is not None):
        parser.error("--run-reproducer takes the pipeline from the file")
    if args.pipeline is not None and args.pass_pipeline is not None:
        parser.error("the pipeline is given twice: as PIPELINE and with --pass-pipeline")
    form, _ = args.emit
    if form in ("bytecode", "vhlo") and args.output == "-" and sys.stdout.isatty():
        parser.error("bytecode would garble the terminal: give -o FILE")
    if form != "stablehlo" and args.split_input_file:
        parser.error(f"--emit {form} writes one module, --split-input-file makes several")
    from shardpass.cli.opt_driver import Driver

    return Driver(args).run()
