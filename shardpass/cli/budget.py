"""shardpass budget: write down the collectives of programs, and compare later programs with that budget."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from shardpass.cli.common import add_program, argument_parser, command, use_program, write_output

if TYPE_CHECKING:
    from shardpass.cli.programs import Asked
    from shardpass.diagnostics import Diagnostic
    from shardpass.report.collectives import Collectives
    from shardpass.testing.budget import Budget
    from shardpass.testing.expectation import Violation

DESCRIPTION = """Write the collectives and the memory of each PROGRAM to a budget file that people review, and fail
if a program later needs more. --check compiles and compares all programs of the budget file, or only the named
ones."""
DEFAULT = "budget.toml"

EXAMPLES = """examples:
  shardpass budget train.py:step -o budget.toml    write the budget
  shardpass budget --check budget.toml             compare with it, as in CI"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 over the budget or bad input, 2 bad usage."""
    parser = argument_parser("budget", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("programs", nargs="*", metavar="PROGRAM", help="FILE.py:FUNCTION, a module, or HLO")
    add("-o", "--output", metavar="FILE", help="write the budget to FILE; other programs of FILE stay")
    add("--check", nargs="?", const=DEFAULT, metavar="FILE", help=f"compare with FILE (default: {DEFAULT})")
    add(
        "--format",
        choices=("text", "markdown", "json", "sarif", "gitlab"),
        default="text",
        help="text (default); markdown, for the summary of a job; json; of --check also sarif, for code review, and "
        "gitlab, a code quality report",
    )
    add("--sarif", metavar="FILE", help="with --check, write what is over the budget as SARIF to FILE too")
    add_program(parser, "xla", "the mesh of a module that names none: data=4,model=2")
    args = parser.parse_args(argv)
    if args.check is None and not args.programs:
        parser.error("the following arguments are required: PROGRAM, or --check")
    if args.check is None and (args.sarif or args.format in ("sarif", "gitlab")):
        parser.error("SARIF and GitLab's report list what is over a budget: give --check")
    if args.check is not None and (args.partitioner or args.target):
        parser.error("--check takes the partitioner and the target from the budget: leave out these options")
    return _write(args) if args.check is None else _check(Path(args.check), args)


def _write(args: argparse.Namespace) -> int:
    from shardpass.cli.programs import Asked, program_at
    from shardpass.report.markdown import collectives_markdown
    from shardpass.testing.budget import budget_of, write_budgets
    from shardpass.testing.checking import updated

    use_program(args)
    target = "" if args.target is None else str(args.target)
    programs = {name: program_at(name, Asked.of(args)) for name in args.programs}
    if args.format == "json":
        text = json.dumps({name: one.as_dict() for name, one in programs.items()}, indent=1) + "\n"
        write_output(args.output or "-", text)
    elif args.format == "markdown":
        write_output(args.output or "-", "\n\n".join(map(collectives_markdown, programs.values())) + "\n")
    elif args.output is None:
        print(write_budgets({name: budget_of(one, target) for name, one in programs.items()}), end="")
    else:
        for name, one in programs.items():
            write_output(args.output, updated(Path(args.output), name, one, target))
    return 0


def _check(path: Path, args: argparse.Namespace) -> int:
    from shardpass.cli.programs import program_at
    from shardpass.testing.budget import causes, excesses
    from shardpass.testing.checking import budget_at, budgets_at

    checked: dict[str, Checked] = {}
    for name in args.programs or sorted(budgets_at(path)):
        budget = budget_at(path, name)
        program = program_at(name, _asked(name, budget, args))
        over = excesses(program, budget)
        checked[name] = program, over, causes(program, budget) if over else ()
    if args.sarif is not None:
        write_output(args.sarif, _sarif(checked, path.name) + "\n")
    write_output(args.output or "-", _SHOWN[args.format](checked, path.name) + "\n")
    return 1 if any(over for _, over, _ in checked.values()) else 0


def _asked(name: str, budget: Budget, args: argparse.Namespace) -> Asked:
    """Return how the program of a budget was made."""
    from shardpass.cli.programs import Asked
    from shardpass.cli.script import is_script

    made = {"partitioner": budget.partitioner, "target": budget.target or None}
    given = argparse.Namespace(**{**vars(args), **made})
    if not is_script(name):  # a script names its mesh
        given.mesh = args.mesh or budget.mesh.replace(" ", "") or None
    use_program(given)
    return Asked.of(given)


Checked: TypeAlias = "tuple[Collectives, tuple[Violation, ...], tuple[str, ...]]"  # what is over, and causes


def _text(checked: Mapping[str, Checked], file: str) -> str:
    from shardpass.report.text import show_bytes
    from shardpass.testing.expectation import table

    blocks = []
    for name, (program, over, why) in checked.items():
        if over:
            blocks.append("\n".join(table(program, over, f"{name}: over the budget", why)))
        else:
            blocks.append(f"{name}: within the budget, {show_bytes(program.bytes_received)} received")
    return "\n\n".join(blocks)


def _markdown(checked: Mapping[str, Checked], file: str) -> str:
    from shardpass.report.markdown import markdown_table
    from shardpass.report.rows import short
    from shardpass.report.text import show_bytes

    lines = ["### Collectives", ""]
    rows = []
    for name, (program, over, _) in checked.items():
        memory = "-" if program.memory is None else show_bytes(program.memory)
        verdict = "over the budget" if over else "within the budget"
        rows.append((name, verdict, show_bytes(program.bytes_received), memory))
    lines += markdown_table(("program", "verdict", "received", "memory"), rows)
    broken = [
        (name, one.what, one.expected, one.got, short(one.place))
        for name, (_, over, _) in checked.items()
        for one in over
    ]
    if broken:
        lines += ["", *markdown_table(("program", "over", "budget", "now", "line"), broken)]
    for name, (_, _, why) in checked.items():
        if why:
            lines += ["", f"Annotations of {name} that differ from the budget:", "", *(f"- `{one}`" for one in why)]
    return "\n".join(lines)


def _json(checked: Mapping[str, Checked], file: str) -> str:
    result = {
        name: {
            "within": not over,
            "over": [
                {"what": one.what, "budget": one.expected, "now": one.got, "place": str(one.place)} for one in over
            ],
            "annotations": list(why),
            "collectives": program.as_dict(),
        }
        for name, (program, over, why) in checked.items()
    }
    return json.dumps(result, indent=1)


def _sarif(checked: Mapping[str, Checked], file: str) -> str:
    from shardpass.report.diagnostics import diagnostics_sarif

    return diagnostics_sarif(file, _diagnostics(checked, file), "shardpass-budget")


def _gitlab(checked: Mapping[str, Checked], file: str) -> str:
    from shardpass.report.gitlab import code_quality

    return code_quality(_diagnostics(checked, file), file)


def _diagnostics(checked: Mapping[str, Checked], file: str) -> list[Diagnostic]:
    from shardpass.testing.budget import diagnostics

    return [one for name, (_, over, _) in checked.items() for one in diagnostics(name, over, file)]


_SHOWN = {"text": _text, "markdown": _markdown, "json": _json, "sarif": _sarif, "gitlab": _gitlab}

if __name__ == "__main__":
    sys.exit(main())
