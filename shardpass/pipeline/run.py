"""Run pipelines: MLIR's PassManager over passes of shardpass and MLIR, with uniform errors.

State of a run: the diagnostics so far (in the order of reports), and the name of the pass that was
last entered. A run ends in one of these ways:

1. every pass succeeded and nothing of severity error was reported: warnings and remarks are handed on to
   whoever collects them;
2. a pass of ours raised ShardpassError, or reported an error: the pipeline stops after that pass;
3. a pass of ours raised anything else: an internal error that names the pass;
4. MLIR's verifier refused the module that a pass of ours left, or a pass of MLIR failed: its diagnostics, with places.

The module is verified after each pass of ours that may have changed it. MLIR's manager would verify after every pass,
which takes longer than some of them; MLIR's own passes are given valid modules and leave valid ones.

In cases 2 to 4 one ShardpassError holds all findings, errors first.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from shardpass.diagnostics import Diagnostic, Severity, ShardpassError, collect, report
from shardpass.diagnostics.arguments import has, text_of, wrong_argument
from shardpass.diagnostics.internal import internal_error
from shardpass.diagnostics.table_driver import INVALID_IR, MLIR_FAILED, PASS_FAILED
from shardpass.ir import streamed
from shardpass.ir.context import UNNAMED, copy_module, is_valid, parse_module
from shardpass.ir.diagnostics import from_mlir
from shardpass.ir.doors import LargeFile
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.given import giving
from shardpass.pipeline.named import NAMED
from shardpass.pipeline.resolve import Step, resolve
from shardpass.program.table import forget, scope

if TYPE_CHECKING:
    from jax.stages import Lowered

__all__ = ["NAMED", "Instruments", "run_in_place", "run_pipeline"]


DEEPEST_CALLS = 50_000  # more than MLIR's parser lets regions nest
_WATCH: ContextVar[Callable[[str], None]] = ContextVar("watch", default=lambda name: None)


@dataclass(frozen=True, slots=True)
class Instruments:
    """The output of a run on stderr, apart from its result; fields are named like mlir-opt's flags."""

    print_before_all: bool = False
    print_after_all: bool = False
    print_after_failure: bool = False
    print_after_change: bool = False
    print_before: tuple[str, ...] = ()
    """passes by name"""
    print_after: tuple[str, ...] = ()
    tree_dir: str | None = None
    """a folder that gets a file for each printed module, in place of stderr"""
    elide_larger: int | None = None
    """the most elements of a constant that are printed"""
    generic: bool = False
    debug_info: bool = False
    timing: bool = False
    verify_each: bool = True

    @property
    def prints(self) -> bool:
        return self.print_before_all or self.prints_after

    @property
    def prints_after(self) -> bool:
        after = self.print_after_all or self.print_after_failure or self.print_after_change
        return after or (self.tree_dir is not None and not self.print_before_all)

    def printed(self, module: Any) -> str:
        """Format ``module`` with the printing flags."""
        return str(module.operation.get_asm(**self._form))

    def print_to(self, pieces: Any, module: Any) -> None:
        """Write ``module`` to ``pieces`` as ``printed`` formats it, without holding the whole text in memory."""
        streamed.print_to(pieces, module, **self._form)

    @property
    def _form(self) -> dict[str, Any]:
        return {
            "enable_debug_info": self.debug_info,
            "large_elements_limit": self.elide_larger,
            "print_generic_op_form": self.generic,
        }


