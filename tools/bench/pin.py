#!/usr/bin/env python
"""XLA's programs with shardpass's decisions pinned, beside XLA's own and shardpass's.

    python -m tools.bench.pin                          the programs of test/integration/models, and the underspecified
    python -m tools.bench.pin megatron zero            those whose name begins so
    python -m tools.bench.pin --kind free --trials 16 --timeout 300 --add pin.jsonl

With ``--add``, each program's row is added to the file as a line of JSON, and programs of which it has a row are not
measured again: so a run can be ended and started again. Each program is measured in a child process that is ended after
``--timeout`` seconds.

For each program: the constraints that are kept; bytes that a device receives in XLA's program, in XLA's pinned, and by
shardpass's plan (a sum of which devices keep slices counts as reduce_scatter); temporaries and memory of the pinned
program beside plain; and whether the pinned program's results are those of one device. It fails where one is wrong, or
above plain. Each program compiles up to ``--trials`` variants, one after the other.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.bench.peers import Child, Workbench, set_devices
from tools.bench.real_programs import Measurable, differences, real_programs
from tools.bench.underspecified import FormedPrograms
from tools.processes import answer

KINDS = ("real", "free", "expert")


@dataclass(frozen=True)
class Row:
    """One program. ``ratio`` of bytes, ``temporaries`` and ``memory``: pinned beside plain."""

    name: str
    constraints: int
    plain: int
    pinned: int
    shardpass: int
    temporaries: float
    memory: float
    compiled: int
    apart: float
    right: bool

    @property
    def ratio(self) -> float:
        return self.pinned / self.plain if self.plain else 1.0

    @property
    def is_above(self) -> bool:
        return self.pinned > self.plain or self.temporaries > 1

    def __str__(self) -> str:
        sizes = f"{self.plain:>12,} {self.pinned:>12,} {self.shardpass:>12,}"
        end = "right" if self.right else f"WRONG by {self.apart:.2g}"
        return (
            f"{self.name:42} {self.constraints:4} {sizes} {self.ratio:6.3f} {self.temporaries:6.3f} {self.memory:6.3f} "
            f"{self.compiled:3} {end}"
        )


HEAD = f"{'program':42} {'kept':>4} {'XLA':>12} {'pinned':>12} {'shardpass':>12} {'ratio':>6} {'temp':>6} {'memory':>6}"


def programs(kind: str) -> Mapping[str, Measurable]:
    """The programs of a kind by name."""
    if kind == "real":
        return real_programs()
    formed = FormedPrograms()
    return {name: formed[name] for name in formed if name.endswith(f"/{kind}")}


def measure(bench: Workbench, name: str, trials: int, machine: str) -> Row:
    """Pins one program, and runs what XLA makes of it."""
    from shardpass.advise.pin.pin import pin_module
    from shardpass.ir.context import parse_module
    from shardpass.pipeline.plan import plan_module
    from shardpass.runtime.reference import compile_by_xla

    program = bench.take(name)
    module = parse_module(bench.lowered.text)
    with module.context:
        pinned, pins = pin_module(module, machine=machine, most=trials)
        assert pins.before is not None
        assert pins.after is not None
        executable = compile_by_xla(pinned)
        apart = max(differences(executable(*bench.lowered.arguments), bench.expected), default=0.0)
        own = plan_module(bench.lowered.text, machine=machine).bytes_received
    before, after = pins.before, pins.after
    return Row(
        name,
        len(pins.constraints),
        before.bytes,
        after.bytes,
        own,
        after.temporaries / max(1, before.temporaries),
        after.memory / max(1, before.memory),
        pins.compiled,
        apart,
        apart <= program.tolerance,
    )


def show(rows: Sequence[Row]) -> None:
    """The sums under the table."""
    moved = [row for row in rows if row.plain and row.pinned]
    mean = math.exp(sum(math.log(row.ratio) for row in moved) / len(moved)) if moved else 1.0
    own = [row for row in moved if row.shardpass]
    beside = math.exp(sum(math.log(row.pinned / row.shardpass) for row in own) / len(own)) if own else 1.0
    above, wrong = (sum(map(test, rows)) for test in (lambda row: row.is_above, lambda row: not row.right))
    print(f"{len(rows)} programs: bytes {mean:.3f} of plain XLA's and {beside:.3f} of shardpass's in geometric mean")
    print(f"above plain in bytes or temporaries: {above}; wrong: {wrong}; pinned: {sum(row.ratio < 1 for row in rows)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--kind", action="append", choices=KINDS, help="real, free or expert; default: real and free")
    parser.add_argument("--trials", type=int, default=40, help="variants that are compiled of a program; default: 40")
    parser.add_argument("--machine", default="ideal", help="for which programs are decided; default: ideal")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a program; default: 600")
    parser.add_argument(
        "--add", metavar="FILE", type=Path, help="rows of earlier runs, to which those of this are added"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    set_devices()
    if arguments.serve:
        return serve(arguments.trials, arguments.machine)
    rows = {} if arguments.add is None else read_rows(arguments.add)
    failed, shown = 0, []
    options = "--serve", "--trials", str(arguments.trials), "--machine", arguments.machine
    child = Child(arguments.timeout, ("tools.bench.pin", *options))
    print(HEAD, flush=True)
    for kind in arguments.kind or KINDS[:2]:
        for name, program in programs(kind).items():
            if arguments.programs and not name.startswith(tuple(arguments.programs)):
                continue
            if not getattr(program, "available", True):
                print(f"{name:42} is not measured: its library is not installed", flush=True)
                continue
            if name not in rows:
                found = child.ask(kind, name)
                if "reason" in found:  # a program that fails is a line of the table
                    failed += 1
                    print(f"{name:42} fails: {found['reason'][:160]}", file=sys.stderr, flush=True)
                    continue
                rows[name] = Row(**found)
                if arguments.add is not None:
                    with arguments.add.open("a") as file:
                        file.write(json.dumps(found) + "\n")
            shown.append(rows[name])
            print(rows[name], flush=True)
    child.close()
    if not shown:
        parser.error("no program was measured")
    show(shown)
    return 1 if failed or any(row.is_above or not row.right for row in shown) else 0


def read_rows(file: Path) -> dict[str, Row]:
    """The rows of a file that ``--add`` wrote, the newest of each program."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {row.name: row for row in (Row(**json.loads(line)) for line in lines)}


def serve(trials: int, machine: str) -> int:
    """Answers each JSON line ``[kind, program]`` on stdin with the row of that program."""
    benches: dict[str, Workbench] = {}
    for line in sys.stdin:
        kind, name = json.loads(line)
        bench = benches.setdefault(kind, Workbench(programs(kind)))
        try:
            answer(asdict(measure(bench, name, trials, machine)))
        except Exception as error:
            answer({"status": "fails", "reason": str(error).splitlines()[0]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
