"""shardpass-opt: runs passes on a module and prints it, with the habits of mlir-opt."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardpass.cli.common import argument_parser, guarded, read_input, write_output
from shardpass.diagnostics import Diagnostic, ShardpassError, collect, report

if TYPE_CHECKING:
    from shardpass.pipeline.run import Instruments

_MARKER = re.compile(r"^// -----[ \t]*\r?$", re.MULTILINE)
_SINGLE_DASH = re.compile(r"-[a-z][a-z]+(-[a-z]+)*(=.*)?", re.DOTALL)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 bad input, 2 bad usage."""
    return guarded(_run, argv)


def _parser() -> argparse.ArgumentParser:
    parser = argument_parser("shardpass-opt", "Run passes on a module and print the result.", pipeline=True)
    add = parser.add_argument
    add("module", nargs="?", default="-", metavar="MODULE", help="MLIR text or bytecode; - is stdin")
    add("pipeline", nargs="?", metavar="PIPELINE", help="the passes to run; without it, parse and print the module")
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
    add("--mlir-timing", action="store_true", help="print the time that each pass took")
    add("--mlir-print-debuginfo", action="store_true", help="print the location of each op")
    add("--emit-bytecode", action="store_true", help="write MLIR bytecode")
    return parser


def _run(argv: Sequence[str]) -> int:
    parser = _parser()
    # mlir-opt takes its long flags with one dash too
    args = parser.parse_intermixed_args(["-" + a if _SINGLE_DASH.fullmatch(a) else a for a in argv])
    if args.list_passes:
        from shardpass.cli.list_passes import list_passes

        print(list_passes())
        return 0
    if args.pipeline is not None and args.pass_pipeline is not None:
        parser.error("the pipeline is given twice: as PIPELINE and with --pass-pipeline")
    if args.emit_bytecode and args.output == "-" and sys.stdout.isatty():
        parser.error("bytecode would garble the terminal: give -o FILE")
    if args.emit_bytecode and args.split_input_file:
        parser.error("--emit-bytecode writes one module, --split-input-file makes several")
    return _Driver(args).run()


@dataclass(frozen=True, slots=True)
class Part:
    """One module of the input: its text (or bytecode), and the line of the file at which it starts."""

    text: str | bytes
    first_line: int


def split_input(text: str) -> Iterator[Part]:
    """The parts of ``text`` between the lines that hold nothing but ``// -----``."""
    start = 0
    for marker in _MARKER.finditer(text):
        yield Part(text[start : marker.start()], text.count("\n", 0, start) + 1)
        start = marker.end()
    yield Part(text[start:], text.count("\n", 0, start) + 1)


@dataclass(frozen=True, slots=True)
class _Driver:
    args: argparse.Namespace

    @property
    def pipeline(self) -> str | None:
        chosen: str | None = self.args.pipeline
        return chosen if self.args.pass_pipeline is None else self.args.pass_pipeline

    def run(self) -> int:
        from shardpass.ir.context import decode, is_bytecode

        data, file = read_input(self.args.module)
        whole: str | bytes = data if is_bytecode(data) else decode(data, file)
        parts = [Part(whole, 1)]
        if isinstance(whole, str) and self.args.split_input_file:
            parts = list(split_input(whole))
        if self.pipeline is not None:
            self._check_pipeline(self.pipeline)
        results = [self._part(part, file) for part in parts]
        done = [r for r in results if r is not None]
        failed = len(done) < len(results)
        if self.args.output == "-" or not failed:
            self._write(done)
        return 1 if failed else 0

    def _check_pipeline(self, pipeline: str) -> None:
        """A wrong pipeline is one error, not one for each part, and no comment can expect it."""
        from shardpass.ir.context import make_context
        from shardpass.pipeline.resolve import resolve

        resolve(pipeline, make_context())

    def _part(self, part: Part, file: str) -> str | bytes | None:
        """What the part becomes; None where it failed (its diagnostics are printed then)."""
        if not (self.args.verify_diagnostics and isinstance(part.text, str)):
            try:
                return self._transform(part, file)
            except ShardpassError as error:
                sys.stdout.flush()
                print(error, file=sys.stderr, flush=True)
                return None
        return self._verified(part, part.text, file)

    def _verified(self, part: Part, text: str, file: str) -> str | bytes | None:
        from shardpass.cli.expectations import compare, read_expectations

        expected = read_expectations(text, file, part.first_line)
        errors: tuple[Diagnostic, ...] = ()
        result: str | bytes = ""
        with collect() as found:
            try:
                result = self._transform(part, file)
            except ShardpassError as error:
                errors = error.diagnostics
        complaints = compare(expected, [*errors, *found], file)
        for complaint in complaints:
            report(complaint)
        return None if complaints else result

    def _transform(self, part: Part, file: str) -> str | bytes:
        from shardpass.ir.context import parse_module
        from shardpass.pipeline.run import run_in_place

        module = parse_module(part.text, file, first_line=part.first_line)
        if self.pipeline is not None:
            run_in_place(module, self.pipeline, self._instruments())
        return self._print(module)

    def _instruments(self) -> Instruments:
        from shardpass.pipeline.run import Instruments

        return Instruments(
            print_before_all=self.args.mlir_print_ir_before_all,
            print_after_all=self.args.mlir_print_ir_after_all,
            print_after_failure=self.args.mlir_print_ir_after_failure,
            debug_info=self.args.mlir_print_debuginfo,
            timing=self.args.mlir_timing,
        )

    def _print(self, module: Any) -> str | bytes:
        if self.args.emit_bytecode:
            buffer = io.BytesIO()
            module.operation.write_bytecode(buffer)
            return buffer.getvalue()
        text: str = module.operation.get_asm(enable_debug_info=self.args.mlir_print_debuginfo)
        return text.rstrip("\n") + "\n"

    def _write(self, results: Sequence[str | bytes]) -> None:
        texts = [r for r in results if isinstance(r, str)]
        if len(texts) == len(results):
            write_output(self.args.output, "\n// -----\n".join(t for t in texts if t))
        else:
            write_output(self.args.output, b"".join(r for r in results if isinstance(r, bytes)))
