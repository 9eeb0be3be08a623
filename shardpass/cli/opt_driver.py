"""Run shardpass-opt on parsed arguments: split the input, run the pipeline, write the output."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from shardpass.cli.common import module_at, write_output
from shardpass.diagnostics import Diagnostic, Place, ShardpassError, collect, report
from shardpass.diagnostics.table_driver import NO_REPRODUCER
from shardpass.ir.context import decode, make_context, parse_module
from shardpass.ir.doors import PIECE, Format, Given, LargeFile, format_of
from shardpass.ir.whole_file import Pieces, Writer
from shardpass.ir.written import Form, written
from shardpass.pipeline.resolve import resolve
from shardpass.pipeline.run import Instruments, run_in_place

_CONFIGURATION = re.compile(r"^// configuration: --pass-pipeline='([^'\n]*)'$", re.MULTILINE)
_MARKER = re.compile(r"^// -----[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """One module of the input: its text (or bytecode), and its first line in the file."""

    text: Given
    first_line: int


def split_input(text: str) -> Iterator[Part]:
    """Split ``text`` at lines that contain only ``// -----``; yields the parts."""
    start = 0
    for marker in _MARKER.finditer(text):
        yield Part(text[start : marker.start()], text.count("\n", 0, start) + 1)
        start = marker.end()
    yield Part(text[start:], text.count("\n", 0, start) + 1)


@dataclass(frozen=True, slots=True)
class Driver:
    args: argparse.Namespace

    def pipeline_of(self, text: Given) -> str | None:
        """Return the pipeline of the command line, or with --run-reproducer of the file."""
        if not self.args.run_reproducer:
            return self.pipeline
        match = _CONFIGURATION.search(text) if isinstance(text, str) else None
        if match is None:
            raise NO_REPRODUCER.error(Place(self.args.module))
        return match[1]

    @property
    def pipeline(self) -> str | None:
        chosen: str | None = self.args.pipeline
        return chosen if self.args.pass_pipeline is None else self.args.pass_pipeline

    def run(self) -> int:
        whole, file = self._input()
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

    def _input(self) -> tuple[Given, str]:
        data, file = module_at(self.args.module, self.args.timeout)
        looked_into = self.args.split_input_file or self.args.verify_diagnostics or self.args.run_reproducer
        if isinstance(data, LargeFile):
            if not (looked_into and data.format is Format.TEXT):
                return data, file
            data = data.read()
        return (decode(data, file) if format_of(data) in (Format.TEXT, Format.EMPTY) else data), file

    def _check_pipeline(self, pipeline: str) -> None:
        """Check the pipeline before any part: an invalid pipeline is a single error that no comment can expect."""
        context = make_context()
        resolve(pipeline, context)
        for name in (*self.args.mlir_print_ir_before, *self.args.mlir_print_ir_after):
            resolve(name, context)

    def _part(self, part: Part, file: str) -> str | bytes | Writer | None:
        """Transform one part of the input; None after an error, whose diagnostics are already printed."""
        if not (self.args.verify_diagnostics and isinstance(part.text, str)):
            try:
                return self._transform(part, file)
            except ShardpassError as error:
                sys.stdout.flush()
                print(error, file=sys.stderr, flush=True)
                return None
        return self._verified(part, part.text, file)

    def _verified(self, part: Part, text: str, file: str) -> str | bytes | Writer | None:
        from shardpass.cli.expectations import compare, read_expectations

        expected = read_expectations(text, file, part.first_line)
        errors: tuple[Diagnostic, ...] = ()
        result: str | bytes | Writer = ""
        with collect() as collected:
            try:
                result = self._transform(part, file)
            except ShardpassError as error:
                errors = error.diagnostics
        complaints = compare(expected, [*errors, *collected], file)
        for complaint in complaints:
            report(complaint)
        return None if complaints else result

    def _transform(self, part: Part, file: str) -> str | bytes | Writer:
        if self.args.split_input_file and isinstance(part.text, str) and not part.text.strip():
            return ""  # the text before the first marker, or after the last, may be empty
        context = make_context()
        context.allow_unregistered_dialects = self.args.allow_unregistered_dialect
        module = parse_module(part.text, file, context, first_line=part.first_line)
        pipeline = self.pipeline_of(part.text)
        if pipeline is not None:
            self._run(module, pipeline)
        return self._print(module, large=isinstance(part.text, LargeFile))

    def _run(self, module: Any, pipeline: str) -> None:
        file = self.args.mlir_pass_pipeline_crash_reproducer
        before = "" if file is None else self._text(module)
        steps = resolve(pipeline, module.context)
        spelled = f"builtin.module({','.join(map(str, steps))})"
        if self.args.dump_pass_pipeline:
            print(f"Pass Manager with {len(steps)} passes:\n{spelled}", file=sys.stderr, flush=True)
        try:
            run_in_place(module, pipeline, self._instruments())
        except ShardpassError:
            if file is not None:
                write_output(file, f"// configuration: --pass-pipeline='{spelled}'\n{before}")
                print(f"note: shardpass-opt {file} --run-reproducer does it again", file=sys.stderr, flush=True)
            raise

    def _instruments(self) -> Instruments:
        return Instruments(
            print_before_all=self.args.mlir_print_ir_before_all,
            print_after_all=self.args.mlir_print_ir_after_all,
            print_after_failure=self.args.mlir_print_ir_after_failure,
            print_after_change=self.args.mlir_print_ir_after_change,
            print_before=tuple(self.args.mlir_print_ir_before),
            print_after=tuple(self.args.mlir_print_ir_after),
            tree_dir=self.args.mlir_print_ir_tree_dir,
            elide_larger=self.args.mlir_elide_elementsattrs_if_larger,
            generic=self.args.mlir_print_op_generic,
            debug_info=self.args.mlir_print_debuginfo,
            timing=self.args.mlir_timing,
            verify_each=self.args.verify_each,
        )

    def _print(self, module: Any, large: bool) -> str | bytes | Writer:
        form, version = self.args.emit
        if form == "bytecode":
            return lambda pieces: module.operation.write_bytecode(pieces)
        if form != "stablehlo":
            return partial(_copy, made=written(module, Form[form], version))
        if large:
            return lambda pieces: self._print_to(pieces, module)
        return self._instruments().printed(module).rstrip("\n") + "\n"

    def _print_to(self, pieces: Pieces, module: Any) -> None:
        self._instruments().print_to(pieces, module)
        if pieces.last != b"\n":
            pieces.write(b"\n")

    def _text(self, module: Any) -> str:
        """Print all of ``module``, locations and large constants too."""
        text: str = module.operation.get_asm(enable_debug_info=True)
        return text.rstrip("\n") + "\n"

    def _write(self, results: Sequence[str | bytes | Writer]) -> None:
        texts = [r for r in results if isinstance(r, str)]
        if len(texts) == len(results):
            write_output(self.args.output, "\n// -----\n".join(t for t in texts if t))
        else:  # one module: no other form has several
            write_output(self.args.output, results[0])


def _copy(pieces: Pieces, made: BinaryIO) -> None:
    with made:
        while piece := made.read(PIECE):
            pieces.write(piece)
