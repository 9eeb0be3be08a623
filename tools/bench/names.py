#!/usr/bin/env python
"""Names of collectives in compiled HLO, with the hook on: whether each has a source line and plain JAX's op_name.

    python -m tools.bench.names                  every program of test/integration/models
    python -m tools.bench.names mlp transformer  those whose name or family begins so
    python -m tools.bench.names --json out.json

Each program is compiled by JAX with the hook. Of each collective in the optimized HLO two things are asked: does it
have a stack frame with a line, and is its op_name one that plain JAX gives to an op of the same program, in its HLO
before any pass or in what it compiles? What shardpass adds behind a name (``/operand_0``) does not count. Of several
collectives that became one, ``f/(a:b)``, each name must be known, ``f/a`` and ``f/b``. What brings a result of the
whole program to its sharding is called as the program, ``jit(f)``.

Exit status 1 where less than ``BOUND`` of the collectives have both, or a program was not measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shardpass.runtime.hlo import collective_lines
from tools.bench.hook import HOOK, inside
from tools.bench.peers import set_devices
from tools.bench.real_programs import real_programs
from tools.bench.report import show_table
from tools.processes import ChildFailed, JsonChild, answer, environment, module_command

BOUND = 0.99
HEADS = ("program", "collectives", "with a line", "named as in plain JAX")
NAME, FRAME = re.compile(r'op_name="([^"]*)"'), re.compile(r"stack_frame_id=(\d+)")
LINE = re.compile(r"^(\d+) \{file_name_id=\d+ function_name_id=\d+ line=\d+", re.MULTILINE)
PLACE = re.compile(r"^(\d+) \{file_location_id=(\d+)", re.MULTILINE)
MERGED = re.compile(r"(.*/|)\((.*:.*)\)")
ADDED = re.compile(r"/(operand|result)_\d+(?=$|/)")


@dataclass(frozen=True, slots=True)
class Row:
    """One program. ``strange``: op_names that plain JAX does not give; ``reason``: why nothing was measured."""

    name: str
    collectives: int = 0
    placed: int = 0
    named: int = 0
    strange: list[str] = field(default_factory=list)
    reason: str = ""


def of_text(name: str, text: str, known: frozenset[str]) -> Row:
    """The collectives of an optimized HLO module, held to the op_names ``known``."""
    lines = set(LINE.findall(text))
    frames = {frame for frame, place in PLACE.findall(text) if place in lines}
    said = [line for _, line in collective_lines(text)]
    names = [found[1] if (found := NAME.search(line)) else "" for line in said]
    known |= {each.split("/")[0] for each in known}
    placed = sum((found := FRAME.search(line)) is not None and found[1] in frames for line in said)
    good = [known.issuperset(apart(each)) for each in names]
    strange = sorted({each for each, is_known in zip(names, good, strict=True) if not is_known})
    return Row(name, len(said), placed, sum(good), strange)


def apart(name: str) -> list[str]:
    """The names that were merged to ``name``, which may be one, without what shardpass added to them."""
    found = MERGED.fullmatch(name)
    each = [f"{found[1]}{part}" for part in found[2].split(":")] if found else [name]
    return [ADDED.sub("", one) for one in each]


def names_of(text: str) -> frozenset[str]:
    """The op_names in the text of an HLO module."""
    return frozenset(each for name in NAME.findall(text) for each in apart(name))


def measure(name: str) -> Row:
    """Compiles the program with the hook; in a child."""
    import jax

    import shardpass.jax as spj

    program = real_programs()[name]
    plain = program.lower().lowered
    known = names_of(plain.compiler_ir("hlo").as_hlo_module().to_string()) | names_of(plain.compile().as_text())
    jax.clear_caches()  # of a function that was lowered before, JAX would hand out what it compiled then
    with inside(HOOK):
        row = of_text(name, program.lower().lowered.compile().as_text(), known)
    if spj.stats()["fallback"]:
        return Row(name, reason="left to XLA")
    return row


def serve() -> None:
    """Answers each JSON line, a name, on stdin with one line on stdout."""
    set_devices()
    for line in sys.stdin:
        name = json.loads(line)
        try:
            answer(asdict(measure(name)))
        except Exception as error:
            answer(asdict(Row(name, reason=f"{type(error).__name__}: {error}"[:300])))


def ask(names: Sequence[str]) -> list[Row]:
    """One child measures all, and a fresh one after each that ends. Ctrl-C ends with what there is."""
    from rich.progress import track

    child = JsonChild(module_command("tools.bench.names", "--serve"), environment(), 600)
    rows: list[Row] = []
    try:
        for name in track(names, "programs", disable=not sys.stderr.isatty()):
            try:
                rows.append(Row(**child.ask(name)))
            except ChildFailed as failure:
                rows.append(Row(name, reason=str(failure)))
    except KeyboardInterrupt:
        print(f"interrupted after {len(rows)} of {len(names)} programs", file=sys.stderr)
    finally:
        child.close()
    return rows


def summary(rows: Sequence[Row]) -> list[str]:
    """The share of all collectives, and the programs with one that has no line or another name."""
    count = sum(row.collectives for row in rows)
    lines = []
    for what, good in (("with a line", [row.placed for row in rows]), ("named", [row.named for row in rows])):
        less = [row.name for row, found in zip(rows, good, strict=True) if found < row.collectives]
        share = f"{sum(good)} of {count} collectives ({sum(good) / count:.1%})" if count else "no collectives"
        lines.append(f"{what}: {share}; less than all in {', '.join(less) or 'none'}")
    lines += [f"{row.name}: {', '.join(map(repr, row.strange))}" for row in rows if row.strange]
    lines += [f"{row.name}: not measured, {row.reason}" for row in rows if row.reason]
    return lines


def is_met(rows: Sequence[Row]) -> bool:
    """Whether every program was measured, and ``BOUND`` of all collectives have a line and plain JAX's name."""
    count = sum(row.collectives for row in rows)
    both = min(sum(row.placed for row in rows), sum(row.named for row in rows))
    return not any(row.reason for row in rows) and both >= BOUND * count


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names or families; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.serve:
        serve()
        return 0
    wanted = tuple(arguments.programs)
    names = [
        program.name
        for program in real_programs().values()
        if program.available and (not wanted or program.name.startswith(wanted) or program.family.startswith(wanted))
    ]
    if not names:
        parser.error(f"no program is named {' or '.join(wanted)}")
    rows = ask(names)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    table: list[list[Any]] = [[row.name, str(row.collectives), str(row.placed), str(row.named)] for row in rows]
    show_table("names of collectives", HEADS, table, summary(rows))
    return 0 if is_met(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
