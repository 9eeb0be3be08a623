"""shardpass-run: run a program on N devices, report its communication, and compare the results with one device."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from shardpass.cli.common import (
    MODULE_HELP,
    add_machine,
    add_timeout,
    argument_parser,
    guarded,
    interrupts_end_the_process,
    make_console,
    number_of,
    read_module,
)
from shardpass.cli.onnx_input import add_onnx_options, is_model, model_of, program_of
from shardpass.diagnostics import NOWHERE, Place, on_one_line, report
from shardpass.diagnostics import table_runtime as table
from shardpass.runtime.process_environment import COUNT
from shardpass.sharding.quoting import bare

if TYPE_CHECKING:
    from rich.console import Console

    from shardpass.ir.doors import Given
    from shardpass.report.explanation import Explanation
    from shardpass.report.watch import Watched
    from shardpass.runtime.compare import Difference
    from shardpass.runtime.run_report import Check, Trial

LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # of XLA
MOST_VIRTUAL = 4096  # each takes threads of XLA's: so many start in 8 s

DESCRIPTION = """Run MODULE on N devices with random inputs (floats in [-1,1], small integers). PIPELINE partitions
the module first; without it, MODULE must be partitioned. Prints the shardings of arguments and results and the
collectives. With --check, compares the results, including NaN and infinities, with those of the unpartitioned
program on one device (on StableHLO's interpreter if the program is small, else on XLA)."""

EXAMPLES = """examples:
  shardpass run examples/mlp_train_step.mlir partition --devices 8 --check
  shardpass run train.py:step partition --seed 1"""


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status: 0, 1 bad input or a failed check, 2 bad usage."""
    with interrupts_end_the_process():
        status = guarded(_run, argv)
    if COUNT in os.environ:
        from shardpass.runtime.processes import leave

        leave(status)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argument_parser("run", DESCRIPTION, EXAMPLES, pipeline=True)
    add = parser.add_argument
    add("module", nargs="?", metavar="MODULE", help=f"{MODULE_HELP}; or an ONNX model")
    add("pipeline", nargs="?", metavar="PIPELINE", help="the passes to run on MODULE first, such as partition")
    add_timeout(parser)
    add(
        "--devices",
        type=number_of("devices", 1, MOST_VIRTUAL),
        metavar="N",
        help="number of virtual CPU devices (default: as many as MODULE needs; several processes have their own)",
    )
    add(
        "--check",
        action="store_true",
        help="compare with the unpartitioned program; exit 1 if the results differ",
    )
    add_machine(parser)
    add("--interpreter", action="store_true", help="run on StableHLO's reference interpreter instead of XLA")
    add("--seed", type=int, default=0, metavar="S", help="the seed of the random inputs (default: 0)")
    add("--json", action="store_true", help="print JSON")
    add_onnx_options(parser)
    return parser


def _run(argv: Sequence[str]) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if args.seed < 0:
        parser.error("--seed must not be negative")
    if os.environ[LOG_LEVEL] == "1":  # what XLA says by default, before it is loaded: no warnings
        os.environ[LOG_LEVEL] = "2"
    data, file = read_module(parser, args.module, args.timeout)
    known, evaluator, first = None, None, None
    if is_model(data, file):
        model = model_of(parser, data, file, args)
        # a model's constants are computed by JAX, which has its devices from then on
        first = _make_devices(args.devices or max((one.num_devices for one in model.configurations[:1]), default=1))
        program = program_of(model)
        data, known = program.text.encode(), program.known()
        if args.check:
            from shardpass.onnx.stablehlo.evaluator import evaluator_of

            evaluator = evaluator_of(model, program)
    module, seen = _partitioned(data, file, args.pipeline, args.machine)
    if args.check and args.pipeline is None:
        raise table.CHECK_NEEDS_WHOLE.error(Place(file) if file else NOWHERE, file=file)
    first = _make_devices(args.devices or _needed(module)) if first is None else first

    from shardpass.report.build import explain_built
    from shardpass.runtime.run_report import try_out

    modelled = explain_built(module, file, seen, folders=())
    trial = try_out(
        module,
        original=data if args.check else None,
        seed=args.seed,
        interpreter=args.interpreter,
        known=known,
        witness=evaluator,
    )
    if args.json and first:
        times = {name: getattr(modelled, name) for name in ("seconds", "compute_seconds", "step_seconds", "bound_by")}
        times["machine"] = modelled.profile
        print(json.dumps(trial.as_dict() | times, indent=2))
    elif first:
        print_trial(trial, file, modelled)
    if first and trial.check is not None:
        for remark in (*trial.check.remarks, *trial.check.special.remarks):
            report(replace(remark, place=Place(file)))
    _fail(trial, file)
    return 0


def _partitioned(data: Given, file: str, pipeline: str | None, machine: str | None) -> tuple[Any, Watched]:
    """Partition the module and return it with the facts about its plan."""
    from shardpass.cost.chosen import machine_text
    from shardpass.ir.context import parse_module
    from shardpass.ir.machines import set_module_machine
    from shardpass.report.watch import Watched, watch
    from shardpass.runtime.partitioned_signature import read_signature

    module = parse_module(data, file)
    if machine is not None:
        set_module_machine(module, machine_text(machine))
    seen = Watched() if pipeline is None else watch(module, pipeline)
    read_signature(module)  # before JAX is started for nothing
    return module, seen


def _needed(module: Any) -> int:
    from shardpass.ir.annotations import NUM_PARTITIONS

    return int(module.operation.attributes[NUM_PARTITIONS].value)


def _make_devices(count: int) -> bool:
    """Make ``count`` devices, or use the devices of several processes; return whether this process reports."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    if COUNT in os.environ:
        from shardpass.runtime.processes import join

        if join():
            return bool(jax.process_index() == 0)
    jax.config.update("jax_num_cpu_devices", count)
    return True


def _fail(trial: Trial, file: str) -> None:
    """Raise ShardpassError if the check failed, or if XLA added collectives."""
    if trial.check is not None and trial.check.failed:
        worst = trial.check.failed[0] if trial.check.worst is None else trial.check.worst
        raise table.DIFFERS.error(
            Place(file),
            count=len(trial.check.failed),
            total=len(trial.check.differences),
            index=worst.index,
            difference=worst,
            seed=trial.seed,
        )
    if trial.check is not None and (mismatches := trial.check.special.mismatches):
        total = len(trial.check.differences)
        raise table.SPECIAL_DIFFERS.error(
            Place(file), count=len(mismatches), total=total, first=mismatches[0], seed=trial.seed
        )
    if trial.added:
        raise table.ADDED_BY_XLA.error(Place(file), count=len(trial.added), first=trial.added[0])


# --- for people


def print_trial(trial: Trial, file: str, modelled: Explanation) -> None:
    """Print the report: shardings, collectives, and the verdict."""
    # what is not a terminal has no width of its own
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
    console = make_console(width)
    axes = () if trial.mesh is None else trial.mesh.axes
    mesh = "no mesh" if trial.mesh is None else " ".join(["mesh", *(f"{bare(name)}={size}" for name, size in axes)])
    headline = f"{file}: {trial.signature.num_devices} devices, {mesh}, run on {trial.engine}"
    console.print(on_one_line(headline), markup=False)
    _print_shardings(console, trial)
    _print_collectives(console, trial)
    from shardpass.report.text import show_seconds, step_text

    if trial.collectives:
        console.print(
            f"{show_seconds(modelled.seconds)} on machine {modelled.profile}, one after the other", markup=False
        )
    if words := step_text(modelled):
        console.print(on_one_line(words), markup=False, soft_wrap=True)
    if trial.added is not None:
        what = f"adds {len(trial.added)}: {trial.added[0]}" if trial.added else "adds none"
        console.print(f"XLA's own partitioner {what}", markup=False)
    if trial.check is not None:
        _print_check(console, trial)


def _table(console: Console, title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        shown.add_column(column, justify="right" if column in ("bytes", "difference") else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(on_one_line(cell)) for cell in row))
    console.print(f"\n{title}", markup=False)
    console.print(shown)


def _print_shardings(console: Console, trial: Trial) -> None:
    from shardpass.runtime.run_report import boundary_as_dict

    boundaries = (*trial.signature.arguments, *trial.signature.results)
    facts = [boundary_as_dict(n, b, trial.mesh) for n, b in zip(trial.labels, boundaries, strict=True)]
    for title, part in (
        ("Arguments", facts[: len(trial.signature.arguments)]),
        ("Results", facts[len(trial.signature.arguments) :]),
    ):
        rows = [(f["name"], _short(f["type"]), f["axes"], _short(f["tile"])) for f in part]
        _table(console, title, ("name", "whole", "sharding", "tile"), rows)


def _short(type_: str) -> str:
    return type_.removeprefix("tensor<").removesuffix(">")


def _print_collectives(console: Console, trial: Trial) -> None:
    if not trial.collectives:
        console.print("Collectives: none", markup=False)
        return
    rows = [
        (
            use.kind,
            use.axes,
            _short(use.operand),
            f"{use.bytes_received:,}" + (f" ({use.times} x {use.bytes_each:,})" if use.times != 1 else ""),
            _source(use.place),
            use.reason.replace("stablehlo.", ""),
        )
        for use in trial.collectives
    ]
    title = f"Collectives: {len(rows)}, {trial.bytes_received:,} bytes received by a device"
    if unknown := sum(use.unknown_loops > 0 for use in trial.collectives):
        title += f"; {unknown} in loops of unknown length count once"
    _table(console, title, ("kind", "axes", "tile", "bytes", "source", "why"), rows)


def _source(place: Place) -> str:
    """Format a place without folders; --json contains the folders."""
    return "" if place == NOWHERE else str(replace(place, file=PurePosixPath(place.file).name))


def _print_check(console: Console, trial: Trial) -> None:
    assert trial.check is not None
    names = trial.labels[len(trial.signature.arguments) :]
    rows = [(name, *_measured(d)) for name, d in zip(names, trial.check.differences, strict=True)]
    _table(console, f"Difference from {trial.check.reference}", ("result", "difference", "allowed", ""), rows)
    worst = trial.check.worst
    _print_special(console, trial.check)
    verdict = "PASS" if trial.check.passed else "FAIL"
    console.print(f"{verdict}: greatest difference {'none' if worst is None else worst}", markup=False)


def _print_special(console: Console, check: Check) -> None:
    """Print how NaN, infinities and -0 compare; the reasons are remarks."""
    special = check.special
    if special.mismatches:
        verdict = f"differ: {special.mismatches[0]}"
    elif special.remarks:
        verdict = special.remarks[0].code
    elif special.compared:
        verdict = f"as in {check.special_reference or check.reference}"
    else:
        return
    console.print(on_one_line(f"NaN, infinities and -0: {verdict}"), markup=False)


def _measured(difference: Difference) -> tuple[str, str, str]:
    allowed = f"{difference.tolerance:g}" if difference.tolerance else "equal"
    return f"{difference.relative:.2g}", allowed, "ok" if difference.passed else "differs"
