#!/usr/bin/env python
"""Suggestions for XLA under limits of memory: what XLA holds of each program with all of them.

    python -m tools.bench.suggest_xla                      five programs on 8, 4x2 and 2x2x2 devices, three limits each
    python -m tools.bench.suggest_xla mlp --mesh 8         those whose name begins so, on one mesh
    python -m tools.bench.suggest_xla --add suggest.jsonl  each row is added to the file, and no row in it is run again

Limits are parts of what the plan of the program holds where nothing is split. Each suggestion is compiled with XLA, in
a process of its own, by ``shardpass.suggest`` itself; where no splits fit, the row says the least that was compiled.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.bench.peers import set_devices
from tools.bench.report import show_table
from tools.bench.suggest_programs import PROGRAMS, SuggestProgram

PARTS = (0.9, 0.7, 0.5)
Axes = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Row:
    """One program under one limit. ``memory``, ``received``: of XLA's program; None where no splits fit."""

    program: str
    mesh: str
    part: float
    limit: int
    memory: int | None
    received: int | None
    refused: str

    @property
    def key(self) -> tuple[str, str, float]:
        return self.program, self.mesh, self.part

    @property
    def is_above(self) -> bool:
        return self.memory is not None and self.memory > self.limit

    def cells(self) -> list[str]:
        outcome = self.refused or ("ABOVE" if self.is_above else "within")
        sizes = ["-" if size is None else f"{size / 1024:.0f}" for size in (self.limit, self.memory, self.received)]
        return [self.program, self.mesh, *sizes, outcome]


def mesh_text(axes: Axes) -> str:
    return "x".join(str(size) for _, size in axes)


def rows(program: SuggestProgram, axes: Axes, parts: list[float]) -> Iterator[Row]:
    """One row for each limit of ``parts``."""
    from shardpass.advise.suggest.suggest import suggest_module
    from shardpass.diagnostics import ShardpassError
    from shardpass.sharding import Mesh

    text, mesh = program.free(), Mesh(axes)
    whole = suggest_module(text, mesh=mesh, memory_limit="none").figures_before.memory
    for part in parts:
        limit = int(whole * part)
        memory, received, refused = None, None, ""
        try:
            figures = suggest_module(text, mesh=mesh, memory_limit=limit, partitioner="xla").figures
            memory, received = figures.memory, figures.bytes
        except ShardpassError as error:
            refused = error.diagnostics[0].message
        yield Row(program.name, mesh_text(axes), part, limit, memory, received, refused)


def read_rows(file: Path) -> list[Row]:
    """The rows of a file that ``--add`` wrote."""
    return [Row(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--mesh", help="only this one: 8, 4x2 or 2x2x2")
    parser.add_argument("--add", metavar="FILE", type=Path, help="rows of earlier runs; those of this one are added")
    arguments = parser.parse_args()
    set_devices()
    table = {row.key: row for row in ([] if arguments.add is None else read_rows(arguments.add))}
    for program in PROGRAMS:
        if arguments.programs and not program.name.startswith(tuple(arguments.programs)):
            continue
        for axes in program.meshes:
            mesh = mesh_text(axes)
            left = [part for part in PARTS if (program.name, mesh, part) not in table]
            if arguments.mesh not in (None, mesh) or not left:
                continue
            for row in rows(program, axes, left):
                table[row.key] = row
                print(*row.cells(), flush=True)
                if arguments.add is not None:
                    with arguments.add.open("a") as file:
                        file.write(json.dumps(asdict(row)) + "\n")
    above = sum(row.is_above for row in table.values())
    heads = ["program", "mesh", "limit KiB", "XLA KiB", "received KiB", ""]
    notes = [f"above the limit: {above} of {len(table)}; refused: {sum(bool(row.refused) for row in table.values())}"]
    show_table("suggestions compiled with XLA", heads, [row.cells() for row in table.values()], notes)
    return 1 if above else 0


if __name__ == "__main__":
    raise SystemExit(main())