def run_pipeline(
    text_or_module: str | bytes | ir.Module | Lowered, pipeline: str, *, filename: str = UNNAMED
) -> ir.Module:
    """Run ``pipeline`` and return the resulting ``ir.Module``; the input stays unchanged.

    Args:
        text_or_module: MLIR text, bytecode, or another format that ``shardpass.ir.doors`` reads; an ``ir.Module``; or
            the result of ``jax.jit(f).lower(...)``.
        pipeline: a named pipeline (``import``, ``propagate``, ``check``, ``partition``), a list of passes, or MLIR's
            textual form.
        filename: the name of the input in diagnostics. Warnings and remarks go to stderr, or to the innermost
            ``shardpass.diagnostics.collect()``.

    Raises:
        ShardpassError: with every finding, if the text, the pipeline or a pass fails; SP140, which is also a TypeError,
            for an argument of another type.
    """
    pipeline = text_of("run_pipeline", "pipeline", pipeline, "the name of a pipeline, or a list of passes as text")
    filename = text_of("run_pipeline", "filename", filename, "the name of the file that the text is from")
    filename = filename.encode("utf-8", "backslashreplace").decode()  # of a file whose name is no UTF-8
    given: Any = text_or_module
    if has(given, "compiler_ir"):
        given = given.compiler_ir("stablehlo")
    if isinstance(given, str | bytes | LargeFile):
        module = parse_module(given, filename)
    elif isinstance(given, ir.Module):
        module = copy_module(given)
    else:
        wanted = "MLIR text, bytecode, an ir.Module or what jax.jit(f).lower(...) returns"
        raise wrong_argument("run_pipeline", "text_or_module", text_or_module, wanted)
    run_in_place(module, pipeline)
    return module


def run_in_place(module: Any, pipeline: str, instruments: Instruments = Instruments()) -> None:
    """Run a pipeline as ``run_pipeline`` does, on ``module`` itself. A failed pass leaves it partly changed."""
    run_steps(module, resolve(pipeline, module.context), instruments)


def run_steps(module: Any, steps: tuple[Step, ...], instruments: Instruments = Instruments()) -> None:
    """Run as ``run_in_place``, with a resolved pipeline (``resolve``)."""
    compared = any(step.own is not None and step.own.compares for step in steps)
    with module.context, giving(copy_module(module) if compared else None):
        run = _Run(module, steps, instruments)
        manager = run.manager()
        with collect() as findings, _mlirs_findings(module.context), _no_search_for_cycles(), _deep_regions(), scope():
            failure = run.execute(manager)
    if failure is not None or any(d.severity is Severity.ERROR for d in findings):
        raise _everything(findings, failure) from (None if failure is None else failure.__cause__)
    for finding in findings:
        report(finding)


