#!/usr/bin/env python
"""Programs that say little about their shardings: shardpass, XLA's partitioner and Shardy's passes, beside an expert.

    python -m tools.bench.underspecified                        every program, both forms, four ways
    python -m tools.bench.underspecified fsdp zero1             those whose name or kind begins so
    python -m tools.bench.underspecified --effort 2 --json out.json --markdown docs/underspecified.md
    python -m tools.bench.underspecified moe --add out.json     these again, in the table of all
    python -m tools.bench.underspecified --ways shardpass --add out.json    the peers as they were measured
    python -m tools.bench.underspecified --plan 0,1 --add out.json          plans alone: nothing is compiled

Each program of tools/bench/underspecified_programs is measured as users write it (free: inputs or weights annotated, or
only outputs, or one weight) and as an expert writes it. Bytes received per device and the number of collectives are
read from the compiled HLO of all four by one counter (tools/bench/hlo_traffic.py), loops multiplied; an all-reduce of
which each device keeps a slice counts as a reduce-scatter. Memory is temp + output bytes of XLA's compiled stats. Each
program runs and is compared with one device. Child processes do the work: a peer that ends one fails on that program
alone. Ctrl-C reports what was measured until then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.bench.peers import ALL_WAYS as WAYS
from tools.bench.peers import Child, Workbench, serve, set_devices
from tools.bench.report import cell, write_between
from tools.bench.underspecified_plan import show_plans
from tools.bench.underspecified_programs import FORMS, PROGRAMS, FormedProgram, Program
from tools.bench.underspecified_report import Row, markdown, read_rows, show

MARKS = ("<!-- table: tools/bench/underspecified.py -->", "<!-- end of the table -->")
TIMEOUT = 300.0


class FormedPrograms(Mapping[str, FormedProgram]):
    """The programs of ``PROGRAMS`` as ``fsdp_mlp_3_rows/free``."""

    def __getitem__(self, name: str) -> FormedProgram:
        program, _, form = name.partition("/")
        if form not in FORMS:
            raise KeyError(name)
        return PROGRAMS[program].in_form(form)

    def __iter__(self) -> Iterator[str]:
        return (f"{name}/{form}" for name in PROGRAMS for form in FORMS)

    def __len__(self) -> int:
        return len(PROGRAMS) * len(FORMS)


def pipeline(effort: int) -> str:
    """The pipeline "partition", its propagation at ``effort``."""
    from shardpass.pipeline.named import NAMED

    return NAMED["partition"].replace("shardpass-propagate", f"shardpass-propagate{{effort={effort}}}")


def measure(programs: Sequence[Program], ways: Sequence[str], effort: int, earlier: Mapping[str, Row]) -> list[Row]:
    """Asks a child for each program, form and way; ways that are not asked are taken from ``earlier``."""
    from rich.progress import track

    rows: list[Row] = []
    child = Child(TIMEOUT, ("tools.bench.underspecified", "--serve", "--effort", str(effort)))
    quiet = not sys.stderr.isatty()
    try:
        for program in track(programs, "programs", disable=quiet):
            forms: dict[str, dict[str, dict[str, Any]]] = {}
            for form in FORMS:
                known = earlier[program.name].forms[form] if program.name in earlier else {}
                forms[form] = {
                    way: child.ask(program.in_form(form).name, way) if way in ways else known.get(way, NOT_MEASURED)
                    for way in WAYS
                }
                if quiet:
                    told = ", ".join(f"{way} {cell(answer)}" for way, answer in forms[form].items())
                    print(f"{program.name}/{form}: {told}", file=sys.stderr, flush=True)
            rows.append(Row(program.name, program.in_form("free").mesh, forms))
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(programs)} programs", file=sys.stderr)
    finally:
        child.close()
    return rows


NOT_MEASURED = {"status": "not measured", "reason": ""}


def merged(new: Sequence[Row], earlier: Mapping[str, Row]) -> list[Row]:
    """One row a program, the newest, in the order of the programs."""
    found = {**earlier, **{row.name: row for row in new}}
    return [found[name] for name in PROGRAMS if name in found]


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names or kinds; default: all")
    parser.add_argument("--effort", type=int, default=1, help="of shardpass-propagate; default: 1")
    parser.add_argument("--ways", default=",".join(WAYS), help="those to measure; default: all")
    parser.add_argument("--plan", metavar="EFFORTS", nargs="?", const="0,1", help="only plan, at each of these efforts")
    parser.add_argument("--forms", default=",".join(FORMS), help="of --plan; default: both")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument(
        "--add", metavar="FILE", action="append", default=[], help="take what is not measured now from here"
    )
    parser.add_argument("--markdown", metavar="FILE", help="put the table into this page, between its marks")
    parser.add_argument("--table", action="store_true", help="measure nothing, only show what --add names")
    parser.add_argument("--list", action="store_true", help="list the programs and end")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    parser = options()
    arguments = parser.parse_args()
    if arguments.serve:
        serve(Workbench(FormedPrograms(), pipeline(arguments.effort), scattered=True))
        return 0
    wanted = tuple(arguments.programs)
    chosen = [p for p in PROGRAMS.values() if not wanted or p.name.startswith(wanted) or p.kind.startswith(wanted)]
    if not chosen:
        parser.error(f"no program is named {' or '.join(wanted)}; --list names them")
    ways, forms = arguments.ways.split(","), arguments.forms.split(",")
    if unknown := {*ways, *forms} - {*WAYS, *FORMS}:
        parser.error(f"no way or form is named {', '.join(sorted(unknown))}")
    if arguments.list:
        for p in chosen:
            print(f"{p.name:34} {'x'.join(str(n) for _, n in p.axes):6} {p.summary}")
        return 0
    try:
        earlier = {row.name: row for path in arguments.add for row in read_rows(path)}
        efforts = [int(effort) for effort in (arguments.plan or "").split(",") if effort]
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"--add or --plan: {error}")
    if arguments.plan is not None:
        set_devices()
        show_plans(chosen, efforts, forms, list(earlier.values()))
        return 0
    rows = merged([] if arguments.table else measure(chosen, ways, arguments.effort, earlier), earlier)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if rows and arguments.markdown:
        write_between(Path(arguments.markdown), MARKS, markdown(rows))
    if rows:
        show(rows)
    return 0 if all(row.forms[form]["shardpass"]["status"] == "right" for row in rows for form in FORMS) else 1


if __name__ == "__main__":
    raise SystemExit(main())
