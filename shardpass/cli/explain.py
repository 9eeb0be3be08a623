"""shardpass-explain: report the collectives of a program with bytes, lines and reasons, and the memory of devices."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardpass.advise.find.budget import LEAST
from shardpass.cli.color import show
from shardpass.cli.common import (
    MODULE_HELP,
    add_program,
    argument_parser,
    command,
    module_at,
    number_of,
    read_axes,
    read_module,
    seconds,
    use_program,
    write_output,
)
from shardpass.cli.onnx_input import add_onnx_options, as_module, is_model
from shardpass.cli.progress import Pause, progress
from shardpass.cli.script import is_script, program_with, script_folder

if TYPE_CHECKING:
    from shardpass.advise.find.findings import Wanted
    from shardpass.ir.doors import Given
    from shardpass.report.explanation import Explanation
    from shardpass.report.findings import Finding
    from shardpass.sharding import Mesh
    from shardpass.targets.target import Target

DESCRIPTION = """Partition a module and list its collectives by the line of the program that needs them: kind, axes,
bytes that each device receives, the shardings before and after, and the reason; and the memory of a device. Modules
that are already partitioned, and HLO compiled by XLA for any backend, are explained unchanged. Lower with
as_text(debug_info=True) to keep the paths of arguments and the lines of ops."""

EXAMPLES = """examples:
  shardpass explain train.py:step --partitioner xla       XLA's program, by the lines of train.py
  shardpass explain train.py:step --partitioner xla --patch fixes.diff
  shardpass explain train.py:step --html report.html      the same as a page
  shardpass explain train.py:step --target v5p:4x4x8      as compiled for 128 TPUs that are not here
  shardpass explain SP240                                 the meaning of a diagnostic"""


def _parser() -> argparse.ArgumentParser:
    parser = argument_parser("explain", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add(
        "module",
        nargs="?",
        metavar="MODULE",
        help=f"{MODULE_HELP}; or an ONNX model; or a code such as SP240, to read what it means",
    )
    add("--json", action="store_true", help="print JSON: --format json")
    add(
        "--format",
        choices=("text", "json", "sarif", "markdown"),
        help="text (default); json (schema: docs/report.schema.json); sarif, the findings for editors and code "
        "review; or markdown, for the summary of a CI job",
    )
    add(
        "--emit",
        choices=("perfetto", "model-explorer", "model-explorer-data"),
        help="print the schedule for another tool: a trace for ui.perfetto.dev; a graph for Model Explorer, and the "
        "seconds of its nodes",
    )
    add("-o", "--output", metavar="FILE", help="write the output to FILE")
    add(
        "--fail-on",
        type=_size,
        metavar="BYTES",
        help="exit with status 1 if a finding saves at least BYTES (64MiB), or a device receives that much for one "
        "line",
    )
    add("--sarif", metavar="FILE", help="also write the findings as SARIF to FILE")
    add("--patch", metavar="FILE", help="write the diffs of all findings to FILE, for git apply")
    add("--html", metavar="FILE", help="write a self-contained HTML page")
    add(
        "--source",
        action="append",
        default=[],
        metavar="FOLDER",
        help="also quote source lines from files below FOLDER; by default only files below the working directory "
        "are quoted. Repeatable",
    )
    add(
        "--group-by",
        choices=("line", "axis", "kind", "array"),
        default="line",
        help="group rows by line of the program (default), mesh axis, kind of collective, or array",
    )
    add(
        "--sort",
        choices=("bytes", "time", "program"),
        default="bytes",
        help="sort groups by bytes (default) or time, descending, or by the order of the program",
    )
    add(
        "--top",
        type=number_of("groups", 0, 10**9),
        metavar="N",
        help="number of groups to show; 0 for all (default: as many as fit on a screen)",
    )
    add(
        "--trips",
        type=number_of("trips", 0, 10**9),
        metavar="N",
        help="assume N iterations for loops with an unknown trip count",
    )
    add("--diff", metavar="MODULE2", help="compare with MODULE2, collective by collective")
    add(
        "--profile-dir",
        metavar="FOLDER",
        help="folder written by jax.profiler.trace while the program ran: show measured beside modeled times; only "
        "for HLO",
    )
    add(
        "--seconds",
        type=seconds,
        metavar="N",
        help="limit the search for edits of XLA's program to N processor seconds, and to 3 N seconds by the clock "
        f"(default: the time of three compiles, but at least {LEAST:g} processor seconds). Ctrl-C also ends the "
        "search and prints the findings so far",
    )
    add("--hints", action="store_true", help="look for annotations that reduce cost; each is tried by planning again")
    add(
        "--memory-limit",
        metavar="BYTES",
        help="memory of a device, as in 16GiB; the report says how much does not fit (default: the machine's "
        "memory; none: no limit)",
    )
    add(
        "--effort",
        type=int,
        choices=(0, 1, 2),
        default=1,
        help="effort of shardpass-propagate: 0 only propagates, 1 searches (default), 2 searches longer",
    )
    add(
        "--constraints",
        choices=("exact", "free"),
        default="exact",
        help="exact (default): results of sharding constraints have that sharding; free: ignore constraints, to "
        "see the cost without them",
    )
    add(
        "--matmul-loops",
        default="off",
        metavar="WHICH",
        help="overlap products with a collective beside them: off (default); all; memory, if that needs less "
        "memory; or the name of a machine, if it saves time there",
    )
    add_program(parser)
    add_onnx_options(parser)
    return parser


def _size(text: str) -> int:
    from shardpass.diagnostics import ShardpassError
    from shardpass.redistribute.terms.limit import read_limit

    try:
        limit = read_limit(text)
    except ShardpassError:
        limit = None
    if not isinstance(limit, int):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no size: give bytes, as in 1048576, 512KiB or 64MiB")
    return limit


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 bad input, 2 bad usage."""
    parser = _parser()
    args = parser.parse_args(argv)
    form = _form(parser, args)
    use_program(args)
    if args.module is not None and re.fullmatch(r"SP[0-9]{3}", args.module) and not os.path.exists(args.module):
        return _explain_code(args.module)

    from dataclasses import replace

    from shardpass.advise.find.findings import Wanted
    from shardpass.advise.suggest.explain import within
    from shardpass.redistribute.terms.limit import read_limit

    read_limit(args.memory_limit)
    folders = [Path.cwd(), *map(Path, (*args.source, *script_folder(args.module)))]
    data, file = read_module(parser, args.module, args.timeout, args.target)
    named = is_model(data, file)  # whose shardings --mesh is for
    data = as_module(parser, data, file, args)
    given = ("machine", "effort", "matmul_loops", "constraints", "partitioner", "target")
    options: dict[str, Any] = {name: getattr(args, name) for name in given}
    options["folders"] = folders
    options["mesh"] = None if args.mesh is None or named else read_axes(args.mesh)
    streamed = _Streamed(args) if form == "text" and args.output is None and args.html is None else None
    again = (
        partial(program_with, args.module, args.timeout, args.target)
        if args.module is not None and is_script(args.module)
        else None
    )
    wanted = Wanted(again, args.seconds, streamed)
    with progress(f"compiling by {args.partitioner}" if args.partitioner != "shardpass" else "reading"):
        explanation = explain(data, file, **options, wanted=wanted)
    command = shlex.join(["shardpass", "explain", *(sys.argv[1:] if argv is None else argv)])
    explanation = replace(within(explanation, args.memory_limit), trips=args.trips, command=command)
    if args.profile_dir is not None:
        from shardpass.advise.suggest.explain import measured

        explanation = measured(explanation, args.profile_dir)
    if args.diff is not None:
        other = explain(*module_at(args.diff, args.timeout, args.target), **options)
        show(explanation.diff(other))
        return 0
    if args.hints:
        from shardpass.advise.suggest.explain import no_hints, with_hints

        if explanation.partitioner != "shardpass":
            raise no_hints(explanation)
        explanation = replace(
            explanation, hints=with_hints(data, file, options["mesh"], args.effort, args.machine, folders)
        )
    if args.html is not None:
        from shardpass.report.page import to_html

        write_output(args.html, to_html(explanation))
    if args.sarif is not None:
        write_output(args.sarif, f"{_shown(explanation, 'sarif', args)}\n")
    if args.output is not None:
        write_output(args.output, f"{_shown(explanation, form, args)}\n")
    elif streamed is not None:
        streamed.show(explanation)
    elif args.html != "-":
        print(_shown(explanation, form, args))
    if args.patch is not None:
        diffs = [finding.diff for finding in explanation.findings or () if finding.diff]
        write_output(args.patch, "".join(diffs))
        if not diffs:
            show(f"no finding has a diff: {args.patch} is empty", sys.stderr)
    return _failed(explanation, form, args.fail_on)