@contextmanager
def _deep_regions() -> Iterator[None]:
    """Raise Python's recursion limit, as functions over regions call themselves at each level of nesting.

    Calls among Python functions take no C stack (Python 3.11), so the interpreter's limit is only a number.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST_CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Pause Python's cycle collector: passes make few cycles, and each search visits all of JAX's objects."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()


@contextmanager
def watched(entered: Callable[[str], None]) -> Iterator[None]:
    """Call ``entered`` with the name of each shardpass pass that starts inside the block."""
    token = _WATCH.set(entered)
    try:
        yield
    finally:
        _WATCH.reset(token)


@dataclass(slots=True)
class _Run:
    module: Any
    steps: tuple[Step, ...]
    instruments: Instruments
    entered: int = -1  # the last step of ours that was entered
    failure: ShardpassError | None = field(default=None)

    def manager(self) -> PassManager:
        instruments = self.instruments
        manager = PassManager("builtin.module", self.module.context)
        manager.enable_verifier(False)
        if instruments.prints:
            # MLIR prints from its worker threads otherwise, and refuses to
            self.module.context.enable_multithreading(False)
            manager.enable_ir_printing(
                print_before_all=instruments.print_before_all,
                # MLIR's flag for failures restricts the printing after passes, it does not ask for any
                print_after_all=instruments.prints_after,
                print_after_failure=instruments.print_after_failure and not instruments.print_after_all,
                print_after_change=instruments.print_after_change,
                large_elements_limit=instruments.elide_larger,
                enable_debug_info=instruments.debug_info,
                print_generic_op_form=instruments.generic,
                tree_printing_dir_path=instruments.tree_dir,
            )
        if instruments.timing:
            manager.enable_timing()
        for index, step in enumerate(self.steps):
            names = step.pass_names()
            self._dump(manager, "Before", [name for name in instruments.print_before if name in names])
            if step.own is None:
                manager.add(step.text)
            else:
                own = step.own
                manager.add(self._callable(index, own), name=type(own).__name__, argument=own.name)
            self._dump(manager, "After", [name for name in instruments.print_after if name in names])
        return manager

    def _dump(self, manager: PassManager, when: str, names: list[str]) -> None:
        """Add a pass that prints the module on stderr for each of ``names``, with MLIR's headings."""
        for name in names:

            def show(operation: Any, handle: Any, name: str = name) -> None:
                header = f"// -----// IR Dump {when} {name} //----- //"
                print(f"{header}\n{self.instruments.printed(self.module)}", file=sys.stderr, flush=True)

            manager.add(show, name=f"Print{when}", argument=f"print-{when.lower()}-{name}")

    def execute(self, manager: PassManager) -> ShardpassError | None:
        """Run all steps; returns the failure, None on success (reported errors are not counted here)."""
        sys.stderr.flush()  # what MLIR prints goes around Python's buffer
        try:
            manager.run(self.module.operation)
        except ir.MLIRError as error:
            return self.failure or self._mlir_failed(error)
        return None

    def _callable(self, index: int, own: ModulePass) -> Callable[[Any, Any], None]:
        def run(operation: Any, handle: Any) -> None:
            before = self.steps[index - 1].own if index else None
            if before is None or not before.keeps_table:
                forget()
            self.entered = index
            _WATCH.get()(own.name)
            with collect() as findings:
                try:
                    with self.module.context, ir.Location.unknown():
                        changed = own.run(self.module)
                    sound = not any(d.severity is Severity.ERROR for d in findings)
                    if self.instruments.verify_each and changed is not False and sound:
                        self._verify(own)
                except ShardpassError as error:
                    self.failure = error
                except Exception as error:  # a bug, whatever its type, is reported as one
                    self.failure = internal_error(f"pass {own.name}", error)
            for finding in findings:
                report(finding)
            if self.failure is not None or any(d.severity is Severity.ERROR for d in findings):
                self.failure = self.failure or ShardpassError()
                handle.signal_pass_failure()

        return run

    def _verify(self, own: ModulePass) -> None:
        try:
            self.module.operation.verify()
        except ir.MLIRError as error:
            raise _invalid(f"pass {own}", error) from None

    def _mlir_failed(self, error: Any) -> ShardpassError:
        """Convert an error of MLIR that no pass of shardpass raised into a ShardpassError."""
        following = [s for s in self.steps[self.entered + 1 :] if s.own is None]
        if self.entered >= 0 and not is_valid(self.module):
            return _invalid(f"pass {self.steps[self.entered]}", error)
        name = ", ".join(map(str, following)) or str(self.steps[self.entered])
        if not error.error_diagnostics:
            return PASS_FAILED.error(name=name)
        rows = list(map(from_mlir, error.error_diagnostics))
        return ShardpassError(*(MLIR_FAILED.at(d.place, notes=d.notes, name=name, reason=d.message) for d in rows))


def _invalid(culprit: str, error: Any) -> ShardpassError:
    rows = list(map(from_mlir, error.error_diagnostics))
    return ShardpassError(*(INVALID_IR.at(d.place, notes=d.notes, name=culprit, reason=d.message) for d in rows))


def _everything(findings: list[Diagnostic], failure: ShardpassError | None) -> ShardpassError:
    """Collect all diagnostics in one error: the failure, then errors, then the rest, each in the order reported."""
    rows = list(failure.diagnostics) if failure is not None else []
    rows += [d for d in findings if d not in rows]
    rows.sort(key=lambda d: d.severity is not Severity.ERROR)  # stable
    if failure is not None and failure.diagnostics:
        # keep the type, which callers may catch
        kind = type(failure)
        return kind(*rows) if kind.__init__ is ShardpassError.__init__ else ShardpassError(*rows)
    return ShardpassError(*rows)


@contextmanager
def _mlirs_findings(context: Any) -> Iterator[None]:
    """Report warnings and remarks of MLIR's own passes (errors come with the exception)."""

    def handle(diagnostic: Any) -> bool:
        report(from_mlir(diagnostic))
        return True

    handler = context.attach_diagnostic_handler(handle)
    try:
        yield
    finally:
        handler.detach()
