"""The model of work beside the estimates that XLA:TPU writes on its fusions, by kind of op.

    python -m tools.bench.estimates v5e FOLDER/v5e_*/*.plain.hlo.gz    HLO that tools/bench/targets.py stored

A fusion has the kind of the heaviest op inside; those that are modelled to take less than ``SMALL`` are a kind of their
own, and so are products whose work without waits is modelled to take less than a kernel's least time.
Counted: modelled over estimated seconds, geometric mean and spread.
"""

from __future__ import annotations

import argparse
import gzip
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from shardpass.cost.machine import find_machine
from shardpass.hlo.estimates import estimated_cycles
from shardpass.hlo.read import HloOp, HloProgram, read_program
from shardpass.hlo.work import work_of
from shardpass.targets.target import clock_of
from tools.bench.report import geometric_mean, show_table

KINDS = ("convolution", "dot", "sort", "scatter", "gather", "dynamic-update-slice", "dynamic-slice", "reduce-window",
         "reduce", "exponential", "transpose", "concatenate", "pad", "copy")  # fmt: skip
SMALL = 1e-6  # seconds
HEADS = ("kind", "fusions", "modelled ms", "estimated ms", "modelled/estimated", "10% to 90%")


def kind_of(program: HloProgram, op: HloOp) -> str:
    """Returns the heaviest kind of op inside of ``op``."""
    inside = {op.opcode}
    todo = [name for _, name in op.called]
    while todo:
        computation = program.computations.get(todo.pop())
        for one in () if computation is None else computation.ops.values():
            inside.add(one.opcode)
            todo += [name for _, name in one.called]
    return next((kind for kind in KINDS if kind in inside), "elementwise")


def pairs(text: str, chip: str) -> Iterator[tuple[str, float, float]]:
    """Yields the kind of each fusion with an estimate, and its seconds modelled and estimated."""
    program, machine, clock = read_program(text), find_machine(chip), clock_of(chip)
    for one in work_of(program):
        cycles = estimated_cycles(one.op)
        if cycles is not None:
            modelled, kind = machine.seconds(one.work), kind_of(program, one.op)
            least = "least " if one.work.flops and modelled <= machine.kernel * (1 + one.work.waits) else ""
            yield "small" if modelled < SMALL and not least else f"{least}{kind}", modelled, cycles / clock


def _text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def rows(every: Sequence[tuple[str, float, float]]) -> list[list[str]]:
    """The lines of the table, most estimated time first."""
    kinds: dict[str, list[tuple[float, float]]] = {}
    for kind, modelled, estimated in every:
        kinds.setdefault(kind, []).append((modelled, estimated))
    table = []
    for kind, some in sorted(kinds.items(), key=lambda item: -sum(estimated for _, estimated in item[1])):
        ratios = sorted(modelled / estimated for modelled, estimated in some if modelled)
        mean = f"{geometric_mean(ratios):.2f}" if ratios else "-"
        spread = f"{ratios[len(ratios) // 10]:.2f} to {ratios[math.ceil(0.9 * len(ratios)) - 1]:.2f}" if ratios else "-"
        sums = [f"{1e3 * sum(side):.3f}" for side in zip(*some, strict=True)]
        table.append([kind, str(len(some)), *sums, mean, spread])
    return table


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chip", help="v5e, v5p or v6e")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    every = [pair for path in options.files for pair in pairs(_text(path), options.chip)]
    show_table(f"work on {options.chip}, modelled beside XLA:TPU's estimate", HEADS, rows(every), [])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