def _form(parser: argparse.ArgumentParser, args: argparse.Namespace) -> str:
    """Return the form to print: "text", "json", "sarif", "markdown", or a form of ``--emit``."""
    wanted = [*filter(None, (args.format, args.emit)), *(["json"] if args.json else [])]
    if len(set(wanted)) > 1:
        parser.error(f"one output is printed: give {' or '.join(sorted(set(wanted)))}")
    if args.html == "-" and (wanted or args.output):
        parser.error("the page goes to stdout, and so does the report: give --html a file")
    return wanted[0] if wanted else "text"


class _Streamed:
    """Print a report in parts as they become available: the table, each finding, and the remaining savings."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.width, self.shown = args, _width(), 0
        self.partitioner = args.partitioner
        self.pause: Pause = nullcontext

    def __call__(self, finding: Finding) -> None:
        from shardpass.diagnostics.printable import joined
        from shardpass.report.text import finding_lines, findings_title

        title = [] if self.shown else ["", findings_title(self.partitioner, several=False)]
        self.shown += 1
        with self.pause():
            show(joined([*title, *finding_lines(finding, self.shown, self.width)]))

    def show(self, explanation: Explanation) -> None:
        """Print the report; findings that arrive meanwhile are printed by ``__call__``."""
        from shardpass.diagnostics.printable import joined
        from shardpass.report.text import findings_rest, gap_lines, table_lines

        args, self.partitioner = self.args, explanation.partitioner
        table = table_lines(explanation, self.width, by=args.group_by, sort=args.sort, top=args.top)
        show(joined(table))
        with progress("looking for edits", passes=False) as self.pause:
            _ = explanation.findings  # which are printed as they come
        if rest := list(findings_rest(explanation, self.width, self.shown)):
            show(joined(rest))
        with progress("compiling other forms of the program", passes=False):
            _ = explanation.gap
        if rest := list(gap_lines(explanation, self.width)):
            show(joined(rest))


def _shown(explanation: Explanation, form: str, args: argparse.Namespace) -> str:
    if form == "sarif":
        from shardpass.report.judged import as_sarif, judged

        return as_sarif(explanation, judged(explanation, args.fail_on), args.fail_on)
    if form == "json":
        return explanation.json()
    if form == "markdown":
        return explanation.markdown()
    if form != "text":
        return explanation.emit(form)
    from shardpass.report.text import text

    return text(explanation, _width(), by=args.group_by, sort=args.sort, top=args.top)


def _failed(explanation: Explanation, form: str, fail_on: int | None) -> int:
    """Return 1 if a line or a finding reaches the limit, and print the reason on stderr unless the log contains it."""
    if fail_on is None:
        return 0
    from shardpass.report.judged import judged, over

    failing = over(judged(explanation, fail_on), fail_on)
    if form != "sarif":
        for one in failing:
            show(one.diagnostic, sys.stderr)
    return 1 if failing else 0


def _explain_code(id: str) -> int:
    from shardpass.diagnostics.pages import code_of, section
    from shardpass.diagnostics.table_driver import NO_CODE

    row = code_of(id)
    if row is None:
        raise NO_CODE.error(id=id)
    print("\n".join(section(row)).strip().removeprefix("### "))
    return 0


def _width() -> int:
    """Return the columns of the terminal; 80 where the output goes elsewhere."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 80


def explain(
    data: Given,
    file: str,
    *,
    machine: str | None = None,
    effort: int = 1,
    matmul_loops: str = "off",
    constraints: str = "exact",
    folders: Sequence[Path] | None = None,
    partitioner: str = "shardpass",
    mesh: Mesh | None = None,
    target: Target | None = None,
    wanted: Wanted | None = None,
) -> Explanation:
    """Explain the collectives of the module ``data``, partitioning the module first if needed.

    ``wanted``: how findings are looked for.

    Raises ShardpassError where it does not parse or cannot be partitioned.
    """
    from shardpass.advise.suggest.explain import NOTHING, explain_data, pipeline

    passes = pipeline(effort, matmul_loops, machine, constraints)
    more: dict[str, Any] = {"folders": folders, "target": target, "wanted": wanted or NOTHING}
    return explain_data(data, file, partitioner, mesh, machine, passes=passes, **more)
