#!/usr/bin/env python
"""Suggestions for XLA under limits of memory: what XLA holds of each program with all of them.

    python -m tools.bench.suggest_xla                 five programs on 8, 4x2 and 2x2x2 devices, three limits each
    python -m tools.bench.suggest_xla mlp --mesh 8    those whose name begins so, on one mesh

Limits are parts of what the plan of the program holds where nothing is split. Each suggestion is compiled with XLA, in
a process of its own, by ``shardpass.suggest`` itself; where no splits fit, the row says the least that was compiled.
"""

from __future__ import annotations

import argparse

from tools.bench.peers import set_devices
from tools.bench.report import show_table
from tools.bench.suggest_programs import PROGRAMS, SuggestProgram

PARTS = (0.9, 0.7, 0.5)


def rows(program: SuggestProgram, axes: tuple[tuple[str, int], ...]) -> list[list[str]]:
    """One row a limit."""
    from shardpass.diagnostics import ShardpassError
    from shardpass.sharding import Mesh
    from shardpass.suggesting.suggest import suggest_module

    text, mesh = program.free(), Mesh(axes)
    whole = suggest_module(text, mesh=mesh, memory_limit="none").figures_before.memory
    out = []
    for part in PARTS:
        limit = int(whole * part)
        try:
            found = suggest_module(text, mesh=mesh, memory_limit=limit, partitioner="xla")
            held, bytes_ = found.figures.memory, found.figures.bytes
            cells = [f"{held / 1024:.0f}", f"{bytes_ / 1024:.0f}", "within" if held <= limit else "ABOVE"]
        except ShardpassError as error:
            cells = ["-", "-", error.diagnostics[0].message]
        out.append([program.name, "x".join(str(size) for _, size in axes), f"{limit / 1024:.0f}", *cells])
        print(*out[-1], flush=True)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--mesh", help="only this one: 8, 4x2 or 2x2x2")
    arguments = parser.parse_args()
    set_devices()
    table: list[list[str]] = []
    for program in PROGRAMS:
        if arguments.programs and not program.name.startswith(tuple(arguments.programs)):
            continue
        for axes in program.meshes:
            if arguments.mesh in (None, "x".join(str(size) for _, size in axes)):
                table += rows(program, axes)
    heads = ["program", "mesh", "limit KiB", "XLA KiB", "received KiB", ""]
    above = sum(row[-1] == "ABOVE" for row in table)
    show_table("suggestions compiled with XLA", heads, table, [f"above the limit: {above} of {len(table)}"])
    return 1 if above else 0


if __name__ == "__main__":
    raise SystemExit(main())
