"""shardpass-check: says what is wrong with a module's shardings, and changes nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from shardpass.cli.common import MODULE_HELP, argument_parser, guarded, read_module
from shardpass.diagnostics import Diagnostic, Place, Severity, ShardpassError, collect, printable
from shardpass.diagnostics.table_driver import ONNX_MODEL


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 any error, 2 bad usage."""
    return guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = argument_parser(
        "shardpass-check",
        "Check every sharding of a module: print what is wrong, with places and remedies, on stderr.",
    )
    parser.add_argument("module", nargs="?", metavar="MODULE", help=MODULE_HELP)
    args = parser.parse_args(argv)
    data, file = read_module(parser, args.module)
    if file.endswith(".onnx"):
        raise ONNX_MODEL.error(Place(file))
    found = check(data, file)
    if any(d.severity is Severity.ERROR for d in found):
        raise ShardpassError(*found)
    for diagnostic in found:
        print(diagnostic, file=sys.stderr)
    print(f"{printable(file)}: {summary(found)}")
    return 0


def check(data: bytes, file: str) -> list[Diagnostic]:
    """Every finding of the ``check`` pipeline on the module ``data``, errors first."""
    from shardpass.pipeline.run import run_pipeline

    with collect() as found:
        try:
            run_pipeline(data, "check", filename=file)
        except ShardpassError as error:
            return [*error.diagnostics, *found]
    return found


def summary(found: Sequence[Diagnostic]) -> str:
    """How many findings of each kind, in words."""
    counts = Counter(d.severity for d in found)
    if not counts:
        return "no problem found"
    return ", ".join(f"{n} {severity}{'' if n == 1 else 's'}" for severity in Severity if (n := counts[severity]))
